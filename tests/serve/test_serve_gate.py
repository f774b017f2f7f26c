"""The gate: bodies bounded and whole, disconnects noticed, headers on every answer, no text in the log."""

import asyncio
import json
import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message

from dragoman.serve.access_log import AccessLog, note
from dragoman.serve.gate import FREE_BYTES, HELD_BYTES, Gate, bearer_key
from dragoman.serve.metrics import Metrics, table_bytes
from dragoman.serve.refusal import Refusal, render
from dragoman.serve.routes import RouteNames
from dragoman.serve.settings import Settings


class Place:
    """A gate around a small application, a log and counters."""

    def __init__(self, folder: Path, held_bytes: int = HELD_BYTES, **changes: Any) -> None:
        self.log_file = folder / "access.log"
        self.reached = asyncio.Event()
        self.was_cancelled = False
        routes = [
            Route("/echo", self._echo, methods=["POST"]),
            Route("/page", self._page),
            Route("/slow", self._slow, methods=["POST"]),
            Route("/broken", self._broken),
            Route("/download_file/{name}", self._page),
            Route("/translate_file", self._echo, methods=["POST"]),
        ]
        names = RouteNames(routes)
        self.metrics = Metrics(mmap.mmap(-1, table_bytes(1)), 0)
        self.metrics.name_routes(names.all)
        self.gate = Gate(
            Starlette(routes=routes),
            settings=Settings(**{"body_bytes": 1009, "file_bytes": 2003, "timeout_seconds": 0.1, **changes}),
            metrics=self.metrics,
            log=AccessLog(str(self.log_file)),
            routes=names,
            held_bytes=held_bytes,
        )

    async def _echo(self, request: Request) -> Response:
        note(characters=len(await request.body()))
        return JSONResponse({"got": (await request.body()).decode()})

    async def _page(self, request: Request) -> Response:
        return HTMLResponse("<p>page")

    async def _slow(self, request: Request) -> Response:
        self.reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return Response()

    async def _broken(self, request: Request) -> Response:
        raise ZeroDivisionError(request.url.query)

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_file.read_text(encoding="utf-8").splitlines()]


class Call:
    """One request to the gate; `messages` is what the server's side of the connection brings."""

    def __init__(self, path: str, messages: Sequence[Message], method: str = "POST", **headers: str) -> None:
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"q=a%20secret%20sentence",
            "root_path": "",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "client": ("192.0.2.7", 4711),
        }
        self._messages = list(messages)
        self.hang_up = asyncio.Event()
        self.sent: list[Message] = []

    async def run(self, place: Place) -> None:
        await place.gate(self.scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._messages:
            return self._messages.pop(0)
        await self.hang_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def json(self) -> Any:
        return json.loads(b"".join(message.get("body", b"") for message in self.sent[1:]))


def body(*parts: bytes, cut_off: bool = False) -> list[Message]:
    messages: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if cut_off:
        return [*messages, {"type": "http.disconnect"}]
    return [*messages, {"type": "http.request", "body": b"", "more_body": False}]


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Place]:
    return lambda **changes: Place(tmp_path, **changes)


