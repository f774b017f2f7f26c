"""What can be made again: the cache on disk, and files and folders that are either whole or not there.

A file or folder is written under a temporary name beside its place, flushed to the disk, and renamed: whoever looks,
even after a crash, sees all of it or nothing.
"""

import atexit
import functools
import logging
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.errors import DragomanError

_LOG = logging.getLogger("dragoman.cache")
_ABANDONED_SECONDS = 3600.0


def cache_folder(kind: str) -> Path:
    """Where things of a kind are cached: under $DRAGOMAN_CACHE, $XDG_CACHE_HOME/dragoman or ~/.cache/dragoman.

    The folder may not exist yet; `make_folder` makes it.
    """
    if own := os.environ.get("DRAGOMAN_CACHE"):
        return Path(own) / kind
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "dragoman" / kind
    try:
        return Path.home() / ".cache" / "dragoman" / kind
    except RuntimeError:  # a user without a home, as in some containers
        return _temporary_folder() / kind


def make_folder(path: Path, fill: Callable[[Path], None]) -> Path:
    """The folder at `path`; if it is not there yet, `fill` writes its files into a folder that then takes its place.

    Of several processes at once, the first one's stays. Where `path` cannot be written, the folder is made in a
    temporary place that lasts as long as this process, and that place is returned.
    """
    if path.is_dir():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        staging = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    except OSError as error:
        fallback = _temporary_folder() / path.name
        if fallback == path:
            raise DragomanError(f"cannot write to the temporary folder {path.parent}: {error.strerror}") from error
        _LOG.warning("cannot write to the cache %s (%s): working in a temporary folder", path.parent, error.strerror)
        return make_folder(fallback, fill)
    try:
        fill(staging)
        for file in staging.rglob("*"):
            flush(file)
        staging.chmod(0o755)  # mkdtemp makes a private one, a cache may be shared
        try:
            staging.rename(path)
        except OSError:
            if not path.is_dir():
                raise
        flush(path.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return path


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to; when the block ends well, what was written is at `path`, else nothing changed.

    The file may be read and written by whom the one before it was, or by whom the user's mask lets.
    """
    staging = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    os.close(os.open(staging, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        mode = staging.stat().st_mode
        with suppress(FileNotFoundError):
            mode = path.stat().st_mode
        yield staging
        staging.chmod(stat.S_IMODE(mode))  # safetensors puts a private file in its place
        flush(staging)
        staging.replace(path)
        flush(path.parent)
    finally:
        staging.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Wait until a file's contents, or a folder's entries, are on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # some systems cannot open folders
        return
    try:
        os.fsync(handle)
    except OSError:
        # Some network and overlay file systems cannot flush a folder; the rename still holds without a crash.
        if not path.is_dir():
            raise
    finally:
        os.close(handle)


def _sweep(path: Path) -> None:
    """Remove what processes that were killed long ago left behind."""
    for left in path.parent.glob(f".{path.name}.*.partial"):
        try:
            abandoned = time.time() - left.stat().st_mtime > _ABANDONED_SECONDS
        except OSError:  # another process is tidying up too
            continue
        if abandoned:
            shutil.rmtree(left, ignore_errors=True)


@functools.cache
def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
