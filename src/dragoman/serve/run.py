"""From settings to a server that listens."""

from __future__ import annotations

import logging
import mmap
import resource
import socket
import sys
from collections.abc import Callable

from dragoman.errors import ConfigError, DragomanError
from dragoman.serve import metrics, rate
from dragoman.serve.models import find_models
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.serve.supervisor import Supervisor
from dragoman.serve.worker import Shared, work


def run(settings: Settings, announce: Callable[[str], None]) -> int:
    """Serve until a signal says to stop: -> the exit status. `announce` gets a line when all is ready."""
    logging.basicConfig(format="dragoman: %(message)s", level=logging.WARNING, stream=sys.stderr)
    find_models(settings.model)  # before anything is started
    _allow_many_connections()
    listener = bind(settings.host, settings.port)
    shared = Shared(listener, mmap.mmap(-1, metrics.table_bytes(settings.workers)), mmap.mmap(-1, rate.TABLE_BYTES))
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

    return Supervisor(settings.workers, become, announce).run()


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
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"cannot listen on {host} port {port} ({reason}): choose another --host or --port") from error
    return listener


def _allow_many_connections() -> None:
    """Each connection takes a file handle, and the usual limit of them is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, 65_536) if soft < 65_536 else soft, hard))
