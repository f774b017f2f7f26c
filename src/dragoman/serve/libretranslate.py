"""LibreTranslate's wire conventions: /translate, /detect, /languages, /suggest, and what its pages ask for.

What its clients look for is kept to the letter: the names in the answers, when they are there and when they are not,
and the sentences of refusals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.serve import suggestions
from dragoman.serve.direction import (
    AUTO,
    Detected,
    detect_sources,
    find_language,
    served_languages,
    translate_each,
)
from dragoman.serve.fields import Fields, read_fields
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service
from dragoman.serve.spec import specification
from dragoman.text.language_names import name_of
from dragoman.translator.markup import parse

FORMATS = ("text", "html")
_FRONTEND_TIMEOUT_MS = 500
_LEAST_CONFIDENCE = 0.01
"""Of a language that is named besides the likeliest."""

Handler = Callable[[Request], Awaitable[Response]]


def routes(service: Service) -> list[BaseRoute]:
    """LibreTranslate's routes, but for files."""
    return [
        Route("/translate", _translate(service), methods=["POST"]),
        Route("/detect", _detect(service), methods=["POST"]),
        Route("/suggest", _suggest(service), methods=["POST"]),
        Route("/languages", _answer(lambda: languages(service)), methods=["GET"]),
        Route("/frontend/settings", _answer(lambda: frontend_settings(service)), methods=["GET"]),
        Route("/health", _answer(lambda: {"status": "ok"}), methods=["GET"]),
        Route("/spec", _answer(lambda: specification(with_keys=service.keys is not None)), methods=["GET"]),
    ]


def languages(service: Service) -> list[dict[str, Any]]:
    """All languages; one that nothing is translated from has no targets."""
    targets = {language.code: language.targets for language in service.models.languages}
    return [
        {"code": code, "name": name_of(code), "targets": list(targets.get(code, ()))}
        for code in served_languages(service)
    ]


def frontend_settings(service: Service) -> dict[str, Any]:
    """What a page must know before it can offer anything."""
    from dragoman.documents import EXTENSIONS

    settings = service.settings
    source, target = service.models.directions[0]
    return {
        "charLimit": settings.char_limit or -1,
        "frontendTimeout": _FRONTEND_TIMEOUT_MS,
        "apiKeys": service.keys is not None,
        "keyRequired": service.keys is not None,
        "suggestions": settings.suggestions is not None,
        "filesTranslation": settings.files,
        "supportedFilesFormat": list(EXTENSIONS) if settings.files else [],
        "language": {
            "source": {"code": source, "name": name_of(source)},
            "target": {"code": target, "name": name_of(target)},
        },
    }


def required(fields: Fields, name: str) -> str:
    """A field that must be there."""
    value = fields.text(name)
    if not value:
        raise Refusal(400, f"Invalid request: missing {name} parameter")
    return value


def language(service: Service, code: str) -> str:
    """The language that a code means; the code itself where none is served, which `translate` refuses by that name."""
    return find_language(code, served_languages(service)) or code


def key_of(fields: Fields) -> str | None:
    """The API key, by either of the names that clients give it."""
    return fields.text("api_key") or fields.text("apiKey")


def described(detected: Detected) -> dict[str, Any]:
    """A detected language as clients read it: the confidence is out of 100."""
    return {"confidence": round(100 * detected.confidence, 1), "language": detected.language}


def _answer(make: Callable[[], Any]) -> Handler:
    async def answer(request: Request) -> Response:
        return JSONResponse(make())

    return answer


def _translate(service: Service) -> Handler:
    async def translate(request: Request) -> Response:
        fields = await read_fields(request)
        client = service.admit(request, key_of(fields))
        if not fields.has("q"):
            raise Refusal(400, "Invalid request: missing q parameter")
        texts, is_list = fields.texts("q"), fields.is_list("q")
        asked, target = required(fields, "source"), language(service, required(fields, "target"))
        format = fields.text("format") or "text"
        if format not in FORMATS:
            raise Refusal(400, f"{format} format is not supported")
        alternatives = max(0, fields.whole_number("alternatives", 0))
        with_details = fields.flag("details")
        service.check_sizes(texts)
        if target not in service.models.targets:
            raise Refusal(400, f"{target} is not supported")
        if asked == AUTO:
            detected = await detect_sources(service, texts, target, client)
        else:
            detected = [Detected(language(service, asked), 1.0)] * len(texts)
        translations = await translate_each(
            service, texts, [one.language for one in detected], target,
            client=client, alternatives=alternatives, markup=parse if format == "html" else None,
        )  # fmt: skip
        answer: dict[str, list[Any]] = {"translatedText": [translation.text for translation in translations]}
        if asked == AUTO:
            answer["detectedLanguage"] = [described(one) for one in detected]
        if alternatives:
            answer["alternatives"] = [list(translation.alternatives) for translation in translations]
        if with_details:
            answer["confidence"] = [round(translation.confidence, 4) for translation in translations]
            answer["warnings"] = [list(translation.warnings) for translation in translations]
        return JSONResponse(answer if is_list else {name: values[0] for name, values in answer.items()})

    return translate


def _detect(service: Service) -> Handler:
    async def detect(request: Request) -> Response:
        fields = await read_fields(request)
        service.admit(request, key_of(fields))
        if not fields.has("q"):
            raise Refusal(400, "Invalid request: missing q parameter")
        texts = fields.texts("q")
        service.check_sizes(texts)
        best, *others = [Detected(*one) for one in await service.detect("\n".join(texts))]
        found = [best, *(one for one in others if one.confidence >= _LEAST_CONFIDENCE)]
        return JSONResponse([described(one) for one in found])

    return detect


def _suggest(service: Service) -> Handler:
    async def suggest(request: Request) -> Response:
        fields = await read_fields(request)
        client = service.admit(request, key_of(fields))
        if service.settings.suggestions is None:
            raise Refusal(403, "suggestions are not taken here: the server was started without --suggestions")
        line = suggestions.line_of(required(fields, "q"), required(fields, "s"))
        asked, target = required(fields, "source"), language(service, required(fields, "target"))
        source = language(service, asked)
        if asked == AUTO:
            source = (await detect_sources(service, [required(fields, "q")], target, client))[0].language
        service.models.check(source, target)
        file = suggestions.file_of(service.settings.suggestions, source, target)
        await run_in_threadpool(suggestions.append, file, line)
        return JSONResponse({"success": True})

    return suggest
