"""HTTP on a connection: uvicorn's, with more patience where requests would be lost and less where time would be."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

LINGER_SECONDS = 1.0
"""How long a connection without a request stays open when the server stops: one may be on its way."""
HEADER_SECONDS = 20.0
"""How long a request's headers may take."""


class Protocol(H11Protocol):
    """A connection."""

    _deadline: asyncio.TimerHandle | None = None
    _is_stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
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
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops: finish what is being served, and what may already be on its way here."""
        self._is_stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self._unset_keepalive_if_required()
            self._wait_for_headers(LINGER_SECONDS)
        else:
            self.cycle.keep_alive = False

    def _wait_for_headers(self, seconds: float) -> None:
        self._forget_deadline()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


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
