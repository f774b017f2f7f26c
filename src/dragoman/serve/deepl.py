"""DeepL's wire conventions, version 2: /v2/translate, /v2/languages and /v2/usage; glossaries are next door."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.serve import deepl_glossaries
from dragoman.serve.deepl_fields import admit, base_language, one_of
from dragoman.serve.direction import detect_sources, served_languages, translate_each
from dragoman.serve.fields import Fields, read_fields
from dragoman.serve.glossaries import GlossaryFolder
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Client, Service
from dragoman.text.language_names import name_of
from dragoman.translator import Glossary, Translation
from dragoman.translator.markup import Markup, parse

NO_LIMIT = 1_000_000_000_000
"""What /v2/usage calls the limit where there is none: clients expect a number."""
VARIANTS = {
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
}
"""As targets, DeepL's clients know these languages by their variants alone; here they are all the same."""
SPLITS = ("0", "1", "nonewlines", "default", "false", "true")
_LINE_END = re.compile(r"(\r\n|\r|\n)")
FORMALITIES = ("default", "more", "less", "prefer_more", "prefer_less")

Handler = Callable[[Request], Awaitable[Response]]


def routes(service: Service) -> list[BaseRoute]:
    """DeepL's routes. Lists may be asked for by POST too."""
    folder = service.settings.glossary_dir
    glossaries = GlossaryFolder(Path(folder)) if folder is not None else None
    return [
        Route("/v2/translate", _translate(service, glossaries), methods=["POST"]),
        Route("/v2/languages", _languages(service), methods=["GET", "POST"]),
        Route("/v2/usage", _usage(service), methods=["GET", "POST"]),
        *deepl_glossaries.routes(service, glossaries),
    ]


def languages(service: Service, kind: str) -> list[dict[str, Any]]:
    """The languages as sources or as targets."""
    if kind == "source":
        return [{"language": one.code.upper(), "name": one.name} for one in service.models.languages]
    named = [pair for code in service.models.targets for pair in VARIANTS.get(code, ((code.upper(), name_of(code)),))]
    return [{"language": code, "name": name, "supports_formality": False} for code, name in named]


def _translate(service: Service, glossaries: GlossaryFolder | None) -> Handler:
    async def translate(request: Request) -> Response:
        fields = await read_fields(request)
        client = admit(service, request, fields)
        texts = fields.texts("text")
        if not texts:
            raise Refusal(400, "Parameter 'text' not specified.")
        service.check_sizes(texts, 413)
        known = served_languages(service)
        target = base_language(fields, "target_lang", service.models.targets)
        if target is None:
            raise Refusal(400, "Parameter 'target_lang' not specified.")
        source = base_language(fields, "source_lang", known)
        one_of(fields, "formality", FORMALITIES)
        glossary = await run_in_threadpool(_glossary, fields, source, target, client, glossaries)
        tags = one_of(fields, "tag_handling", ("html", "xml"))
        split = one_of(fields, "split_sentences", SPLITS)
        with_details = fields.flag("details")
        billed = list(map(len, texts))
        if split == "nonewlines" and tags is None:  # in texts with tags a line's end is no sentence's end anyway
            texts = list(map(join_lines, texts))
        sources = [source] * len(texts) if source else await _detect(service, texts, target, client)
        translations = await translate_each(
            service, texts, sources, target, client=client, glossary=glossary,
            markup=_parser(fields, tags) if tags else None, split_sentences=split not in ("0", "false"),
        )  # fmt: skip
        found = [
            {
                "detected_source_language": language.upper(),
                "text": translation.text,
                "billed_characters": num_characters,
                **(_details(translation) if with_details else {}),
            }
            for language, translation, num_characters in zip(sources, translations, billed, strict=True)
        ]
        return JSONResponse({"translations": found})

    return translate


def join_lines(text: str) -> str:
    """A text whose lines are not sentences: those of a paragraph become one; blank lines stay.

    >>> join_lines("Le chat\\ndort.\\n\\nIl rêve.")
    'Le chat dort.\\n\\nIl rêve.'
    """
    first, *others = _LINE_END.split(text)
    joined, was_blank = [first], not first.strip()
    for end, line in zip(others[::2], others[1::2], strict=True):
        is_blank = not line.strip()
        joined += [end if is_blank or was_blank else " ", line]
        was_blank = is_blank
    return "".join(joined)


async def _detect(service: Service, texts: Sequence[str], target: str, client: Client) -> list[str]:
    return [one.language for one in await detect_sources(service, texts, target, client)]


def _details(translation: Translation) -> dict[str, Any]:
    """What DeepL does not tell: how sure the model is, and what may be wrong."""
    return {"confidence": round(translation.confidence, 4), "warnings": list(translation.warnings)}


def _parser(fields: Fields, tags: str) -> Callable[[str], Markup]:
    """How texts with tags are read."""
    if tags == "html":
        return parse
    return functools.partial(
        parse,
        xml=True,
        ignore_tags=_names(fields, "ignore_tags"),
        splitting_tags=_names(fields, "splitting_tags"),
        non_splitting_tags=_names(fields, "non_splitting_tags"),
        outline_detection=fields.flag("outline_detection", True),
    )


def _names(fields: Fields, name: str) -> tuple[str, ...]:
    """Names in a list, or separated by commas."""
    return tuple(one.strip() for text in fields.texts(name) for one in text.split(",") if one.strip())


def _glossary(
    fields: Fields, source: str | None, target: str, client: Client, glossaries: GlossaryFolder | None
) -> Glossary | None:
    """The glossary that is asked for, if it is for this direction."""
    id = fields.text("glossary_id")
    if not id:
        return None
    if source is None:
        raise Refusal(400, "source_lang is required with glossary_id.")
    info, glossary = deepl_glossaries.folder(glossaries).compiled(id, deepl_glossaries.owner_of(client))
    if (info.source, info.target) != (source, target):
        raise Refusal(400, f"the glossary is for {info.source} to {info.target}, not for {source} to {target}.")
    return glossary


def _languages(service: Service) -> Handler:
    async def answer(request: Request) -> Response:
        fields = await read_fields(request)
        admit(service, request, fields)
        return JSONResponse(languages(service, one_of(fields, "type", ("source", "target")) or "source"))

    return answer


def _usage(service: Service) -> Handler:
    async def usage(request: Request) -> Response:
        client = admit(service, request, await read_fields(request))
        limit = service.settings.quota or NO_LIMIT
        return JSONResponse({"character_count": service.characters(client), "character_limit": limit})

    return usage
