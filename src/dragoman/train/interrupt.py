"""Ctrl-C, SIGTERM, and SIGHUP of a terminal that closes, unless nohup holds it off: one asks, a second one insists."""

import signal
from types import FrameType, TracebackType
from typing import Any


class StopSignals:
    """While it is entered, `received` turns true at the first signal; a second one stops at once, as usual."""

    def __init__(self) -> None:
        self.received = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue
            try:
                self._before[number] = signal.signal(number, self._handle)
            except ValueError:  # only the main thread may handle signals; elsewhere the caller does
                break
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = True
        signal.signal(number, self._before[number])
