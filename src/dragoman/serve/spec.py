"""What this server offers, as OpenAPI describes it: GET /spec."""

from __future__ import annotations

from typing import Any

from dragoman import __version__
from dragoman.serve.spec_deepl import DEEPL_PATHS, DEEPL_SCHEMAS
from dragoman.serve.spec_libretranslate import LIBRETRANSLATE_PATHS, LIBRETRANSLATE_SCHEMAS

_SECURITY = {
    "deepl": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`DeepL-Auth-Key` and the key. LibreTranslate's requests have it in the field `api_key`.",
    }
}


def specification(*, with_keys: bool) -> dict[str, Any]:
    """The whole description; keys are in it where they are needed."""
    document: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {
            "title": "dragoman",
            "version": __version__,
            "description": "A translation server that speaks LibreTranslate's and DeepL's conventions.",
            "license": {"name": "Apache-2.0"},
        },
        "tags": [
            {"name": "LibreTranslate", "description": 'Errors are `{"error": "..."}`.'},
            {"name": "DeepL", "description": 'Errors are `{"message": "..."}`.'},
        ],
        "paths": LIBRETRANSLATE_PATHS | DEEPL_PATHS,
        "components": {"schemas": LIBRETRANSLATE_SCHEMAS | DEEPL_SCHEMAS},
    }
    if with_keys:
        document["components"]["securitySchemes"] = _SECURITY
    return document
