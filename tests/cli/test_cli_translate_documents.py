"""`dragoman translate --input letter.docx`: a document in, a document out."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.translate import command
from dragoman.errors import ConfigError, DataError
from dragoman.translator import Link, SentenceTranslation, Translation
from office_files import docx, run, unpack, word_runs

LETTER = docx(f"<w:p>{run('one ')}{run('two', '<w:b/>')}</w:p><w:p>{run('three')}</w:p>")
SHOUTED = [[("", "ONE "), ("b", "TWO")], [("", "THREE")]]


class Shouter:
    """Translates by shouting, and remembers how it was asked."""

    options: dict[str, Any]

    def __init__(self, *warnings: str) -> None:
        self.warnings = warnings

    def stream(self, texts: Iterator[str], **options: Any) -> Iterator[Translation]:
        self.options = options
        for text in texts:
            links = tuple(Link(at, at, 1.0) for at in range(len(text.split())))
            sentence = SentenceTranslation(text, text.upper(), -1.0, 0.5, links)
            yield Translation(text.upper(), -1.0, 0.5, (sentence,), self.warnings)


@pytest.fixture
def shouter(monkeypatch: pytest.MonkeyPatch) -> Shouter:
    shouter = Shouter()
    monkeypatch.setattr("dragoman.translator.load", lambda *_, **__: shouter)
    monkeypatch.setattr("dragoman.cli.translate.find_model", lambda options: Path("model"))
    return shouter


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.DOCX"
    path.write_bytes(LETTER)
    return path


def translate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def refusal(kind: type[Exception], *arguments: str | Path) -> str:
    result = translate(*arguments)
    assert isinstance(result.exception, kind), result.exception
    return str(result.exception)


def test_a_document_comes_out_as_a_document(shouter: Shouter, letter: Path, tmp_path: Path) -> None:
    result = translate("--input", letter, "--output", tmp_path / "out.docx", "--beam", "3")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    out = (tmp_path / "out.docx").read_bytes()
    assert word_runs(out) == SHOUTED
    assert unpack(out).keys() == unpack(LETTER).keys()
    assert (shouter.options["align"], shouter.options["beam"]) == (True, 3)


def test_a_document_may_go_into_a_pipe(shouter: Shouter, letter: Path) -> None:
    assert word_runs(translate("--input", letter).stdout_bytes) == SHOUTED


def test_subtitles_keep_their_times(shouter: Shouter, tmp_path: Path) -> None:
    captions = "1\n00:00:01,000 --> 00:00:02,000\none two.\n"
    (tmp_path / "film.srt").write_text(captions, encoding="utf-8")
    assert translate("--input", tmp_path / "film.srt").stdout == captions.replace("one two.", "ONE TWO.")


def test_a_page_is_known_by_its_name_and_keeps_its_characters(shouter: Shouter, tmp_path: Path) -> None:
    page = '<meta charset="iso-8859-1"><p>caf\xe9 <b>noir</b></p>'.encode("latin-1")
    (tmp_path / "page.html").write_bytes(page)
    (tmp_path / "page.html.gz").write_bytes(gzip.compress(page))
    expected = '<meta charset="iso-8859-1"><p>CAF\xc9 <b>NOIR</b></p>'.encode("latin-1")
    assert translate("--input", tmp_path / "page.html").stdout_bytes == expected
    assert translate("--input", tmp_path / "page.html.gz").stdout_bytes == expected
    assert refusal(ConfigError, "--input", tmp_path / "page.html", "--json").endswith("or give --format html")


def test_lines_are_lines_if_that_is_said(shouter: Shouter, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>one</p>", encoding="utf-8")
    assert translate("--input", tmp_path / "page.html", "--format", "text").stdout == "<P>ONE</P>\n"


def test_warnings_are_told_and_counted(shouter: Shouter, tmp_path: Path) -> None:
    shouter.warnings = ("loud",)
    (tmp_path / "letter.docx").write_bytes(docx("".join(f"<w:p>{run('one')}</w:p>" for _ in range(7))))
    told = translate("--input", tmp_path / "letter.docx", "--output", tmp_path / "out.docx").stderr.splitlines()
    assert told[0] == f"dragoman: {tmp_path / 'letter.docx'}, text 1: loud"
    assert told[5:] == ["dragoman: 2 more texts have warnings"]


def test_what_a_document_has_no_place_for_is_refused(shouter: Shouter, letter: Path, tmp_path: Path) -> None:
    where = ("--input", letter, "--output", tmp_path / "out.docx")
    assert refusal(ConfigError, *where, "--json") == "--json has no place in a .docx document: leave it out"
    assert refusal(ConfigError, "--input", letter, "--align").startswith("--align has no place")
    assert refusal(ConfigError, *where, "--alternatives", "2").startswith("--alternatives has no place")
    assert "expected a name that ends in .docx" in refusal(ConfigError, "--input", letter, "--output", "out.txt")
    assert not (tmp_path / "out.docx").exists()


def test_an_output_that_cannot_be_is_refused_before_the_work(shouter: Shouter, letter: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "none" / "out.docx"
    assert refusal(DataError, "--input", letter, "--output", nowhere).endswith("make it first")
    assert "it is a folder" in refusal(DataError, "--input", letter, "--output", tmp_path)
    assert not hasattr(shouter, "options")


def test_a_terminal_is_spared_a_packed_document(letter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.cli._document import read_document

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    options = {"input_path": str(letter), "output_path": None, "as_json": False, "align": False, "alternatives": 0}
    with pytest.raises(ConfigError, match=r"a \.docx document is no text for a terminal: give --output FILE"):
        read_document(options)


def test_a_file_that_is_no_document_is_named(shouter: Shouter, tmp_path: Path) -> None:
    (tmp_path / "letter.odt").write_bytes(b"no archive")
    refused = refusal(DataError, "--input", tmp_path / "letter.odt", "--output", tmp_path / "out.odt")
    assert refused.startswith(f"{tmp_path / 'letter.odt'}: the file is damaged or encrypted")
    assert refusal(DataError, "--input", tmp_path / "none.docx", "--output", tmp_path / "out.docx").endswith(
        "none.docx: no such file"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["letter.odt"]
