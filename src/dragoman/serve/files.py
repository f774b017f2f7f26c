"""LibreTranslate's file translation: POST /translate_file, and GET /download_file/NAME for what came of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.serve.direction import AUTO, choose_source, find_language, served_languages
from dragoman.serve.documents import CONTENT_TYPES, Document, extension_of, read
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Client, Service
from dragoman.serve.shelf import KEPT_SECONDS, Shelf

Handler = Callable[[Request], Awaitable[Response]]

_AT_ONCE = 2
"""Files that a worker has in hand at once: each may take tens of times its size in memory."""
_MOST_FIELDS = 16
_FIELD_BYTES = 4096
_DETECTED_CHARACTERS = 4000


@dataclass(frozen=True)
class _Upload:
    """What a request sent."""

    name: str
    data: bytes
    fields: dict[str, str]

    def required(self, name: str) -> str:
        if not self.fields.get(name):
            raise Refusal(400, f"Invalid request: missing {name} parameter")
        return self.fields[name]


def routes(service: Service, shelf: Shelf | None = None) -> list[BaseRoute]:
    """The routes for files."""
    if shelf is None:
        # What the workers of a server have in common is the process that started them.
        shelf = Shelf(os.getpid() if service.settings.workers == 1 else os.getppid())
    return [
        Route("/translate_file", _translate_file(service, shelf), methods=["POST"]),
        Route("/download_file/{name}", _download_file(service, shelf), methods=["GET"]),
    ]


def _translate_file(service: Service, shelf: Shelf) -> Handler:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def translate_file(request: Request) -> Response:
        _check_on(service)
        upload = await _read_upload(request)
        client = service.admit(request, upload.fields.get("api_key") or upload.fields.get("apiKey"))
        if not upload.name:
            raise Refusal(400, "Invalid request: missing file parameter")
        if len(upload.data) > service.settings.file_bytes:
            limit = service.settings.file_bytes
            raise Refusal(400, f"Invalid request: the file has {len(upload.data)} bytes, at most {limit} are taken")
        extension = extension_of(upload.name)
        source, target = upload.required("source"), upload.required("target")
        async with turns:
            document = await run_in_threadpool(read, upload.name, upload.data)
            content = await _translated(service, client, document, source, target)
            name = await run_in_threadpool(shelf.put, content) + extension
        asyncio.get_running_loop().call_later(KEPT_SECONDS + 1, shelf.sweep)
        return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", name=name))})

    return translate_file


def _download_file(service: Service, shelf: Shelf) -> Handler:
    async def download_file(request: Request) -> Response:
        _check_on(service)
        token, dot, extension = request.path_params["name"].partition(".")
        content_type = CONTENT_TYPES.get(dot + extension)
        content = await run_in_threadpool(shelf.fetch, token) if content_type else None
        if content is None:
            raise Refusal(404, "there is no such file: translated files are removed after a while")
        headers = {
            "Content-Disposition": f'attachment; filename="translation{dot}{extension}"',
            "Cache-Control": "private, no-store",
        }
        return Response(content, headers=headers, media_type=content_type)

    return download_file


async def _translated(service: Service, client: Client, document: Document, asked: str, target: str) -> bytes:
    known = served_languages(service)
    target = find_language(target, known) or target
    source = find_language(asked, known) or asked
    texts = document.texts
    if asked == AUTO:
        if target not in service.models.targets:
            raise Refusal(400, f"{target} is not supported")
        candidates = await service.detect("\n".join(texts)[:_DETECTED_CHARACTERS])
        source = choose_source(candidates, target, service.models.directions).language
    if source == target and source in known:
        return await run_in_threadpool(document.render, texts)
    service.models.check(source, target)
    translations = await service.translate(
        texts, source, target, client=client, align=document.needs_alignment, limited=False
    )
    return await run_in_threadpool(document.render, translations)


def _check_on(service: Service) -> None:
    if not service.settings.files:
        raise Refusal(403, "files are not translated here: the server was started with --no-files")


async def _read_upload(request: Request) -> _Upload:
    """The file and the fields of a multipart form; fields may also stand in the query string."""
    fields = dict(request.query_params)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise Refusal(400, "Invalid request: missing file parameter: send a multipart form")
    name, data = "", b""
    try:
        async with request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=_FIELD_BYTES) as form:
            for key, value in form.multi_items():
                if not isinstance(value, UploadFile):
                    fields[key] = value
                elif key == "file":
                    name, data = value.filename or "", await value.read()
    except (HTTPException, MultiPartException, KeyError, ValueError) as error:
        raise Refusal(400, "Invalid request: the form cannot be read: send one file, and a few fields") from error
    return _Upload(name, data, fields)
