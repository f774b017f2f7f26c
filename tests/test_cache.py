"""The cache: where it is, and that what is in it is whole."""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import cache
from dragoman.cache import atomic_file, cache_folder, make_folder


def write_one(text: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        (folder / "one.txt").write_text(text, encoding="utf-8")

    return fill


def hidden_files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("DRAGOMAN_CACHE", raising=False)
    assert cache_folder("data") == tmp_path / ".cache" / "dragoman" / "data"
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_folder("data") == Path("/shared/dragoman/data")
    monkeypatch.setenv("DRAGOMAN_CACHE", "/own")
    assert cache_folder("data") == Path("/own/data")


def test_a_folder_is_made_once_and_then_found(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "folder"
    assert make_folder(place, write_one("first")) == place
    assert make_folder(place, write_one("second")) == place
    assert (place / "one.txt").read_text(encoding="utf-8") == "first"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half.txt").write_text("half", encoding="utf-8")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        make_folder(tmp_path / "folder", fail)
    assert list(tmp_path.iterdir()) == []


def test_of_two_makers_at_once_the_first_wins(tmp_path: Path) -> None:
    place = tmp_path / "folder"

    def slow(folder: Path) -> None:
        write_one("slow")(folder)
        make_folder(place, write_one("quick"))

    assert make_folder(place, slow) == place
    assert (place / "one.txt").read_text(encoding="utf-8") == "quick"
    assert hidden_files(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be", encoding="utf-8")
    with caplog.at_level(logging.WARNING, logger="dragoman.cache"):
        place = make_folder(tmp_path / "cache" / "key", write_one("there"))
    assert (place / "one.txt").read_text(encoding="utf-8") == "there"
    assert tmp_path not in place.parents
    assert f"cannot write to the cache {tmp_path / 'cache'}" in caplog.text
    assert make_folder(tmp_path / "cache" / "key", write_one("again")) == place


def test_what_was_abandoned_long_ago_is_swept_away(tmp_path: Path) -> None:
    old, new = tmp_path / ".key.old.partial", tmp_path / ".key.new.partial"
    for folder in (old, new):
        folder.mkdir()
    long_ago = time.time() - 2 * cache._ABANDONED_SECONDS
    os.utime(old, (long_ago, long_ago))
    make_folder(tmp_path / "key", write_one("x"))
    assert hidden_files(tmp_path) == [new.name]


def test_a_file_changes_all_at_once_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "file.txt"
    place.write_text("old", encoding="utf-8")

    def write_half() -> None:
        with atomic_file(place) as staging:
            staging.write_text("half", encoding="utf-8")
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_half()
    assert place.read_text(encoding="utf-8") == "old"
    with atomic_file(place) as staging:
        staging.write_text("new", encoding="utf-8")
        assert place.read_text(encoding="utf-8") == "old"
    assert place.read_text(encoding="utf-8") == "new"
    assert hidden_files(tmp_path) == []


def test_a_file_may_be_read_by_whom_the_one_before_it_was(tmp_path: Path) -> None:
    new, private = tmp_path / "new", tmp_path / "private"
    private.touch(mode=0o600)
    before = os.umask(0o027)
    try:
        for path in (new, private):
            with atomic_file(path) as staging:
                staging.write_text("text", encoding="utf-8")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (new, private)] == [0o640, 0o600]
