"""Files that a command writes: refused before the work where that can be known, whole or not at all after it."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.errors import DataError


def check_place(path: Path | str | None, what: str) -> None:
    """Refuse, before the work is done, a file that could not be written after it."""
    if path and os.path.isdir(path):
        raise DataError(f"cannot write {what} {path}: it is a folder, expected the name of a file")
    if path and not Path(path).parent.is_dir():
        raise DataError(f"cannot write {what} {path}: there is no folder {Path(path).parent}, make it first")
    if path and not os.path.exists(path) and not os.access(Path(path).parent, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {what} {path}: its folder cannot be written to, choose another")


def write_bytes(path: Path | str, what: str, data: bytes) -> None:
    """Write a file whole or not at all."""
    from dragoman.cache import atomic_file

    place = Path(path)
    try:
        if place.exists() and not place.is_file():
            place.write_bytes(data)  # a pipe or a device must not be replaced
            return
        with atomic_file(place) as file:
            file.write_bytes(data)
    except OSError as error:
        raise DataError(f"cannot write {what} {path}: {error.strerror}") from error


def write_text(path: Path | str, what: str, text: str) -> None:
    """Write a text file whole or not at all."""
    write_bytes(path, what, text.encode())
