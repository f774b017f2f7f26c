"""How a folder of encoded pairs comes to be: files that grow, and a folder that is either whole or not there."""

import glob
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.cache import flush
from dragoman.errors import DataError
from dragoman.text.chunks import Side


class SideWriter:
    """The files of one side while they grow: `write` every chunk, then `close`."""

    def __init__(self, folder: Path, side: str, dtype: np.dtype[Any], keep_text: bool) -> None:
        names = ["ids", "offsets", "lengths", *(["text", "text_offsets"] if keep_text else [])]
        self._files = {name: (folder / f"{side}.{name}").open("wb") for name in names}
        self._dtype = dtype
        self._ends = {name: 0 for name in names if name.endswith("offsets")}
        self.num_pairs = 0
        for name in self._ends:
            self._files[name].write(np.zeros(1, np.int64).tobytes())

    def write(self, side: Side) -> None:
        lengths = np.frombuffer(side.lengths, np.uint32)
        self._files["ids"].write(np.frombuffer(side.ids, np.uint32).astype(self._dtype).tobytes())
        self._files["lengths"].write(side.lengths)
        self._write_offsets("offsets", lengths)
        self.num_pairs += len(lengths)
        if "text" in self._files:
            self._files["text"].write(side.text)
            self._write_offsets("text_offsets", np.frombuffer(side.text_lengths, np.uint32))

    def close(self) -> dict[str, int]:
        """Put everything on the disk; gives the size of every file."""
        sizes = {}
        for file in self._files.values():
            with file:
                sizes[Path(file.name).name] = file.tell()
                file.flush()
                os.fsync(file.fileno())
        return sizes

    def _write_offsets(self, name: str, lengths: NDArray[np.uint32]) -> None:
        ends = self._ends[name] + np.cumsum(lengths, dtype=np.int64)
        self._files[name].write(ends.tobytes())
        self._ends[name] = int(ends[-1]) if len(ends) else self._ends[name]


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, and return when it is on the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """A folder to write in, which takes the name `folder` when the block ends well and vanishes when it does not.

    What a killed process left behind under such a name is swept away by the next that builds the same folder.
    """
    if folder.exists():
        raise DataError(f"{folder} exists already: delete it, or choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{folder.name}.{socket.gethostname()}."
    unfinished = folder.with_name(f"{prefix}{os.getpid()}")
    for left_over in folder.parent.glob(f"{glob.escape(prefix)}*"):
        # One with our own number is of a process before us: in a container they all have the same.
        if left_over == unfinished or not _is_running(left_over.name.removeprefix(prefix)):
            shutil.rmtree(left_over, ignore_errors=True)
    unfinished.mkdir()
    try:
        yield unfinished
        flush(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            # Somebody else has built the same folder meanwhile; theirs is whole, or it would not have this name.
            if not folder.is_dir():
                raise
        flush(folder.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        pass  # it runs, as somebody else's
    return True
