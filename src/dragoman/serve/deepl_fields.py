"""What DeepL's requests have in common: who asks, and fields that must be one of a few."""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request

from dragoman.serve.direction import find_language
from dragoman.serve.fields import Fields
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Client, Service

SCHEME = "deepl-auth-key"


def admit(service: Service, request: Request, fields: Fields) -> Client:
    """Who asks: the key is in a header, or a field where older clients have it."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return service.admit(request, key.strip() if scheme.lower() == SCHEME else fields.text("auth_key"))


def base_language(fields: Fields, name: str, known: Collection[str]) -> str | None:
    """The language that a field names, without its regional variant."""
    code = fields.text(name)
    if not code:
        return None
    language = find_language(code, known)
    if language is None:
        raise Refusal(400, f"Value for '{name}' not supported.")
    return language


def one_of(fields: Fields, name: str, allowed: Collection[str]) -> str | None:
    """The value of a field, if it has one and that may be."""
    value = fields.values.get(name)
    if isinstance(value, bool):
        value = str(value).lower()
    elif value is not None:
        value = str(fields.whole_number(name, 0)) if isinstance(value, int) else fields.text(name)
    if value is None or value == "":
        return None
    if value not in allowed:
        raise Refusal(400, f"Value for '{name}' not supported, expected one of {', '.join(allowed)}.")
    return str(value)
