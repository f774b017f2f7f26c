"""A worker: one process, one event loop, the models in memory, and the signals that it heeds.

SIGTERM, SIGINT    stop listening, finish what was accepted, exit with 0
SIGHUP             open models, keys and the access log's file again; requests go on meanwhile
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import mmap
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn

from dragoman.engine.ctranslate2_engine import num_cores
from dragoman.errors import DragomanError
from dragoman.serve.access_log import AccessLog
from dragoman.serve.app import build
from dragoman.serve.keys import Keys
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import Models
from dragoman.serve.protocol import uvicorn_options
from dragoman.serve.rate import Buckets
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings

_LOG = logging.getLogger("dragoman.serve")
_BACKLOG = 2048
_ACCEPTED_AT_ONCE = 8
"""Connections that one of several workers takes in a turn, so that a burst is shared among them."""


@dataclass(frozen=True)
class Shared:
    """What the workers of a server share: its socket, and memory for counts and rates."""

    listener: socket.socket
    metrics: mmap.mmap
    rates: mmap.mmap


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves the signals to us: it would end the process by the signal that stopped it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._parent = os.getppid()

    async def on_tick(self, counter: int) -> bool:
        """Also stop when the supervisor is gone: nobody else would tell this worker to."""
        return await super().on_tick(counter) or (self.config.workers > 1 and os.getppid() != self._parent)

    def stop(self) -> None:
        self.should_exit = True


def threads_of(settings: Settings) -> int:
    """Batches that a worker translates at once."""
    return settings.threads or max(1, num_cores() // settings.workers)


def make_service(settings: Settings, shared: Shared, number: int) -> Service:
    """All that a worker needs, its models opened."""
    threads = threads_of(settings)
    return Service(
        settings,
        Models.load(settings.model, settings.compute_type, threads),
        threads=threads,
        metrics=Metrics(shared.metrics, number),
        buckets=Buckets(settings.rate, shared.rates),
        log=AccessLog(settings.access_log, settings.log_text),
        keys=Keys.read(settings.api_keys) if settings.api_keys else None,
    )


def work(settings: Settings, shared: Shared, number: int, on_ready: Callable[[Service], None]) -> None:
    """Serve until a signal says to stop. `number` is the worker's place among all."""
    service = make_service(settings, shared, number)
    service.metrics.count("dragoman_worker_starts_total")
    gc.freeze()  # what is here now stays: no need to look through it again
    asyncio.run(_serve(service, shared.listener, on_ready))
    service.close()


async def _serve(service: Service, listener: socket.socket, on_ready: Callable[[Service], None]) -> None:
    settings = service.settings
    config = uvicorn.Config(
        build(service),
        forwarded_allow_ips=settings.trusted_proxies,
        proxy_headers=bool(settings.trusted_proxies),
        timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
        workers=settings.workers,
        backlog=_BACKLOG if settings.workers == 1 else _ACCEPTED_AT_ONCE,
        **uvicorn_options(),
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    reloading: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = loop.create_task(_reload(service))
        reloading.add(task)
        task.add_done_callback(reloading.discard)

    loop.add_signal_handler(signal.SIGHUP, reload)
    announcing = loop.create_task(_announce(server, service, listener, on_ready))
    await server.serve(sockets=[listener])
    await announcing


async def _announce(
    server: _Server, service: Service, listener: socket.socket, on_ready: Callable[[Service], None]
) -> None:
    while not server.started:
        await asyncio.sleep(0.001)
    listener.listen(_BACKLOG)  # uvicorn's own number here is that of connections taken in a turn
    on_ready(service)


async def _reload(service: Service) -> None:
    """Put new models in the place of the old, which go when the last request that they serve is done."""
    settings = service.settings
    try:
        service.log.reopen()
        keys = Keys.read(settings.api_keys) if settings.api_keys else None
        models = await asyncio.to_thread(Models.load, settings.model, settings.compute_type, threads_of(settings))
    except DragomanError as error:
        _LOG.error("not reloaded, what was there stays: %s", error)
        return
    service.keys, service.models = keys, models
    service.metrics.count("dragoman_reloads_total")
    _LOG.warning("reloaded: %s", models.describe())
