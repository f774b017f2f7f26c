"""A real server on a loopback port, in a thread of the test's own process, with tiny models."""

import asyncio
import contextlib
import functools
import mmap
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from dragoman.recipe import SearchConfig
from dragoman.serve import metrics, rate
from dragoman.serve.app import build
from dragoman.serve.protocol import uvicorn_options
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.serve.worker import Shared, make_service
from tiny_bundle import write_tiny_bundle

_KEPT: list[tempfile.TemporaryDirectory[str]] = []  # removed at exit


@functools.cache
def model_folder(*directions: str, search: SearchConfig | None = None) -> Path:
    """A tiny model's folder, the same for all tests; with both ways, its tokenizer has tags."""
    folder = tempfile.TemporaryDirectory(prefix="dragoman-wire-")
    _KEPT.append(folder)
    languages = tuple(sorted({direction.partition("-")[2] for direction in directions})) if len(directions) > 1 else ()
    write_tiny_bundle(Path(folder.name) / "tiny", directions=directions, languages=languages, search=search)
    return Path(folder.name) / "tiny"


def make_tiny_service(
    *, directions: tuple[str, ...] = ("fr-en", "en-fr"), search: SearchConfig | None = None, **settings: Any
) -> Service:
    """A service with a tiny model, as a worker makes it."""
    chosen = Settings(
        model=(str(model_folder(*directions, search=search)),),
        **{"threads": 1, "access_log": "none", "compute_type": "float32", **settings},
    )
    shared = Shared(socket.socket(), mmap.mmap(-1, metrics.table_bytes(1)), mmap.mmap(-1, rate.TABLE_BYTES))
    shared.listener.close()
    return make_service(chosen, shared, 0)


@contextlib.contextmanager
def serving(**settings: Any) -> Iterator[str]:
    """The address of a server that runs until the block ends."""
    service = make_tiny_service(**settings)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build(service), **uvicorn_options()))
    started = threading.Event()

    async def serve() -> None:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not task.done():
            await asyncio.sleep(0.001)
        started.set()
        await task

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(timeout=60)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        service.close()
        listener.close()
