"""The access log: a JSON line a request, without its text unless that was asked for.

Handlers add to the line of the request they serve with `note`; the query string, where some clients put the text, is
left out.
"""

from __future__ import annotations

import json
import os
import select
import stat
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from dragoman.errors import ConfigError

_PIECE_BYTES = select.PIPE_BUF
"""What a pipe or socket that has room at all takes without a wait."""
_NOTES: ContextVar[dict[str, Any] | None] = ContextVar("notes", default=None)


def begin() -> dict[str, Any]:
    """A new line for the request that this task serves."""
    notes: dict[str, Any] = {}
    _NOTES.set(notes)
    return notes


def note(**fields: Any) -> None:
    """Add to the line of the request that is being served. No texts, unless `log_text`."""
    notes = _NOTES.get()
    if notes is not None:
        notes.update(fields)


class AccessLog:
    """Where lines go: `-` is standard error, `none` nowhere, anything else a file."""

    def __init__(self, where: str, log_text: bool = False, on_lost: Callable[[], None] = lambda: None) -> None:
        """`on_lost` is called for each line that could not be written."""
        self._where = where
        self.log_text = log_text
        self._on_lost = on_lost
        self._file: int | None = None
        self._is_cut = False
        self.reopen()

    def reopen(self) -> None:
        """Open the file by its name again, so that it can be moved away while the server runs."""
        if self._where == "none" or (self._where == "-" and sys.stderr is None):  # as a service without one
            return
        if self._where == "-":
            self._file = sys.stderr.fileno()
            return
        try:
            opened = os.open(self._where, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        except OSError as error:
            raise ConfigError(f"cannot write the access log {self._where}: {error.strerror}") from error
        if self._file is not None:
            os.close(self._file)
        self._file = opened

    def write(self, **fields: Any) -> None:
        """One line, in one piece: several workers may share a file."""
        if self._file is None:
            return
        moment = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
        line = (json.dumps({"time": stamp, **fields}) + "\n").encode()
        try:
            is_written = self._write(self._file, line)
        except OSError:
            is_written = False  # a full disk, or nobody is left to read: no reason to stop serving
        if not is_written:
            self._on_lost()

    def _write(self, file: int, line: bytes) -> bool:
        """Write a line, unless that would have to wait: all requests would wait with it, for whoever reads the log."""
        if stat.S_ISREG(os.fstat(file).st_mode):
            os.write(file, line)
            return True
        if self._is_cut:
            line = b"\n" + line
        poll = select.poll()
        poll.register(file, select.POLLOUT)
        for begin in range(0, len(line), _PIECE_BYTES):
            if not any(events & select.POLLOUT for _, events in poll.poll(0)):
                self._is_cut = self._is_cut or begin > 0
                return False
            os.write(file, line[begin : begin + _PIECE_BYTES])
            self._is_cut = False
        return True
