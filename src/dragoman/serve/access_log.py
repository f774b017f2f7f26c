"""The access log: a JSON line a request, without its text unless that was asked for.

Handlers add to the line of the request they serve with `note`; the query string, where some clients put the text, is
left out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextvars import ContextVar
from typing import Any

from dragoman.errors import ConfigError

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

    def __init__(self, where: str, log_text: bool = False) -> None:
        self._where = where
        self.log_text = log_text
        self._file: int | None = None
        self.reopen()

    def reopen(self) -> None:
        """Open the file by its name again, so that it can be moved away while the server runs."""
        if self._where == "none":
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
        try:
            os.write(self._file, (json.dumps({"time": stamp, **fields}) + "\n").encode())
        except OSError:
            return  # a full disk, or nobody reads: no reason to stop serving
