"""The parts that a description of routes is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
FLAG: dict[str, Any] = {"type": "boolean"}
DETAILS: dict[str, Any] = {"type": "boolean", "default": False, "description": "Whether to tell what may be wrong."}
CONFIDENCE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
WORDS = {
    400: "A field is missing or wrong, a language is not supported, or a limit is passed.",
    403: "The key is wrong, or this is switched off.",
    404: "There is no such thing.",
    408: "The request took too long to arrive.",
    413: "The request is too large.",
    429: "Too many requests.",
    456: "The quota is used up.",
    500: "An error of the server.",
    503: "Too busy: try again later.",
}
ALWAYS = (408, 413, 500)
"""What any request may get."""


def ref(name: str) -> dict[str, Any]:
    """A schema by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A list of things."""
    return {"type": "array", "items": items, **more}


def record(properties: dict[str, Any], required: Iterable[str] | None = None) -> dict[str, Any]:
    """An object; all of its properties are required unless some are named."""
    needed = list(properties if required is None else required)
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


def reply(schema: dict[str, Any], words: str, media: str = JSON) -> dict[str, Any]:
    """An answer with a body."""
    return {"description": words, "content": {media: {"schema": schema}}}


def refusals(schema: str, *statuses: int) -> dict[str, Any]:
    """The answers that are no success."""
    return {str(status): reply(ref(schema), WORDS[status]) for status in sorted({*statuses, *ALWAYS})}


def body(schema: dict[str, Any], *medias: str, required: bool = False) -> dict[str, Any]:
    """A body in any of several forms."""
    return {"required": required, "content": {media: {"schema": schema} for media in medias}}


def query(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """Fields that may stand in the query string instead."""
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def in_path(name: str, words: str) -> dict[str, Any]:
    """A part of the path."""
    return {"name": name, "in": "path", "required": True, "description": words, "schema": TEXT}
