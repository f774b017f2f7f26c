"""From settings to a server that listens."""

from __future__ import annotations

import logging
import mmap
import os
import resource
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from dragoman.errors import ConfigError, DragomanError
from dragoman.serve import metrics, rate, suggestions
from dragoman.serve.glossaries import GlossaryFolder
from dragoman.serve.models import find_models
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.serve.shelf import Shelf
from dragoman.serve.supervisor import Heartbeats, Supervisor
from dragoman.serve.worker import Shared, work


def run(settings: Settings, announce: Callable[[str], None]) -> int:
    """Serve until a signal says to stop: -> the exit status. `announce` gets a line when all is ready."""
    logging.basicConfig(format="dragoman: %(message)s", level=logging.WARNING, stream=sys.stderr)
    find_models(settings.model)  # before anything is started
    prepare_folders(settings)
    _allow_many_connections()
    listener = bind(settings.host, settings.port)
    heartbeats = Heartbeats(settings.workers)
    shared = Shared(
        listener,
        mmap.mmap(-1, metrics.table_bytes(settings.workers)),
        mmap.mmap(-1, rate.TABLE_BYTES),
        supervisor=os.getpid() if settings.workers > 1 else None,
        heartbeats=heartbeats,
    )
    host, port = listener.getsockname()[:2]
    where = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def describe(service: Service) -> str:
        return f"dragoman serves {service.models.describe()} on {where}"

    if settings.workers == 1:
        work(settings, shared, 0, lambda service: announce(describe(service)))
        return 0

    def become(number: int, say_ready: Callable[[str], None]) -> None:
        try:
            work(settings, shared, number, lambda service: say_ready(describe(service)))
        except DragomanError as error:
            print(f"dragoman: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
            sys.exit(2)

    # The supervisor has the socket too: while it is open, connections would still be made, and nobody would take them.
    return Supervisor(settings.workers, become, heartbeats=heartbeats, on_ready=announce, on_stop=listener.close).run()


def prepare_folders(settings: Settings) -> None:
    """Find out what is wrong with the disk while there is somebody to tell, and clear up after servers that died."""
    if settings.suggestions is not None:
        suggestions.prepare(settings.suggestions)
    if settings.glossary_dir is not None:
        GlossaryFolder(Path(settings.glossary_dir)).prepare()
    if settings.files:
        Shelf(os.getpid()).prepare()


def bind(host: str, port: int) -> socket.socket:
    """A socket at the address, on which nobody listens yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on {host} port {port} ({reason}): choose another --host or --port") from error
    return listener


def _allow_many_connections() -> None:
    """Each connection takes a file handle, and the usual limit of them is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, 65_536) if soft < 65_536 else soft, hard))
