"""DeepL's wire conventions for glossaries: make, list, look at, and remove them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.serve.deepl_fields import admit, base_language
from dragoman.serve.direction import served_languages
from dragoman.serve.fields import Fields, read_fields
from dragoman.serve.glossaries import MOST_NAME_CHARACTERS, GlossaryFolder, GlossaryInfo, parse_entries
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Client, Service

TSV = "text/tab-separated-values"


def routes(service: Service, glossaries: GlossaryFolder | None) -> list[BaseRoute]:
    """The routes for glossaries; without a folder there are none, and none can be made."""

    def act(methods: dict[str, Callable[[Request, Fields, str], Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            fields = await read_fields(request)
            owner = owner_of(admit(service, request, fields))
            do = methods["GET" if request.method == "HEAD" else request.method]
            return await run_in_threadpool(do, request, fields, owner)

        return handler

    def create(request: Request, fields: Fields, owner: str) -> Response:
        return JSONResponse(described(_create(service, folder(glossaries), fields, owner)), status_code=201)

    def list_all(request: Request, fields: Fields, owner: str) -> Response:
        found = glossaries.list(owner) if glossaries is not None else []
        return JSONResponse({"glossaries": [described(info) for info in found]})

    def look(request: Request, fields: Fields, owner: str) -> Response:
        return JSONResponse(described(folder(glossaries).find(request.path_params["id"], owner)[0]))

    def entries(request: Request, fields: Fields, owner: str) -> Response:
        return Response(folder(glossaries).entries(request.path_params["id"], owner), media_type=TSV)

    def delete(request: Request, fields: Fields, owner: str) -> Response:
        folder(glossaries).delete(request.path_params["id"], owner)
        return Response(status_code=204)

    def pairs(request: Request, fields: Fields, owner: str) -> Response:
        named = [{"source_lang": source, "target_lang": target} for source, target in service.models.directions]
        return JSONResponse({"supported_languages": named})

    return [
        Route("/v2/glossaries", act({"POST": create, "GET": list_all}), methods=["GET", "POST"]),
        Route("/v2/glossaries/{id}", act({"GET": look, "DELETE": delete}), methods=["GET", "DELETE"]),
        Route("/v2/glossaries/{id}/entries", act({"GET": entries}), methods=["GET"]),
        Route("/v2/glossary-language-pairs", act({"GET": pairs}), methods=["GET"]),
    ]


def folder(glossaries: GlossaryFolder | None) -> GlossaryFolder:
    """The folder, if the server was given one."""
    if glossaries is None:
        raise Refusal(403, "glossaries are not kept here: the server was started without --glossary-dir")
    return glossaries


def owner_of(client: Client) -> str:
    """Who sees a glossary: those with the same key; without keys, all."""
    return client.name if client.has_key else ""


def described(info: GlossaryInfo) -> dict[str, Any]:
    """A glossary as clients read it."""
    return {
        "glossary_id": info.id,
        "ready": True,
        "name": info.name,
        "source_lang": info.source,
        "target_lang": info.target,
        "creation_time": info.created,
        "entry_count": info.num_terms,
    }


def _create(service: Service, glossaries: GlossaryFolder, fields: Fields, owner: str) -> GlossaryInfo:
    name = fields.text("name")
    if not name or len(name) > MOST_NAME_CHARACTERS:
        raise Refusal(400, f"the glossary needs a name of 1 to {MOST_NAME_CHARACTERS} characters.")
    known = served_languages(service)
    source, target = base_language(fields, "source_lang", known), base_language(fields, "target_lang", known)
    if source is None or target is None:
        raise Refusal(400, f"Parameter '{'source_lang' if source is None else 'target_lang'}' not specified.")
    service.models.check(source, target)
    terms = parse_entries(fields.text("entries") or "", fields.text("entries_format") or "tsv")
    return glossaries.create(name, source, target, terms, owner)
