"""HTTP on a connection: uvicorn's, with more patience where requests would be lost and less where time would be."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import sys
import termios
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

LINGER_SECONDS = 1.0
"""How long a connection without a request stays open when the server stops: one may be on its way."""
HEADER_SECONDS = 20.0
"""How long a request's headers may take."""
STALL_SECONDS = 30.0
"""How long a client may read nothing of an answer that waits for it."""
STOPPING_STALL_SECONDS = 5.0
"""The same when the server stops."""
MOST_CONNECTIONS = 4096
"""Of a worker: each takes memory, before anything is known of who it is."""
_FULL = b'{"error":"too many connections: try again later","message":"too many connections: try again later"}'
"""Either protocol's: nothing was asked yet."""
_NO_ROOM = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_FULL), _FULL)
)


class Protocol(H11Protocol):
    """A connection."""

    _deadline: asyncio.TimerHandle | None = None
    _reading_deadline: asyncio.TimerHandle | None = None
    _is_stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(_NO_ROOM)
            transport.close()
            return
        self._wait_for_headers(HEADER_SECONDS)

    def data_received(self, data: bytes) -> None:
        had_cycle = self.cycle
        super().data_received(data)
        if self.cycle is not had_cycle:
            self._forget_deadline()
            if self._is_stopping:
                self.cycle.keep_alive = False
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_headers(HEADER_SECONDS)  # the first bytes of another request

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        self._forget_reading_deadline()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer was written, which is to say that it waits in memory until the client has read it."""
        super().on_response_complete()
        self._wait_for_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wait_for_reading()

    def shutdown(self) -> None:
        """The server stops: finish what is being served, and what may already be on its way here."""
        self._is_stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self._unset_keepalive_if_required()
            self._wait_for_headers(LINGER_SECONDS)
        else:
            self.cycle.keep_alive = False
        self._wait_for_reading()

    def _wait_for_headers(self, seconds: float) -> None:
        self._forget_deadline()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        """Close. What is still being read of an answer is waited for, while it is."""
        self._deadline = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
            self._wait_for_reading()

    def _wait_for_reading(self) -> None:
        """Look again after a while whether the client has read anything of what waits for it."""
        self._forget_reading_deadline()
        if self.transport.get_write_buffer_size():
            seconds = STOPPING_STALL_SECONDS if self._is_stopping else STALL_SECONDS
            self._reading_deadline = self.loop.call_later(
                seconds, self._check_reading, self.cycle, num_unread_bytes(self.transport)
            )

    def _check_reading(self, cycle: RequestResponseCycle | None, num_bytes: int) -> None:
        """Only breaking it off ends a connection that nobody reads from: closing it waits until all is sent."""
        self._reading_deadline = None
        # What a next request's answer has added says nothing of what was read.
        if self.cycle is cycle and num_unread_bytes(self.transport) >= num_bytes:
            self.transport.abort()
        else:
            self._wait_for_reading()

    def _forget_reading_deadline(self) -> None:
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def num_unread_bytes(transport: asyncio.Transport) -> int:
    """What waits here, and in the kernel, which takes more from here only when it has got rid of a large part."""
    queued = b""
    with contextlib.suppress(OSError):  # not every kernel tells
        queued = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    return transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)


def uvicorn_options() -> dict[str, Any]:
    """What uvicorn is told besides where it listens."""
    return {
        "http": Protocol,
        "ws": "none",
        "loop": "asyncio",
        "lifespan": "off",
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "timeout_keep_alive": 30,
        "h11_max_incomplete_event_size": 32 << 10,
    }
