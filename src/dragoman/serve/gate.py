"""The door of the server: what holds for every request, whatever it asks for.

- Its body is read whole before anything else happens: bounded (413), in time (408). One that is cut off ends here.
- The bodies of all requests together are bounded too (503): nobody's key or rate is known before they are read.
- While it is being served, the connection is watched: who hangs up is cancelled, and leaves the queue.
- Every answer has headers that keep browsers from guessing, framing and leaking; pages may load only what is ours.
- Every request is counted and logged, with what became of it; its text is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve import access_log
from dragoman.serve.access_log import AccessLog
from dragoman.serve.metrics import OTHER, Metrics
from dragoman.serve.refusal import Refusal, render
from dragoman.serve.routes import RouteNames
from dragoman.serve.settings import Settings

HUNG_UP = 499
"""The status, in log and metrics, of a request whose client did not wait for the answer."""
HELD_BYTES = 256 << 20
"""What the bodies of all requests that a worker has may take, the beginning of each apart."""
FREE_BYTES = 16 << 10
"""The beginning of a body, which always fits: who sends much keeps nobody out who sends little."""
_RETRY_SECONDS = 5.0
_LOG = logging.getLogger("dragoman.serve")
_FORM_BYTES = 64 << 10
"""What a form has around its file."""
_SHOWN_CHARACTERS = 100
_DISCARD_BYTES, _DISCARD_SECONDS = 64 << 20, 5.0
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'"
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class _HungUpError(Exception):
    """The client is gone."""


class _Answer:
    """What is being sent, with the headers that every answer has."""

    def __init__(self, send: Send, cors: str) -> None:
        self._send = send
        self._cors = cors
        self.status = 0
        self.num_bytes = 0
        self.is_complete = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._add_headers(MutableHeaders(scope=message))
        elif message["type"] == "http.response.body":
            self.num_bytes += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)
        await self._send(message)

    def _add_headers(self, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        is_page = headers.get("content-type", "").startswith("text/html")
        headers.setdefault("Content-Security-Policy", _PAGE if is_page else _NOTHING)
        if self._cors != "none":
            headers["Access-Control-Allow-Origin"] = self._cors
            headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
            headers["Access-Control-Allow-Methods"] = "GET, POST, DELETE, OPTIONS"
            headers["Access-Control-Max-Age"] = "86400"
            if self._cors != "*":
                headers.add_vary_header("Origin")


@dataclass
class _Body:
    """What a client has sent so far. What was taken away still counts until the request is done: somebody has it."""

    parts: list[bytes] = field(default_factory=list)
    num_bytes: int = 0

    @property
    def num_held_bytes(self) -> int:
        return max(0, self.num_bytes - FREE_BYTES)

    def add(self, part: bytes) -> None:
        self.parts.append(part)
        self.num_bytes += len(part)

    def take(self) -> bytes:
        whole = b"".join(self.parts)
        self.parts.clear()
        return whole


class Gate:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        metrics: Metrics,
        log: AccessLog,
        routes: RouteNames,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._app = app
        # The largest body that is allowed fits when there is no other.
        self._most_held_bytes = max(held_bytes, settings.body_bytes, settings.file_bytes + _FORM_BYTES)
        self._held_bytes = 0
        self._settings = settings
        self._metrics = metrics
        self._log = log
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.monotonic()
        notes = access_log.begin()
        answer = _Answer(send, self._settings.cors)
        body = _Body()
        try:
            await self._read(scope, receive, body)
            if scope["method"] == "OPTIONS" and self._settings.cors != "none":
                await _empty(answer.send)
            else:
                await self._serve(scope, body, receive, answer)
        except _HungUpError:
            answer.status = HUNG_UP
        except Refusal as refusal:
            headers = {**refusal.headers, "Connection": "close"}  # the rest of the body may still come
            await render(scope["path"], refusal.status, refusal.message, headers)(scope, receive, answer.send)
        except Exception as error:
            await self._fail(scope, receive, answer, error)
        finally:
            seconds = time.monotonic() - begin
            self._metrics.request(self._routes.name(scope["path"]), answer.status, seconds)
            self._write(scope, notes, answer, seconds, body.num_bytes)
            self._held_bytes -= body.num_held_bytes

    async def _read(self, scope: Scope, receive: Receive, body: _Body) -> None:
        """Fill the body."""
        limit = self._settings.body_bytes
        if self._settings.files and self._routes.takes_files(scope["path"]):
            limit = max(limit, self._settings.file_bytes + _FORM_BYTES)
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > limit:
            await _discard(receive)
            raise Refusal(413, f"the body has {length} bytes, at most {limit} are taken")
        has_more = True
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _HungUpError
                    held_before = body.num_held_bytes
                    body.add(message.get("body", b""))
                    self._held_bytes += body.num_held_bytes - held_before
                    has_more = message.get("more_body", False)
                    if refusal := self._too_much(body, limit):
                        body.parts.clear()
                        if has_more:
                            await _discard(receive)
                        raise refusal
        except TimeoutError as error:
            raise Refusal(408, f"the body did not come in {self._settings.timeout_seconds:g} seconds") from error

    def _too_much(self, body: _Body, limit: int) -> Refusal | None:
        """What is to be said of a body that is larger than there is room for."""
        if body.num_bytes > limit:
            return Refusal(413, f"the body has more than {limit} bytes, which is all that is taken")
        if body.num_held_bytes and self._held_bytes > self._most_held_bytes:
            message = "too many large requests are under way: try again later, or send less at once"
            return Refusal(503, message, retry_after_seconds=_RETRY_SECONDS)
        return None

    async def _serve(self, scope: Scope, body: _Body, receive: Receive, answer: _Answer) -> None:
        """Run the application, and stop it if the client hangs up."""
        is_read = False

        async def replay() -> Message:
            nonlocal is_read
            if not is_read:
                is_read = True
                return {"type": "http.request", "body": body.take(), "more_body": False}
            return await watcher

        async def serve() -> None:
            await self._app(scope, replay, answer.send)

        serving = asyncio.create_task(serve())
        watcher = asyncio.create_task(_until_disconnect(receive))
        try:
            await asyncio.wait((serving, watcher), return_when=asyncio.FIRST_COMPLETED)
            if not serving.done() and not answer.is_complete:
                raise _HungUpError
            await serving
        finally:
            for task in (serving, watcher):
                task.cancel()
            await asyncio.gather(serving, watcher, return_exceptions=True)

    async def _fail(self, scope: Scope, receive: Receive, answer: _Answer, error: Exception) -> None:
        """An error of ours: 500, and where it was; its message may quote the request, so it is for --log-text."""
        where = "".join(traceback.format_tb(error.__traceback__))
        message = f"{type(error).__name__}: {error}" if self._log.log_text else type(error).__name__
        _LOG.error("%s %s failed\n%s%s", scope["method"], self._routes.name(scope["path"]), where, message)
        if not answer.status:
            response = render(scope["path"], 500, "Internal server error: see the server's log")
            await response(scope, receive, answer.send)

    def _write(
        self, scope: Scope, notes: MutableMapping[str, Any], answer: _Answer, seconds: float, num_read: int
    ) -> None:
        client, route = scope.get("client"), self._routes.name(scope["path"])
        # What is behind a route's name may be a secret, as a translated file's is.
        known = {"route": route} if route != OTHER else {"route": route, "path": scope["path"][:_SHOWN_CHARACTERS]}
        self._log.write(
            method=scope["method"],
            **known,
            status=answer.status,
            seconds=round(seconds, 4),
            address=client[0] if client else None,
            bytes_in=num_read,
            bytes_out=answer.num_bytes,
            **notes,
        )


def bearer_key(request: Request) -> str | None:
    """The key in a request's header, where what is neither LibreTranslate's nor DeepL's has it."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


async def _until_disconnect(receive: Receive) -> Message:
    """Wait until the client is gone; the body was read before."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message


async def _discard(receive: Receive) -> None:
    """Read on for a while: a client that is still sending would not see an answer before the connection breaks."""
    num_bytes = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while num_bytes < _DISCARD_BYTES:
                message = await receive()
                num_bytes += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


async def _empty(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
