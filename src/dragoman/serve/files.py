"""LibreTranslate's file translation: POST /translate_file, and GET /download_file/NAME for what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.documents import CONTENT_TYPES, Document, extension_of, read
from dragoman.serve.direction import AUTO, choose_source, served_languages, translate_each
from dragoman.serve.fields import Upload, read_fields
from dragoman.serve.libretranslate import key_of, language, required
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Client, Service
from dragoman.serve.shelf import KEPT_SECONDS, Shelf
from dragoman.translator import Translation

Handler = Callable[[Request], Awaitable[Response]]

_AT_ONCE = 2
"""Files that a worker has in hand at once: each may take tens of times its size in memory."""
_MOST_WAITING = 8
_RETRY_SECONDS = 10.0
_DETECTED_CHARACTERS = 4000


class Turns:
    """Who may have a file translated: a few at once, each with one file, while a few more wait, each with one more."""

    def __init__(self, at_once: int = _AT_ONCE, most_waiting: int = _MOST_WAITING) -> None:
        self._at_once = at_once
        self._most_waiting = most_waiting
        self._busy: set[str] = set()
        self._waiting: dict[str, asyncio.Future[None]] = {}  # in the order in which they came

    @contextlib.asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it; refuses (503) when too many wait, or the client waits already."""
        if client in self._busy or len(self._busy) >= self._at_once:
            await self._wait(client)
        else:
            self._busy.add(client)
        try:
            yield
        finally:
            self._leave(client)

    async def _wait(self, client: str) -> None:
        if client in self._waiting:
            message = "a file of yours is waiting already: send one after the other"
            raise Refusal(503, message, retry_after_seconds=_RETRY_SECONDS)
        if len(self._waiting) >= self._most_waiting:
            message = f"{self._most_waiting} files are waiting, that is all this server can take: try again later"
            raise Refusal(503, message, retry_after_seconds=_RETRY_SECONDS)
        called = self._waiting[client] = asyncio.get_running_loop().create_future()
        try:
            await called
        except asyncio.CancelledError:
            if self._waiting.get(client) is called:
                del self._waiting[client]
            else:  # it was called in the same moment
                self._leave(client)
            raise

    def _leave(self, client: str) -> None:
        self._busy.discard(client)
        for other, called in list(self._waiting.items()):
            if len(self._busy) < self._at_once and other not in self._busy and not called.done():
                del self._waiting[other]
                self._busy.add(other)
                called.set_result(None)


@dataclass(frozen=True)
class _Opened:
    """A file that was read, and what there is to know of it before it is translated."""

    document: Document
    texts: tuple[str, ...]
    needs_alignment: bool
    beginning: str


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
    turns = Turns()
    # As many threads as turns: one that is still busy with a file that was given up keeps the next from starting.
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="files")

    async def translate_file(request: Request) -> Response:
        _check_on(service)
        fields = await read_fields(request, with_file=True)
        client = service.admit(request, key_of(fields))
        upload = fields.uploads.get("file")
        if upload is None or not upload.name:
            raise Refusal(400, "Invalid request: missing file parameter: send a multipart form")
        if len(upload.data) > service.settings.file_bytes:
            limit = service.settings.file_bytes
            raise Refusal(400, f"Invalid request: the file has {len(upload.data)} bytes, at most {limit} are taken")
        extension = extension_of(upload.name)
        source, target = required(fields, "source"), required(fields, "target")
        loop = asyncio.get_running_loop()
        async with service.within(service.settings.file_seconds), turns.turn(client.name):
            opened = await loop.run_in_executor(pool, _open, upload)
            translations = await _translated(service, client, opened, source, target)
            content = await loop.run_in_executor(pool, opened.document.render, translations)
            name = await loop.run_in_executor(pool, shelf.put, content) + extension
        loop.call_later(KEPT_SECONDS + 1, shelf.sweep)
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


def _open(upload: Upload) -> _Opened:
    document = read(upload.name, upload.data)
    texts = document.texts
    return _Opened(document, texts, document.needs_alignment, "\n".join(texts)[:_DETECTED_CHARACTERS])


async def _translated(
    service: Service, client: Client, opened: _Opened, asked: str, target: str
) -> list[Translation] | tuple[str, ...]:
    """The translations of a file's texts, or the texts themselves where they are in the target language."""
    source, target = language(service, asked), language(service, target)
    if asked == AUTO:
        if target not in service.models.targets:
            raise Refusal(400, f"{target} is not supported")
        candidates = await service.detect(opened.beginning)
        source = choose_source(candidates, target, service.models.directions).language
    if source == target and source in served_languages(service):
        return opened.texts
    service.models.check(source, target)
    return await translate_each(
        service, opened.texts, [source] * len(opened.texts), target,
        client=client, align=opened.needs_alignment, limited=False,
    )  # fmt: skip


def _check_on(service: Service) -> None:
    if not service.settings.files:
        raise Refusal(403, "files are not translated here: the server was started with --no-files")
