"""Where translated files wait to be fetched: a private folder that all workers of a server share.

A file is known by a random token; on disk it goes by a hash of that, so that nothing a request says reaches the disk.
Files are few, small and short-lived: the oldest go when there are too many, all go by their age, sooner once they were
fetched, and the folder goes with the last worker. Folders that were left behind by workers that were killed go when
another server starts, before its workers do (`prepare`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from multiprocessing.util import Finalize
from pathlib import Path

from dragoman.errors import DataError
from dragoman.serve.disk import available, check_folder
from dragoman.serve.refusal import Refusal

MOST_FILES = 256
MOST_BYTES = 512 << 20
KEPT_SECONDS = 3600.0
FETCHED_SECONDS = 300.0
"""How long a file stays after it was fetched: who fetches may be cut off, and try again."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
_LOCK = "lock"
_NOT_KEPT = "the translated file could not be kept"
_LOG = logging.getLogger("dragoman.serve")


class _NotOursError(Refusal, DataError):
    """Somebody else has our folder. Who starts the server reads which and can mend it; who sends a file cannot."""

    def __init__(self, path: Path) -> None:
        super().__init__(503, f"{_NOT_KEPT}: try again later")
        self.args = (f"{path} belongs to somebody else: remove it, or set TMPDIR to another folder",)


class Shelf:
    """The folder, which is made when it is first needed."""

    def __init__(self, head: int, parent: Path | None = None) -> None:
        """`head` is the process that all workers have in common."""
        self._parent = parent or _temporary_folder()
        self._start = f"dragoman-files-{os.getuid()}-"
        self._path = self._parent / f"{self._start}{head}"
        self._lock: int | None = None
        self._goodbye: Finalize | None = None
        self._opening = threading.Lock()

    def prepare(self) -> None:
        """Before the workers start: the folder can be made, and what killed servers left behind is gone."""
        check_folder(self._parent, "set TMPDIR to another folder for translated files, or do without with --no-files")
        for path in self._parent.glob(f"{self._start}*"):
            _remove_left_behind(path)
        if self._path.is_symlink() or self._path.exists():
            self._check_ours()

    def put(self, content: bytes) -> str:
        """Keep a file; -> the token that fetches it."""
        token = secrets.token_urlsafe(24)
        with available(_NOT_KEPT):
            with self._opening:  # two threads would both open it, and one lock would never be let go
                folder = self._open()
            self.sweep(room_bytes=len(content), room_files=1)
            path = folder / _hash(token)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with open(descriptor, "wb") as file:
                    file.write(content)
            except OSError:
                path.unlink(missing_ok=True)
                raise
        return token

    def fetch(self, token: str) -> bytes | None:
        """The file of a token, if there still is one."""
        if not _TOKEN.fullmatch(token):
            return None
        path = self._path / _hash(token)
        try:
            found = path.stat()
            if time.time() - found.st_mtime > KEPT_SECONDS:
                return None
            content = path.read_bytes()
            os.utime(path, (found.st_atime, min(found.st_mtime, time.time() - KEPT_SECONDS + FETCHED_SECONDS)))
        except OSError:
            return None
        return content

    def sweep(self, room_bytes: int = 0, room_files: int = 0) -> None:
        """Remove what is too old, and the oldest until there is room."""
        files: list[tuple[float, int, Path]] = []
        for path in self._path.glob("[0-9a-f]*"):
            with contextlib.suppress(OSError):  # another worker was quicker
                found = path.stat()
                files.append((found.st_mtime, found.st_size, path))
        files.sort()
        total, count = room_bytes + sum(size for _, size, _ in files), room_files + len(files)
        oldest = time.time() - KEPT_SECONDS
        for changed, size, path in files:
            if changed > oldest and count <= MOST_FILES and total <= MOST_BYTES:
                break
            path.unlink(missing_ok=True)
            total, count = total - size, count - 1

    def close(self) -> None:
        """Remove the folder, unless another worker still has it."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        if _is_alone(lock):
            shutil.rmtree(self._path, ignore_errors=True)
        os.close(lock)

    def _open(self) -> Path:
        """The folder, of which nobody else can see anything."""
        if self._lock is None or not self._path.is_dir():
            self._path.mkdir(mode=0o700, exist_ok=True)
            self._check_ours()
            if self._lock is not None:
                os.close(self._lock)
            self._lock = os.open(self._path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            # Not `atexit`, which forked workers pass over.
            if self._goodbye is None:
                self._goodbye = Finalize(None, self.close, exitpriority=1)
            for path in self._parent.glob(f"{self._start}*"):
                if path != self._path:
                    _remove_left_behind(path)
        return self._path

    def _check_ours(self) -> None:
        found = self._path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            error = _NotOursError(self._path)
            _LOG.error("%s", error)
            raise error


def _temporary_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except OSError:  # none can be written to, which matters only to a server that takes files
        return Path("/tmp")


def _remove_left_behind(path: Path) -> None:
    """Remove a server's folder if that server is no more."""
    with contextlib.suppress(OSError):
        if path.lstat().st_uid != os.getuid():
            return
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            if _is_alone(lock):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)


def _is_alone(lock: int) -> bool:
    """Whether nobody else has this file locked."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
