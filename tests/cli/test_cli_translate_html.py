"""`dragoman translate --format html`: a page in, a page out."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.translate import command
from dragoman.errors import DataError
from dragoman.translator import Link, SentenceTranslation, Translation


class Reverser:
    """Translates by turning words around, and remembers how it was asked."""

    options: dict[str, Any]

    def translate(self, texts: list[str], **options: Any) -> list[Translation]:
        self.options = options
        return [self._translate(text) for text in texts]

    def _translate(self, text: str) -> Translation:
        words = text.split()
        links = tuple(Link(len(words) - 1 - at, at, 1.0) for at in range(len(words)))
        sentence = SentenceTranslation(text, " ".join(reversed(words)).upper(), -1.0, 0.5, links)
        return Translation(sentence.target, -1.0, 0.5, (sentence,), ("loud",))


@pytest.fixture
def reverser(monkeypatch: pytest.MonkeyPatch) -> Reverser:
    reverser = Reverser()
    monkeypatch.setattr("dragoman.translator.load", lambda *_, **__: reverser)
    monkeypatch.setattr("dragoman.cli.translate.find_model", lambda options: Path("model"))
    return reverser


def run(*arguments: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, ["--format", "html", *arguments], input=text)


def test_words_are_a_page(reverser: Reverser) -> None:
    result = run("<p>one", "<b>two</b></p>")
    assert (result.stdout, result.stderr) == ("<p><b>TWO</b> ONE</p>\n", "dragoman: loud\n")
    assert reverser.options["align"] is True


def test_a_file_is_one_page_with_the_line_ends_it_had(reverser: Reverser, tmp_path: Path) -> None:
    page = "<p>one\n   <b>two</b></p>\r\n<hr>"
    (tmp_path / "in.html").write_bytes(page.encode())
    expected = b"<p><b>TWO</b> ONE</p>\r\n<hr>"
    assert run(text=page.encode()).stdout_bytes == expected
    assert run("--input", str(tmp_path / "in.html")).stdout_bytes == expected
    run("--input", str(tmp_path / "in.html"), "--output", str(tmp_path / "out.html"))
    assert (tmp_path / "out.html").read_bytes() == expected


def test_json_tells_all_of_the_page(reverser: Reverser) -> None:
    record = json.loads(run("--json", "<p>one two</p>").stdout)
    assert (record["source"], record["text"], record["warnings"]) == ("<p>one two</p>", "<p>TWO ONE</p>", ["loud"])


def test_a_page_without_inner_tags_needs_no_alignment(reverser: Reverser) -> None:
    run("<p>one two</p>")
    assert reverser.options["align"] is False


def test_what_is_no_page_is_refused(reverser: Reverser, tmp_path: Path) -> None:
    (tmp_path / "in.html").write_bytes(b"caf\xe9")
    broken, empty = run("--input", str(tmp_path / "in.html")), run(text="\n")
    assert isinstance(broken.exception, DataError)
    assert str(broken.exception).endswith("in.html: byte 4 is not UTF-8: convert it, say with iconv -f LATIN1 -t UTF-8")
    assert isinstance(empty.exception, DataError)
    assert str(empty.exception) == "standard input is empty, expected a page to translate"
