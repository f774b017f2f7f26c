"""An output file that an interrupted run goes on with: OUTPUT.part grows, and is renamed to OUTPUT when it is whole.

OUTPUT.part.json says how far it is: lines and bytes that are safe on the disk, a hash of the input lines they came
from, and the settings. A run with other settings, or whose input begins differently, is refused rather than mixed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dragoman.cache import atomic_file
from dragoman.errors import DataError


class ResumableOutput:
    """Lines in, lines out, in step. Made by `resumable_output`."""

    def __init__(
        self, path: Path, file: BinaryIO, sidecar: Path | None, settings: Mapping[str, Any], done: int
    ) -> None:
        self.done = done
        """Lines that are written."""
        self._path = path
        self._file = file
        self._sidecar = sidecar
        self._settings = settings
        self._hash = hashlib.sha256()

    def skip(self, lines: Iterator[str], expected: str) -> None:
        """Read past the input lines that are done already, and make sure that they are the same."""
        for number in range(self.done):
            line = next(lines, None)
            if line is None:
                raise DataError(
                    f"{_part(self._path)} has {self.done} lines, the input only {number}: {_way_out(self._path)}"
                )
            self._update(line)
        if self._hash.hexdigest() != expected:
            raise DataError(f"{_part(self._path)} was made from other input: {_way_out(self._path)}")

    def write(self, sources: Iterable[str], lines: Iterable[str]) -> None:
        """Add lines, and note that they are safe."""
        text = "".join(f"{line}\n" for line in lines)
        self._file.write(text.encode())
        for source in sources:
            self._update(source)
        self.done += text.count("\n")
        self._file.flush()
        if self._sidecar is not None:
            os.fsync(self._file.fileno())
            state = {
                "lines": self.done,
                "bytes": self._file.tell(),
                "input_sha256": self._hash.hexdigest(),
                "settings": self._settings,
            }
            with atomic_file(self._sidecar) as staging:
                staging.write_text(json.dumps(state), encoding="utf-8")

    def _update(self, line: str) -> None:
        self._hash.update(line.encode() + b"\n")


@contextmanager
def resumable_output(path: Path, settings: Mapping[str, Any], lines: Iterator[str]) -> Iterator[ResumableOutput]:
    """An output that begins where an earlier one stopped; `lines`, the input, is read past what is done.

    When the block ends well, the file takes its place; otherwise what is done waits for the next run. A device or a
    pipe is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield ResumableOutput(path, file, None, settings, 0)
            return
        part, sidecar = _part(path), Path(f"{_part(path)}.json")
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            _hold(file, path)
            state = _read_state(part, sidecar, path, settings)
            file.truncate(state.get("bytes", 0))
            file.seek(0, os.SEEK_END)
            output = ResumableOutput(path, file, sidecar, settings, state.get("lines", 0))
            if state:
                output.skip(lines, state["input_sha256"])
            yield output
        os.replace(part, path)
        sidecar.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error


def _hold(file: BinaryIO, path: Path) -> None:
    """Two processes that write one file would cut each other's lines."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DataError(f"another process is writing {path} now") from error
    except OSError:  # a file system that has no locks
        pass


def _read_state(part: Path, sidecar: Path, path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    if not part.stat().st_size or not sidecar.exists():  # an empty one may be of a file that was deleted, as advised
        return {}
    try:
        state: dict[str, Any] = json.loads(sidecar.read_bytes())
        whole = part.stat().st_size >= state["bytes"] and {"lines", "input_sha256", "settings"} <= set(state)
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise DataError(f"{sidecar} does not fit {part}: {_way_out(path)}")
    if state["settings"] != settings:
        changed = sorted(
            key for key in {*state["settings"], *settings} if state["settings"].get(key) != settings.get(key)
        )
        raise DataError(f"{part} was made with other settings ({', '.join(changed)}): {_way_out(path)}")
    return state


def _part(path: Path) -> Path:
    return Path(f"{path}.part")


def _way_out(path: Path) -> str:
    return f"delete {_part(path)} to start again"
