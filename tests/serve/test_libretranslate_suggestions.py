"""Suggestions become text to learn from: one line each, whole, whoever writes at the same time."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_server import serving

from dragoman.errors import ConfigError
from dragoman.recipe import CorpusConfig
from dragoman.serve import run, suggestions
from dragoman.serve.refusal import Refusal
from dragoman.serve.settings import Settings
from dragoman.text.corpus import corpus_languages, read_pairs

ASKED = {"q": "Le chat dort.", "s": "The cat is asleep.", "source": "fr", "target": "en"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suggestions") / "better.tsv"


@pytest.fixture(scope="module")
def client(kept: Path) -> Iterator[httpx.Client]:
    with serving(suggestions=str(kept)) as url, httpx.Client(base_url=url) as client:
        yield client


def test_a_suggestion_becomes_a_pair_of_the_direction_that_it_is_for(client: httpx.Client, kept: Path) -> None:
    for how in ({"json": ASKED}, {"data": ASKED | {"source": "auto"}}, {"params": ASKED | {"source": "FR"}}):
        response = client.post("/suggest", **how)
        assert (response.status_code, response.json()) == (200, {"success": True})
    back = {"q": "A\tB\nC", "s": "D\r\n E\x00F", "source": "en", "target": "fr"}
    assert client.post("/suggest", json=back).json() == {"success": True}
    corpus = CorpusConfig(path=str(kept.with_name("better.fr-en.tsv")))
    assert corpus_languages(corpus) == ("fr", "en")
    assert [(pair.source, pair.target) for pair in read_pairs(corpus)] == [(ASKED["q"], ASKED["s"])] * 3
    assert kept.with_name("better.en-fr.tsv").read_text() == "A B C\tD E F\n"
    assert sorted(file.name for file in kept.parent.iterdir()) == ["better.en-fr.tsv", "better.fr-en.tsv"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"s": "\t\n"}, "Invalid request: missing s parameter"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": "zz"}, "zz is not supported"),
        ({"target": "../../etc/passwd"}, "../../etc/passwd is not supported"),
        ({"source": "../x"}, "../x is not supported"),
        ({"s": "x" * 5001}, "Invalid request: s has 5001 characters, at most 5000 are kept"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    client: httpx.Client, kept: Path, changes: dict[str, str], message: str
) -> None:
    before = {file: file.read_bytes() for file in kept.parent.iterdir()}
    response = client.post("/suggest", json=ASKED | changes)
    assert (response.status_code, response.json()) == (400, {"error": message})
    assert {file: file.read_bytes() for file in kept.parent.iterdir()} == before


def test_suggestions_are_off_unless_there_is_a_file_for_them() -> None:
    with serving() as url:
        response = httpx.post(f"{url}/suggest", json=ASKED)
    assert response.status_code == 403
    assert response.json() == {"error": "suggestions are not taken here: the server was started without --suggestions"}


@given(st.text(max_size=97), st.text(max_size=97))
def test_a_line_is_one_line_of_two_columns_whatever_is_suggested(source: str, target: str) -> None:
    try:
        line = suggestions.line_of(source, target)
    except Refusal:  # nothing is left of one of them
        return
    assert len(line.splitlines()) == 1
    assert line.endswith("\n")
    assert len(line.split("\t")) == 2
    assert all(column.strip() for column in line.split("\t"))


def test_lines_written_at_the_same_time_stay_whole(tmp_path: Path) -> None:
    file = tmp_path / "better.fr-en.tsv"
    lines = [suggestions.line_of(f"{number} " + "x" * 4001, "y" * 4003) for number in range(53)]
    threads = [threading.Thread(target=suggestions.append, args=(file, line)) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(file.read_text().splitlines(keepends=True)) == sorted(lines)
    assert file.stat().st_mode & 0o077 == 0


def test_a_last_line_that_was_left_open_is_closed_first(tmp_path: Path) -> None:
    file = tmp_path / "better.fr-en.tsv"
    file.write_text("un\tone")
    suggestions.append(file, "deux\ttwo\n")
    assert file.read_text() == "un\tone\ndeux\ttwo\n"


def test_a_full_file_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions, "MOST_BYTES", 11)
    file = tmp_path / "better.fr-en.tsv"
    suggestions.append(file, "un\tone\n")
    with pytest.raises(Refusal, match="no more suggestions are taken: the file is full") as caught:
        suggestions.append(file, "deux\ttwo\n")
    assert caught.value.status == 503
    assert file.read_text() == "un\tone\n"


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "better.fr-en.tsv"
    suggestions.append(file, "un\tone\n")
    write = suggestions.os.write
    monkeypatch.setattr(suggestions.os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with pytest.raises(Refusal, match="the suggestion could not be kept: try again later"):
        suggestions.append(file, "deux\ttwo\n")
    monkeypatch.undo()
    assert file.read_text() == "un\tone\n"


def test_a_folder_that_cannot_be_is_told_at_the_start_and_is_503_later(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = str(tmp_path / "file" / "better.tsv")
    with pytest.raises(
        ConfigError, match=r"^cannot write to the folder .*file \(File exists\): choose another file for"
    ):
        run.prepare_folders(Settings(suggestions=kept, files=False))
    with pytest.raises(Refusal, match=r"^the suggestion could not be kept: try again later$") as caught:
        suggestions.append(suggestions.file_of(kept, "fr", "en"), "un\tone\n")
    assert caught.value.status == 503


def test_the_folders_of_a_server_are_made_when_it_starts(tmp_path: Path) -> None:
    run.prepare_folders(
        Settings(suggestions=str(tmp_path / "a" / "b.tsv"), glossary_dir=str(tmp_path / "c" / "d"), files=False)
    )
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "c", "d"]
