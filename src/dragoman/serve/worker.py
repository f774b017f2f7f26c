"""A worker: one process, one event loop, the models in memory, and the signals that it heeds.

SIGTERM, SIGINT    stop listening, finish what was accepted, exit with 0
SIGHUP             open models, keys and the access log's file again; requests go on meanwhile. One at a time, and one
                   that comes while all is first loaded is heeded afterwards
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import math
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
from dragoman.serve.supervisor import Heartbeats

_LOG = logging.getLogger("dragoman.serve")
_BACKLOG = 2048
_ACCEPTED_AT_ONCE = 8
"""Connections that one of several workers takes in a turn, so that a burst is shared among them."""
_BEAT_SECONDS = 0.5


@dataclass(frozen=True)
class Shared:
    """What the workers of a server share: its socket, memory for counts and rates, and who looks after them.

    `supervisor` is a process id, from before there was a worker; a single process has none.
    """

    listener: socket.socket
    metrics: mmap.mmap
    rates: mmap.mmap
    supervisor: int | None = None
    heartbeats: Heartbeats | None = None


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves the signals to us: it would end the process by the signal that stopped it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def __init__(self, config: uvicorn.Config, supervisor: int | None) -> None:
        super().__init__(config)
        self._supervisor = supervisor

    async def on_tick(self, counter: int) -> bool:
        """Also stop when the supervisor is gone: nobody else would tell this worker to."""
        is_orphan = self._supervisor is not None and os.getppid() != self._supervisor
        return await super().on_tick(counter) or is_orphan

    def stop(self) -> None:
        self.should_exit = True


def threads_of(settings: Settings) -> int:
    """Batches that a worker translates at once."""
    return settings.threads or max(1, num_cores() // settings.workers)


def make_service(settings: Settings, shared: Shared, number: int) -> Service:
    """All that a worker needs, its models opened."""
    threads = threads_of(settings)
    metrics = Metrics(shared.metrics, number)
    on_lost = functools.partial(metrics.count, "dragoman_log_lines_lost_total")
    return Service(
        settings,
        Models.load(settings.model, settings.compute_type, threads, settings.memory),
        threads=threads,
        metrics=metrics,
        buckets=Buckets(settings.rate, shared.rates),
        log=AccessLog(settings.access_log, settings.log_text, on_lost),
        keys=Keys.read(settings.api_keys) if settings.api_keys else None,
    )


def work(settings: Settings, shared: Shared, number: int, on_ready: Callable[[Service], None]) -> None:
    """Serve until a signal says to stop. `number` is the worker's place among all."""
    reload_asked = asyncio.Event()
    signal.signal(signal.SIGHUP, lambda *_: reload_asked.set())
    service = make_service(settings, shared, number)
    service.metrics.count("dragoman_worker_starts_total")
    gc.freeze()  # what is here now stays: no need to look through it again
    asyncio.run(_serve(service, shared, number, reload_asked, on_ready))
    service.close()


async def _serve(
    service: Service, shared: Shared, number: int, reload_asked: asyncio.Event, on_ready: Callable[[Service], None]
) -> None:
    settings = service.settings
    config = uvicorn.Config(
        build(service),
        forwarded_allow_ips=settings.trusted_proxies,
        proxy_headers=bool(settings.trusted_proxies),
        timeout_graceful_shutdown=math.ceil(settings.patience_seconds),
        workers=settings.workers,
        backlog=_BACKLOG if settings.workers == 1 else _ACCEPTED_AT_ONCE,
        **uvicorn_options(),
    )
    server = _Server(config, shared.supervisor)
    loop = asyncio.get_running_loop()
    for stopping in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(stopping, server.stop)
    loop.add_signal_handler(signal.SIGHUP, reload_asked.set)
    announcing = loop.create_task(_announce(server, service, shared.listener, on_ready))
    # Both go on until the last request is served, and end with the loop.
    beside = [loop.create_task(beat(service, shared, number)), loop.create_task(_reload_when(reload_asked, service))]
    await server.serve(sockets=[shared.listener])
    await announcing
    for task in beside:
        task.cancel()


async def beat(service: Service, shared: Shared, number: int) -> None:
    """Show that the loop turns, and how long the queue is: it may be another worker that is asked for that."""
    while True:
        service.update_gauges()
        if shared.heartbeats is not None:
            shared.heartbeats.beat(number)
        await asyncio.sleep(_BEAT_SECONDS)


async def _announce(
    server: _Server, service: Service, listener: socket.socket, on_ready: Callable[[Service], None]
) -> None:
    while not server.started:
        await asyncio.sleep(0.001)
    listener.listen(_BACKLOG)  # uvicorn's own number here is that of connections taken in a turn
    on_ready(service)


async def _reload_when(asked: asyncio.Event, service: Service) -> None:
    """Load anew whenever that is asked for, never twice at once: the older of two could be done last, and stay."""
    while True:
        await asked.wait()
        asked.clear()
        await _reload(service)


async def _reload(service: Service) -> None:
    """Put new models in the place of the old, which go when the last request that they serve is done."""
    settings = service.settings
    try:
        service.log.reopen()
        keys = Keys.read(settings.api_keys) if settings.api_keys else None
        models = await asyncio.to_thread(
            Models.load, settings.model, settings.compute_type, threads_of(settings), settings.memory
        )
    except Exception as error:  # whatever it is, the old ones still serve
        reason = error if isinstance(error, DragomanError) else repr(error)
        _LOG.error("not reloaded, what was there stays: %s", reason)
        return
    service.keys, service.models = keys, models
    service.metrics.count("dragoman_reloads_total")
    _LOG.warning("reloaded: %s", models.describe())
