"""LibreTranslate's routes, described."""

from __future__ import annotations

from typing import Any

from dragoman.serve.spec_parts import (
    CONFIDENCE,
    COUNT,
    DETAILS,
    FLAG,
    FORM,
    JSON,
    MULTIPART,
    TEXT,
    array,
    body,
    in_path,
    query,
    record,
    ref,
    refusals,
    reply,
)

_CODE = {"type": "string", "description": "A language's code, such as `fr`.", "example": "fr"}
_SOURCE = {"type": "string", "description": "The language of the text; `auto` finds it out.", "example": "auto"}
_TARGET = {"type": "string", "description": "The language to translate into.", "example": "en"}
_KEY = {"type": "string", "description": "The API key, where one is needed."}
_FORMAT = {"type": "string", "enum": ["text", "html"], "default": "text"}
_ALTERNATIVES = {"type": "integer", "minimum": 0, "default": 0, "description": "How many other translations to give."}
_ONE = {"type": "string", "example": "Bonjour !"}
_MANY = {"oneOf": [TEXT, array(TEXT, minItems=1)], "description": "A text, or several.", "example": "Bonjour !"}
_TRANSLATE = {
    "source": _SOURCE,
    "target": _TARGET,
    "format": _FORMAT,
    "alternatives": _ALTERNATIVES,
    "details": DETAILS,
    "api_key": _KEY,
}
_SUGGEST = {
    "q": {"type": "string", "description": "The text.", "example": "Le chat dort."},
    "s": {"type": "string", "description": "Its better translation.", "example": "The cat is asleep."},
    "source": _SOURCE,
    "target": _TARGET,
    "api_key": _KEY,
}

LIBRETRANSLATE_SCHEMAS: dict[str, Any] = {
    "Error": record({"error": TEXT}),
    "Detected": record({"confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": _CODE}),
    "Translated": record(
        {
            "translatedText": {"oneOf": [TEXT, array(TEXT)], "description": "A list where `q` was one."},
            "detectedLanguage": {
                "oneOf": [ref("Detected"), array(ref("Detected"))],
                "description": "There if the source was `auto`.",
            },
            "alternatives": {
                "anyOf": [array(TEXT), array(array(TEXT))],
                "description": "There if any were asked for; a text may have fewer.",
            },
            "confidence": {
                "oneOf": [CONFIDENCE, array(CONFIDENCE)],
                "description": "There if `details` was true: how sure the model is of its least sure sentence, 0 to 1.",
            },
            "warnings": {
                "anyOf": [array(TEXT), array(array(TEXT))],
                "description": "There if `details` was true: what may be wrong with the translation.",
            },
        },
        required=["translatedText"],
    ),
    "Language": record({"code": _CODE, "name": TEXT, "targets": array(_CODE)}),
    "NamedLanguage": record({"code": _CODE, "name": TEXT}),
    "FrontendSettings": record(
        {
            "charLimit": {"type": "integer", "description": "Characters of a request; -1 is no limit."},
            "frontendTimeout": COUNT,
            "apiKeys": FLAG,
            "keyRequired": FLAG,
            "suggestions": FLAG,
            "filesTranslation": FLAG,
            "supportedFilesFormat": array(TEXT),
            "language": record({"source": ref("NamedLanguage"), "target": ref("NamedLanguage")}),
        }
    ),
}


def _asks(summary: str, ok: dict[str, Any], fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A POST whose fields may be JSON, a form, or in the query string."""
    return {
        "post": {
            "tags": ["LibreTranslate"],
            "summary": summary,
            "requestBody": body(record(fields, required=()), JSON, FORM, MULTIPART),
            "responses": {"200": ok, **refusals("Error", 400, 403, 429, 456, 503)},
            **more,
        }
    }


def _tells(summary: str, schema: dict[str, Any], media: str = JSON) -> dict[str, Any]:
    """A GET without fields."""
    return {
        "get": {
            "tags": ["LibreTranslate"],
            "summary": summary,
            "responses": {"200": reply(schema, summary, media), **refusals("Error")},
        }
    }


LIBRETRANSLATE_PATHS: dict[str, Any] = {
    "/translate": _asks(
        "Translate a text, or several at once",
        reply(ref("Translated"), "The translation."),
        {"q": _MANY, **_TRANSLATE},
        parameters=query({"q": _ONE, **_TRANSLATE}),
    ),
    "/detect": _asks(
        "Find out the language of a text",
        reply(array(ref("Detected"), minItems=1), "Languages, the likeliest first."),
        {"q": _ONE, "api_key": _KEY},
        parameters=query({"q": _ONE, "api_key": _KEY}),
    ),
    "/suggest": _asks(
        "Suggest a better translation, to learn from",
        reply(record({"success": FLAG}), "It was kept."),
        _SUGGEST,
        parameters=query(_SUGGEST),
    ),
    "/languages": _tells("The languages, and what each can become", array(ref("Language"))),
    "/frontend/settings": _tells("What a page must know", ref("FrontendSettings")),
    "/health": _tells("Whether the server is well", record({"status": {"type": "string", "enum": ["ok"]}})),
    "/spec": _tells("This description", {"type": "object"}),
    "/metrics": {
        "get": {
            "summary": "Counters for Prometheus",
            "description": "Where keys are needed, one must be in the header, as `Authorization: Bearer KEY`.",
            "responses": {
                "200": reply(TEXT, "Prometheus' text format.", "text/plain"),
                **refusals("Error", 400, 403, 429),
            },
        }
    },
    "/translate_file": {
        "post": {
            "tags": ["LibreTranslate"],
            "summary": "Translate a file",
            "requestBody": body(
                record(
                    {
                        "file": {"type": "string", "format": "binary"},
                        "source": _SOURCE,
                        "target": _TARGET,
                        "api_key": _KEY,
                    },
                    required=("file", "source", "target"),
                ),
                MULTIPART,
                required=True,
            ),
            "responses": {
                "200": reply(record({"translatedFileUrl": TEXT}), "Where the translated file can be fetched."),
                **refusals("Error", 400, 403, 429, 456, 503),
            },
        }
    },
    "/download_file/{name}": {
        "get": {
            "tags": ["LibreTranslate"],
            "summary": "Fetch a translated file",
            "parameters": [in_path("name", "As `translatedFileUrl` has it.")],
            "responses": {
                "200": reply({"type": "string", "format": "binary"}, "The file.", "application/octet-stream"),
                **refusals("Error", 400, 403, 404, 429),
            },
        }
    },
}
