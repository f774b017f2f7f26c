"""Faults of the disk: told when the server starts where they can be seen then, and answered with 503 afterwards."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.serve.refusal import Refusal

_LOG = logging.getLogger("dragoman.serve")


def check_folder(folder: Path, remedy: str) -> None:
    """Make a folder if there is none; refuse one that cannot be written to, with what can be done about it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        reason = None if os.access(folder, os.W_OK | os.X_OK) else "no permission, or a read-only file system"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason is not None:
        raise ConfigError(f"cannot write to the folder {folder} ({reason}): {remedy}")


@contextlib.contextmanager
def available(what: str) -> Iterator[None]:
    """Do something with the disk; a fault of it is a 503 that begins with `what`. Where it was, only the log tells."""
    try:
        yield
    except OSError as error:
        _LOG.error("%s: %s", what, error)
        raise Refusal(503, f"{what}: try again later") from error