def test_a_body_in_parts_arrives_whole(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here, call = place(), Call("/echo", body(b"to", b"ge", b"ther"))
        await call.run(here)
        assert (call.status, call.json) == (200, {"got": "together"})
        assert (here.log[0]["bytes_in"], here.log[0]["characters"]) == (8, 8)

    asyncio.run(run())


def test_a_body_that_is_cut_off_reaches_nobody(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here, call = place(), Call("/echo", body(b"to", cut_off=True))
        await call.run(here)
        assert call.sent == []
        assert here.log[0]["status"] == 499

    asyncio.run(run())


@pytest.mark.parametrize(("path", "limit"), [("/echo", 1009), ("/translate_file", 2003 + (64 << 10))])
def test_a_body_that_is_too_large_is_refused_told_or_not(place: Callable[..., Place], path: str, limit: int) -> None:
    async def run() -> None:
        here = place()
        fits = Call(path, body(b"x" * limit), content_length=str(limit))
        await fits.run(here)
        assert fits.status == 200
        told = Call(path, body(b"x" * (limit + 1)), content_length=str(limit + 1))
        await told.run(here)
        assert (told.status, told.json) == (
            413,
            {"error": f"the body has {limit + 1} bytes, at most {limit} are taken"},
        )
        untold = Call(path, body(b"x" * limit, b"x"))
        await untold.run(here)
        expected = f"the body has more than {limit} bytes, which is all that is taken"
        assert (untold.status, untold.json) == (413, {"error": expected})

    asyncio.run(run())


def test_files_are_no_larger_than_other_bodies_where_none_are_taken(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here, call = place(files=False), Call("/translate_file", body(b"x" * 1013))
        await call.run(here)
        assert call.status == 413

    asyncio.run(run())


def test_all_bodies_together_are_bounded_and_small_ones_always_fit(place: Callable[..., Place]) -> None:
    async def run() -> None:
        size = 5 * FREE_BYTES
        here = place(held_bytes=2 * (size - FREE_BYTES), body_bytes=size, timeout_seconds=60)
        held = [Call("/echo", body(b"x" * size)[:1]) for _ in range(2)]  # their ends do not come
        tasks = [asyncio.create_task(call.run(here)) for call in held]
        await asyncio.sleep(0)
        refused, small = Call("/echo", body(b"x" * size)), Call("/echo", body(b"x" * FREE_BYTES))
        await asyncio.gather(refused.run(here), small.run(here))
        assert (refused.status, refused.headers["retry-after"], small.status) == (503, "5", 200)
        expected = "too many large requests are under way: try again later, or send less at once"
        assert refused.json == {"error": expected}
        held[0].hang_up.set()
        await tasks[0]
        again = Call("/echo", body(b"x" * size))
        await again.run(here)
        assert again.status == 200
        for call in held:
            call.hang_up.set()
        await asyncio.gather(*tasks)
        assert here.gate._held_bytes == 0

    asyncio.run(run())


def test_the_largest_body_that_is_allowed_fits_alone(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here, call = place(held_bytes=1, body_bytes=100_003), Call("/echo", body(b"x" * 50_000, b"x" * 50_003))
        await call.run(here)
        assert call.status == 200

    asyncio.run(run())


def test_a_body_that_does_not_come_is_not_waited_for(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here, call = place(), Call("/v2/translate", body(b"slow")[:1])
        await call.run(here)
        assert (call.status, call.json) == (408, {"message": "the body did not come in 0.1 seconds"})

    asyncio.run(run())


def test_who_hangs_up_is_cancelled(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here, call = place(), Call("/slow", body(b"x"))
        task = asyncio.create_task(call.run(here))
        await here.reached.wait()
        call.hang_up.set()
        await task
        assert here.was_cancelled
        assert (call.sent, here.log[0]["status"]) == ([], 499)
        assert 'dragoman_requests_total{route="/slow",status="499"} 1' in here.metrics.text()

    asyncio.run(run())


def test_every_answer_has_headers_that_keep_browsers_from_harm(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here = place()
        for call in (Call("/echo", body(b"x")), Call("/nowhere", body()), Call("/page", body(), method="GET")):
            await call.run(here)
            assert call.headers["x-content-type-options"] == "nosniff"
            assert call.headers["x-frame-options"] == "DENY"
            assert call.headers["referrer-policy"] == "no-referrer"
            assert call.headers["access-control-allow-origin"] == "*"
            policy = call.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert ("script-src 'self'" in policy) == (call.scope["path"] == "/page")

    asyncio.run(run())


def test_pages_of_other_origins_may_ask_first(place: Callable[..., Place]) -> None:
    async def run() -> None:
        anyone, one, nobody = (place(cors=cors) for cors in ("*", "https://example.org", "none"))
        for here, origin in ((anyone, "*"), (one, "https://example.org"), (nobody, None)):
            call = Call("/echo", body(), method="OPTIONS")
            await call.run(here)
            assert call.headers.get("access-control-allow-origin") == origin
            assert call.status == (204 if origin else 405)
            assert ("origin" in call.headers.get("vary", "").lower()) == (here is one)

    asyncio.run(run())


def test_an_error_of_ours_is_told_by_its_place_and_not_by_its_text(
    place: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        here, call = place(), Call("/broken", body(), method="GET")
        await call.run(here)
        assert call.status == 500
        assert "ZeroDivisionError" in caplog.text
        assert "_broken" in caplog.text
        assert "secret" not in caplog.text
        assert here.log[0]["status"] == 500

    asyncio.run(run())


def test_the_log_has_neither_query_strings_nor_the_names_of_files(place: Callable[..., Place]) -> None:
    async def run() -> None:
        here = place()
        await Call("/download_file/a-secret-name.txt", body(), method="GET").run(here)
        await Call("/" + "n" * 1000, body(), method="GET").run(here)
        download, nowhere = here.log
        assert "secret" not in here.log_file.read_text(encoding="utf-8")
        assert (download["route"], download["status"], download["address"]) == (
            "/download_file/{name}",
            200,
            "192.0.2.7",
        )
        assert (nowhere["route"], nowhere["status"], len(nowhere["path"])) == ("other", 404, 100)

    asyncio.run(run())


def test_a_refusal_can_say_anything() -> None:
    assert json.loads(bytes(render("/translate", 400, "\ud801 is not supported").body)) == {
        "error": "? is not supported"
    }


@pytest.mark.parametrize(
    ("header", "key"),
    [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("DeepL-Auth-Key abc", None), ("abc", None), (None, None)],
)
def test_a_key_may_stand_in_the_header(header: str | None, key: str | None) -> None:
    headers = [(b"authorization", header.encode())] if header else []
    assert bearer_key(Request({"type": "http", "headers": headers})) == key


def test_a_refusal_says_when_to_come_again_in_whole_seconds() -> None:
    assert Refusal(503, "full", retry_after_seconds=0.2).headers == {"Retry-After": "1"}
    assert Refusal(429, "often", retry_after_seconds=17.1).headers == {"Retry-After": "18"}
    assert Refusal(400, "no").headers == {}
