"""The shelf when the disk is at fault: 503 without a path, nothing half-written, no lock that is never let go."""

import contextlib
import os
import threading
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DataError
from dragoman.serve import shelf
from dragoman.serve.refusal import Refusal
from dragoman.serve.shelf import Shelf


def test_a_disk_that_is_full_is_503_and_nothing_half_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Shelf(31, tmp_path)
    real = os.fdopen

    class Full:
        def __init__(self, descriptor: int, mode: str) -> None:
            self._file = real(descriptor, mode)

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *error: object) -> None:
            self._file.close()

        def write(self, data: bytes) -> None:
            self._file.write(data[:3])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(shelf, "open", Full, raising=False)
    with pytest.raises(Refusal, match=r"^the translated file could not be kept: try again later$") as caught:
        kept.put(b"a file")
    assert caught.value.status == 503
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["lock"]
    kept.close()


def test_a_folder_that_is_gone_is_503(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"^the translated file could not be kept: try again later$"):
        Shelf(37, tmp_path / "gone").put(b"a file")


def test_a_folder_of_somebody_else_is_told_at_the_start_and_to_no_client(tmp_path: Path) -> None:
    kept = Shelf(41, tmp_path)
    kept._path.mkdir(mode=0o755)
    with pytest.raises(DataError, match="belongs to somebody else: remove it, or set TMPDIR to another folder"):
        kept.prepare()
    with pytest.raises(Refusal) as caught:
        kept.put(b"a file")
    assert caught.value.status == 503
    assert caught.value.message == "the translated file could not be kept: try again later"


def test_no_folder_for_files_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"File exists\): set TMPDIR to another folder .* with --no-files$"):
        Shelf(43, tmp_path / "file").prepare()


@pytest.mark.parametrize("number", [47, 61], ids=["of the same number, as in a container", "of another number"])
def test_what_a_killed_server_left_is_gone_when_one_starts(tmp_path: Path, number: int) -> None:
    killed, living = Shelf(47, tmp_path), Shelf(53, tmp_path)
    killed.put(b"left")
    living.put(b"kept")
    assert killed._lock is not None
    os.close(killed._lock)  # as the kernel does
    killed._lock = None
    another = Shelf(number, tmp_path)
    another.prepare()
    assert [path.name.rpartition("-")[2] for path in tmp_path.iterdir()] == ["53"]
    another.put(b"new")
    assert sorted(path.name.rpartition("-")[2] for path in tmp_path.iterdir()) == sorted(["53", str(number)])
    another.close()
    living.close()


def test_the_first_files_of_many_threads_leave_nothing_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Shelf(59, tmp_path)
    both = threading.Barrier(2, timeout=1)
    check = kept._check_ours

    def meet() -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait()  # two threads that open it at once would meet here
        check()

    monkeypatch.setattr(kept, "_check_ours", meet)
    threads = [threading.Thread(target=kept.put, args=(b"a file",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.close()
    assert list(tmp_path.iterdir()) == []
