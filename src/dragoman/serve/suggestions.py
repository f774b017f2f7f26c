"""Better translations that users suggest, kept as text to learn from.

`--suggestions better.tsv` is a file a direction, `better.fr-en.tsv`, beside that: its name tells `dragoman train` the
languages, so `dragoman train --init MODEL better.fr-en.tsv` learns from it. Several workers may append to one file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from dragoman.serve.disk import available, check_folder
from dragoman.serve.refusal import Refusal

MOST_CHARACTERS = 5000
"""Of a suggestion's source, and of its target."""
MOST_BYTES = 64 << 20
"""Of a file: nobody fills the disk."""

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def file_of(path: str, source: str, target: str) -> Path:
    """The file of a direction; `source` and `target` are languages of a model here, never what a request says.

    >>> file_of("kept/better.tsv", "fr", "en").as_posix()
    'kept/better.fr-en.tsv'
    """
    file = Path(path)
    return file.with_name(f"{file.stem}.{source}-{target}{file.suffix or '.tsv'}")


def prepare(path: str) -> None:
    """Before a server starts: there is a folder that files can be in."""
    check_folder(Path(path).parent, "choose another file for --suggestions")


def line_of(source: str, target: str) -> str:
    """A suggestion as a line: what separates lines and columns becomes a space."""
    columns = [" ".join(_CONTROLS.sub(" ", text).split()) for text in (source, target)]
    for name, text in zip("qs", columns, strict=True):
        if not text:
            raise Refusal(400, f"Invalid request: missing {name} parameter")
        if len(text) > MOST_CHARACTERS:
            raise Refusal(
                400, f"Invalid request: {name} has {len(text)} characters, at most {MOST_CHARACTERS} are kept"
            )
    return "\t".join(columns) + "\n"


def append(file: Path, line: str) -> None:
    """Add a line: all of it or nothing, whoever else is writing."""
    with available("the suggestion could not be kept"):
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _append(descriptor, line.encode())
        finally:
            os.close(descriptor)


def _append(descriptor: int, data: bytes) -> None:
    import fcntl  # not on every system, and nothing else here needs it

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data  # somebody edited the file, and left its last line open
    if size + len(data) > MOST_BYTES:
        raise Refusal(503, "no more suggestions are taken: the file is full")
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError("the disk is full")
    except OSError:
        os.ftruncate(descriptor, size)
        raise
