"""DeepL's routes, described."""

from __future__ import annotations

from typing import Any

from dragoman.serve.spec_parts import (
    CONFIDENCE,
    COUNT,
    DETAILS,
    FLAG,
    FORM,
    JSON,
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

_ID = in_path("id", "A glossary's `glossary_id`.")
_LANGUAGE = {
    "type": "string",
    "description": "A language's code, in capitals or not; `EN-US` means `EN`.",
    "example": "FR",
}
_TAGS = {"oneOf": [TEXT, array(TEXT)], "description": "Names of tags, in a list or separated by commas; XML only."}
_TRANSLATE = {
    "text": {"oneOf": [array(TEXT, minItems=1), TEXT], "example": ["Bonjour !"]},
    "target_lang": {**_LANGUAGE, "example": "EN-US"},
    "source_lang": {**_LANGUAGE, "description": "Found out if it is not given."},
    "tag_handling": {"type": "string", "enum": ["html", "xml"], "description": "The texts have tags, which stay."},
    "split_sentences": {"type": "string", "enum": ["0", "1", "nonewlines"], "default": "1"},
    "ignore_tags": _TAGS,
    "splitting_tags": _TAGS,
    "non_splitting_tags": _TAGS,
    "outline_detection": FLAG,
    "glossary_id": {"type": "string", "description": "Needs `source_lang`."},
    "formality": {
        "type": "string",
        "enum": ["default", "more", "less", "prefer_more", "prefer_less"],
        "description": "Taken, and not heeded: the models know no formality.",
    },
    "context": {"type": "string", "description": "Taken, and not heeded."},
    "preserve_formatting": {"type": "boolean", "description": "Taken; formatting is always preserved."},
    "details": DETAILS,
}
_CREATE = {
    "name": {"type": "string", "minLength": 1, "maxLength": 1024, "example": "Animals"},
    "source_lang": _LANGUAGE,
    "target_lang": {**_LANGUAGE, "example": "EN"},
    "entries": {"type": "string", "description": "A pair of terms a line.", "example": "chat\tcat"},
    "entries_format": {"type": "string", "enum": ["tsv", "csv"], "default": "tsv"},
}
_KIND = {"type": "string", "enum": ["source", "target"], "default": "source"}

DEEPL_SCHEMAS: dict[str, Any] = {
    "Message": record({"message": TEXT}),
    "Translations": record(
        {
            "translations": array(
                record(
                    {
                        "detected_source_language": _LANGUAGE,
                        "text": TEXT,
                        "billed_characters": COUNT,
                        "confidence": {**CONFIDENCE, "description": "There if `details` was true."},
                        "warnings": array(TEXT, description="There if `details` was true."),
                    },
                    required=("detected_source_language", "text", "billed_characters"),
                ),
                minItems=1,
            )
        }
    ),
    "DeepLLanguage": record(
        {"language": _LANGUAGE, "name": TEXT, "supports_formality": FLAG}, required=("language", "name")
    ),
    "Usage": record({"character_count": COUNT, "character_limit": COUNT}),
    "Glossary": record(
        {
            "glossary_id": TEXT,
            "ready": FLAG,
            "name": TEXT,
            "source_lang": _LANGUAGE,
            "target_lang": _LANGUAGE,
            "creation_time": {"type": "string", "format": "date-time"},
            "entry_count": COUNT,
        }
    ),
    "Glossaries": record({"glossaries": array(ref("Glossary"))}),
    "LanguagePairs": record(
        {"supported_languages": array(record({"source_lang": _LANGUAGE, "target_lang": _LANGUAGE}))}
    ),
}


def _route(summary: str, status: int, ok: dict[str, Any], *refused: int, **more: Any) -> dict[str, Any]:
    answers = {str(status): ok, **refusals("Message", 403, 429, *refused)}
    return {"tags": ["DeepL"], "summary": summary, "responses": answers, **more}


def _list(summary: str, schema: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """What can be asked for by GET, and by POST too."""
    ok = reply(schema, summary)
    return {
        "get": _route(summary, 200, ok, 400, parameters=query(fields)),
        "post": _route(summary, 200, ok, 400, requestBody=body(record(fields, required=()), JSON, FORM)),
    }


DEEPL_PATHS: dict[str, Any] = {
    "/v2/translate": {
        "post": _route(
            "Translate texts",
            200,
            reply(ref("Translations"), "A translation a text, in order."),
            *(400, 404, 456, 503),
            requestBody=body(record(_TRANSLATE, required=("text", "target_lang")), JSON, FORM, required=True),
        )
    },
    "/v2/languages": _list("The languages", array(ref("DeepLLanguage")), {"type": _KIND}),
    "/v2/usage": _list("How many characters were translated", ref("Usage"), {}),
    "/v2/glossary-language-pairs": {
        "get": _route(
            "For which directions glossaries can be made", 200, reply(ref("LanguagePairs"), "All of them."), 400
        )
    },
    "/v2/glossaries": {
        "get": _route("The glossaries", 200, reply(ref("Glossaries"), "The oldest first."), 400),
        "post": _route(
            "Make a glossary",
            201,
            reply(ref("Glossary"), "It was made."),
            *(400, 456),
            requestBody=body(record(_CREATE), JSON, FORM, required=True),
        ),
    },
    "/v2/glossaries/{id}": {
        "get": _route("Look at a glossary", 200, reply(ref("Glossary"), "The glossary."), 400, 404, parameters=[_ID]),
        "delete": _route("Remove a glossary", 204, {"description": "It is gone."}, 400, 404, parameters=[_ID]),
    },
    "/v2/glossaries/{id}/entries": {
        "get": _route(
            "The terms of a glossary",
            200,
            reply(TEXT, "A pair of terms a line.", "text/tab-separated-values"),
            *(400, 404),
            parameters=[_ID],
        )
    },
}
