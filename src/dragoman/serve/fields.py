"""What a request says, however it says it: JSON, a form (urlencoded or multipart), the query string, or some of each.

Clients of one and the same protocol do all of these, and some send a form's content type with a GET, so nothing is made
of the content type but how to read a body that is there. What the body says wins over the query string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from dragoman.serve.refusal import Refusal

MOST_FIELDS = 4096
_MOST_DIGITS = 18
_YES = frozenset(("1", "true", "yes", "on"))
_NO = frozenset(("0", "false", "no", "off", ""))


@dataclass(frozen=True)
class Upload:
    """A file that came with a form, and what its sender calls it."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Fields:
    """The values of a request, by name: what JSON has, or a form's strings; a list where a name came several times."""

    values: dict[str, Any]
    uploads: dict[str, Upload] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether there is anything under that name."""
        return self.values.get(name) not in (None, "", [])

    def text(self, name: str, default: str | None = None) -> str | None:
        """One string; of several the first."""
        value = self.values.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if value is None or value == []:
            return default
        return _checked(name, value)

    def texts(self, name: str) -> list[str]:
        """All strings under a name: a list, or one."""
        value = self.values.get(name)
        if value is None:
            return []
        return [_checked(name, one) for one in (value if isinstance(value, list) else [value])]

    def is_list(self, name: str) -> bool:
        """Whether several came, or a list of one."""
        return isinstance(self.values.get(name), list)

    def whole_number(self, name: str, default: int) -> int:
        """A whole number, also if it is written as text."""
        value = self.values.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if value is None or value == "" or value == []:
            return default
        if isinstance(value, str) and len(value) <= _MOST_DIGITS and value.strip().removeprefix("-").isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refusal(400, f"Invalid request: {name} parameter is not a number")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Yes or no, as JSON or a form says it."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        word = str(value).lower()
        if word not in _YES | _NO:
            raise Refusal(400, f"Invalid request: {name} parameter is neither true nor false")
        return word in _YES


async def read_fields(request: Request, *, with_file: bool = False) -> Fields:
    """The request's fields; refuses (400) what cannot be read. Files in it are passed over, unless one is expected."""
    uploads: dict[str, Upload] = {}
    values = _gather(_pairs(request.url.query, "query string"))
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind == "multipart/form-data":
        form = await _multipart(request, with_file)
        values, uploads = values | form.values, form.uploads
    elif kind == "application/x-www-form-urlencoded":
        values |= _gather(_pairs(_decode(body), "form"))
    elif body.strip() and (kind == "application/json" or kind.endswith("+json") or body.lstrip()[:1] == b"{"):
        values |= _json(body)
    return Fields(values, uploads)


def _json(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(_decode(body))
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "Invalid JSON format") from error
    if not isinstance(values, dict):
        raise Refusal(400, "Invalid JSON format")
    return values


def _pairs(encoded: str, what: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(encoded, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as error:
        reason = "is no UTF-8" if isinstance(error, UnicodeDecodeError) else f"has more than {MOST_FIELDS} fields"
        raise Refusal(400, f"Invalid request: the {what} {reason}") from error


async def _multipart(request: Request, with_file: bool) -> Fields:
    """What a multipart form has; its file only where one is expected."""
    size = len(await request.body())
    most_files, hint = (1, ": send one file, and a few fields") if with_file else (MOST_FIELDS, "")
    pairs: list[tuple[str, str]] = []
    uploads: dict[str, Upload] = {}
    try:
        async with request.form(max_files=most_files, max_fields=MOST_FIELDS, max_part_size=size) as form:
            for name, value in form.multi_items():
                if not isinstance(value, UploadFile):
                    pairs.append((name, value))
                elif with_file:
                    uploads[name] = Upload(_checked(name, value.filename or ""), await value.read())
    except (HTTPException, MultiPartException, KeyError, ValueError) as error:
        raise Refusal(400, f"Invalid request: the multipart form cannot be read{hint}") from error
    return Fields(_gather(pairs), uploads)


def _decode(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(400, "Invalid request: the body is no UTF-8") from error


def _gather(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A value for each name, or the list of them if there are several."""
    gathered: dict[str, Any] = {}
    for name, value in pairs:
        if name not in gathered:
            gathered[name] = value
        elif isinstance(gathered[name], list):
            gathered[name].append(value)
        else:
            gathered[name] = [gathered[name], value]
    return gathered


def _checked(name: str, value: object) -> str:
    """A string that can be written as UTF-8: JSON can escape halves of a character, which are none, and a form can
    have them in other encodings.
    """
    if not isinstance(value, str):
        raise Refusal(400, f"Invalid request: {name} parameter is not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refusal(400, f"Invalid request: {name} parameter has half a surrogate pair") from error
    return value
