"""`dragoman translate`: arguments, pipes and files; JSON and pictures; interruptions; bad input in one clear line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.bundle import box
from dragoman.cli import translate
from dragoman.cli._alignment import draw_alignment
from dragoman.cli.translate import command
from dragoman.errors import BundleError, ConfigError, DataError, DragomanError, LengthError
from dragoman.recipe import CorpusConfig
from dragoman.search import recall
from dragoman.translator import Link, SentenceTranslation, Translation
from tiny_bundle import tiny_texts, write_tiny_bundle


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_bundle(tmp_path_factory.mktemp("translate") / "model").path)


@pytest.fixture(autouse=True)
def _own_cache(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(Path(model).parent / "cache"))


def run(*arguments: str, text: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(command, arguments, input=text)
    if result.exception is not None and not isinstance(
        result.exception, (DragomanError, SystemExit, KeyboardInterrupt)
    ):
        raise result.exception
    return result


def refusal(*arguments: str, text: str | bytes | None = None) -> DragomanError:
    """The error that a command ends with, of one line; nothing was printed before it."""
    result = run(*arguments, text=text)
    assert isinstance(result.exception, DragomanError)
    assert "\n" not in str(result.exception)
    assert result.stdout == ""
    return result.exception


class Shouter:
    """A translator that shouts, remembers what it was given, and may be interrupted."""

    def __init__(self, stop_after: int | None = None, warn: bool = False) -> None:
        self.heard: list[str] = []
        self.options: dict[str, Any] = {}
        self._stop_after = stop_after
        self._warn = warn

    def stream(self, texts: Iterable[str], **options: Any) -> Iterator[Translation]:
        self.options = options
        for text in texts:
            if len(self.heard) == self._stop_after:
                raise KeyboardInterrupt
            self.heard.append(text)
            yield Translation(text.upper(), -1.0, 0.5, warnings=("loud",) if self._warn else ())


@pytest.fixture
def shout(monkeypatch: pytest.MonkeyPatch):
    """Replaces the translator by a `Shouter`, which it returns."""

    def replace(**settings: Any) -> Shouter:
        shouter = Shouter(**settings)
        monkeypatch.setattr("dragoman.translator.load", lambda *_, **__: shouter)
        return shouter

    monkeypatch.setattr(translate, "_SAVED_LINES", 7)
    return replace


# Where text comes from and goes to


def test_the_words_of_the_command_line_are_one_text(model: str) -> None:
    first, second = run("--model", model, "Baceba dila. Lame!"), run("--model", model, "Baceba", "dila.", "Lame!")
    assert first.exit_code == 0
    assert first.stdout == second.stdout != ""


def test_lines_in_are_lines_out(model: str, tmp_path: Path) -> None:
    text = "Baceba dila.\n\n  Lame ni.  \nPoru! Gula?\n"
    piped = run("--model", model, "--no-guards", text=text)
    (tmp_path / "in.txt").write_text(text, encoding="utf-8")
    printed = run("--model", model, "--no-guards", "--input", str(tmp_path / "in.txt"))
    written = run(
        "--model", model, "--no-guards", "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")
    )
    lines = piped.stdout.split("\n")
    assert len(lines) == 5
    assert (lines[1], lines[2][:2], lines[2][-2:]) == ("", "  ", "  ")
    assert printed.stdout == piped.stdout == (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert written.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_compressed_files_are_read_and_only_newlines_end_a_line(shout, model: str, tmp_path: Path) -> None:
    import gzip

    shout()
    (tmp_path / "in.gz").write_bytes(gzip.compress("a\u2028b\r\nc\n".encode()))
    assert run("--model", model, "--input", str(tmp_path / "in.gz")).stdout == "A\u2028B\nC\n"


def test_options_reach_the_translator(shout, model: str, tmp_path: Path) -> None:
    shouter = shout()
    (tmp_path / "terms.tsv").write_text("chat\tfeline\n", encoding="utf-8")
    searched = ("--from", "fr", "--to", "en", "--beam", "3", "--alternatives", "2", "--strict", "--align")
    run("--model", model, *searched, "--glossary", str(tmp_path / "terms.tsv"), text="a\n")
    options = shouter.options
    assert (options["source"], options["target"], options["beam"], options["alternatives"]) == ("fr", "en", 3, 2)
    assert (options["guards"], options["strict"], options["align"]) == (True, True, True)
    assert len(options["glossary"]) == 1
    run("--model", model, "--no-guards", "--sample", "--seed", "7", "--top-k", "5", text="a\n")
    options = shouter.options
    assert (options["guards"], options["sampling"].seed, options["sampling"].top_k) == (False, 7, 5)


def test_alternatives_are_lines_of_their_own_or_columns(model: str) -> None:
    alone = run("--model", model, "--no-guards", "--alternatives", "2", "Baceba dila.").stdout
    piped = run("--model", model, "--no-guards", "--alternatives", "2", text="Baceba dila.\n").stdout
    assert alone.rstrip("\n").split("\n") == piped.rstrip("\n").split("\t")
    assert alone.count("\n") > 1


def test_a_seed_repeats_a_sample(model: str) -> None:
    arguments = ("--model", model, "--no-guards", "--sample", "--temperature", "1.7", "Baceba dila gula.")
    first, again = (run(*arguments, "--seed", "5").stdout for _ in range(2))
    assert first == again
    assert len({run(*arguments, "--seed", str(seed)).stdout for seed in range(5)}) > 1


# JSON, pictures, warnings


def test_json_has_a_line_an_input_with_all_there_is(model: str) -> None:
    result = run("--model", model, "--json", text="Baceba dila. Lame.\n\n")
    first, second = map(json.loads, result.stdout.splitlines())
    assert set(first) == {"source", "text", "score", "confidence", "alternatives", "warnings", "sentences"}
    assert first["source"] == "Baceba dila. Lame."
    assert [sentence["source"] for sentence in first["sentences"]] == ["Baceba dila.", "Lame."]
    for sentence in first["sentences"]:
        for source, target, weight in sentence["alignment"]:
            assert source < len(sentence["source"].split())
            assert target < len(sentence["target"].split())
            assert 0 < weight <= 1
    assert (second["text"], second["sentences"], second["confidence"]) == ("", [], 1.0)
    assert result.stderr == ""


def test_an_alignment_is_drawn_as_a_grid_and_where_it_is_too_wide_as_a_list() -> None:
    links = (Link(0, 0, 0.9), Link(1, 1, 0.5), Link(0, 1, 0.3))
    sentence = SentenceTranslation("Il dort", "He sleeps", -0.1, 0.9, links)
    assert draw_alignment(sentence, 80).split("\n") == [
        "          d",
        "          o",
        "        I r",
        "        l t",
        "He      █ ·",
        "sleeps  ░ ▒",
    ]
    assert draw_alignment(sentence, 9).split("\n") == ["He      Il 0.90", "sleeps  dort 0.50, Il 0.30"]
    assert "no alignment" in draw_alignment(SentenceTranslation("a", "b", 0.0, 1.0), 80)


def test_align_draws_after_the_translation(model: str) -> None:
    plain = run("--model", model, "Baceba dila.").stdout
    drawn = run("--model", model, "--align", "Baceba dila.").stdout
    assert drawn.startswith(f"{plain}\n")
    assert any(shade in drawn for shade in "░▒▓█")


def test_warnings_name_their_line_and_the_rest_are_counted(shout, model: str) -> None:
    shout(warn=True)
    result = run("--model", model, text="a\n" * 9)
    assert result.stdout == "A\n" * 9
    assert result.stderr.splitlines() == [
        *(f"dragoman: standard input:{number}: loud" for number in range(1, 6)),
        "dragoman: 4 more lines have warnings, --json shows all",
    ]


# Interruptions


def test_an_interrupted_output_goes_on_where_it_stopped(shout, model: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    texts = tiny_texts(31)
    source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    arguments = ("--model", model, "--input", str(source), "--output", str(target))
    shout(stop_after=17)
    run(*arguments)
    assert not target.exists()
    part = tmp_path / "out.txt.part"
    assert part.read_text(encoding="utf-8").count("\n") == 14
    with part.open("a", encoding="utf-8") as file:
        file.write("half a line, as a power cut may leave it")
    shouter = shout()
    assert run(*arguments).exit_code == 0
    assert shouter.heard == texts[14:]
    assert target.read_text(encoding="utf-8") == "".join(f"{text.upper()}\n" for text in texts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def interrupted(shout: Any, model: str, folder: Path, *more: str) -> tuple[str, ...]:
    """A run of 20 lines that was stopped after 14; -> its arguments."""
    (folder / "in.txt").write_text("".join(f"line {number}\n" for number in range(20)), encoding="utf-8")
    arguments = ("--model", model, "--input", str(folder / "in.txt"), "--output", str(folder / "out.txt"), *more)
    shout(stop_after=17)
    run(*arguments)
    shout()
    return arguments


def test_another_setting_is_not_mixed_in(shout, model: str, tmp_path: Path) -> None:
    arguments = interrupted(shout, model, tmp_path)
    error = refusal(*arguments, "--beam", "7")
    part = tmp_path / "out.txt.part"
    assert str(error) == f"{part} was made with other settings (beam): delete {part} to start again"
    part.unlink()
    assert run(*arguments, "--beam", "7").exit_code == 0
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").count("\n") == 20


def test_another_input_is_not_mixed_in(shout, model: str, tmp_path: Path) -> None:
    arguments = interrupted(shout, model, tmp_path)
    source = tmp_path / "in.txt"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("line 3\n", "line three\n"), encoding="utf-8")
    assert "out.txt.part was made from other input: delete" in str(refusal(*arguments))
    source.write_text("line 0\nline 1\n", encoding="utf-8")
    assert "out.txt.part has 14 lines, the input only 2: delete" in str(refusal(*arguments))
    source.write_text(text.replace("line 17", "line seventeen"), encoding="utf-8")
    assert run(*arguments).exit_code == 0  # what was not done yet may change


def test_a_damaged_note_of_progress_is_refused(shout, model: str, tmp_path: Path) -> None:
    arguments = interrupted(shout, model, tmp_path)
    (tmp_path / "out.txt.part.json").write_text("{", encoding="utf-8")
    assert "out.txt.part.json does not fit" in str(refusal(*arguments))


def test_an_output_that_is_no_file_is_written_as_it_is(shout, model: str, tmp_path: Path) -> None:
    shout()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    run("--model", model, "--output", str(pipe), text="a\nb\n")
    assert reader.communicate(timeout=30)[0] == b"A\nB\n"
    assert list(tmp_path.iterdir()) == [pipe]


# Bad input: one clear line, nothing half-written


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0\n", "in.txt:1: a NUL character, expected UTF-8 text: is this a binary file"),
        (b"one\ntwo\ncaf\xe9\n", "in.txt:3: byte 0xe9 at byte 4 of the line is not UTF-8"),
        (b"", "in.txt is empty, expected text to translate"),
        (b"\xff\xfea\0", "in.txt is UTF-16, expected UTF-8"),
    ],
)
@pytest.mark.parametrize("to_file", [True, False])
def test_bad_text_is_told_by_file_and_line(
    shout, model: str, tmp_path: Path, contents: bytes, message: str, to_file: bool
) -> None:
    shouter = shout()
    (tmp_path / "in.txt").write_bytes(contents)
    output = ("--output", str(tmp_path / "out.txt")) if to_file else ()
    error = refusal("--model", model, "--input", str(tmp_path / "in.txt"), *output)
    assert isinstance(error, DataError)
    assert message in str(error)
    assert shouter.heard == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_nothing_on_standard_input(model: str) -> None:
    assert str(refusal("--model", model, text="")) == "standard input is empty, expected text to translate"


def test_a_file_that_is_not_there_and_one_that_cannot_be(shout, model: str, tmp_path: Path) -> None:
    shout()
    assert str(refusal("--model", model, "--input", str(tmp_path / "none"))) == f"{tmp_path / 'none'}: no such file"
    assert "is a directory, expected a file" in str(refusal("--model", model, "--input", str(tmp_path)))
    error = refusal("--model", model, "--output", str(tmp_path / "none" / "out.txt"), text="a\n")
    place = tmp_path / "none" / "out.txt"
    assert str(error) == f"cannot write the translation {place}: there is no folder {place.parent}, make it first"
    assert "it is a folder, expected the name of a file" in str(
        refusal("--model", model, "--output", str(tmp_path), text="a\n")
    )


def test_a_hundred_thousand_characters_are_cut_with_a_warning_or_refused(model: str) -> None:
    line = "Lame dila, " * 9_000 + "\n"
    result = run("--model", model, "--no-guards", "--beam", "1", text=line)
    assert result.stdout.count("\n") == 1
    assert result.stderr.count("\n") == 1
    assert "dragoman: standard input:1: a sentence of" in result.stderr
    error = refusal("--model", model, "--strict", text=line)
    assert isinstance(error, LengthError)


def test_models_that_cannot_be_used(tmp_path: Path) -> None:
    missing = refusal("--model", str(tmp_path / "none"), "a")
    assert isinstance(missing, BundleError)
    folder = write_tiny_bundle(tmp_path / "model").path
    config = folder / "config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"format": 1', '"format": 99'), encoding="utf-8")
    assert "reads up to 1: upgrade dragoman" in str(refusal("--model", str(folder), "a"))
    config.write_text(text, encoding="utf-8")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1009])
    assert "has 1009 bytes" in str(refusal("--model", str(folder), "a"))


def test_without_a_model_the_one_in_the_box_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path)
    assert str(refusal("a")) == ("no model translates from fr to en in the box, which has none: give --model FOLDER")
    (tmp_path / "fr-en").symlink_to(model)
    assert (
        run("Baceba dila.").stdout
        == run("--to", "en", "Baceba dila.").stdout
        == run("--model", model, "Baceba dila.").stdout
    )
    assert "no model translates to de in the box, which has fr-en" in str(refusal("--to", "de", "a"))


def test_text_in_the_language_that_it_is_translated_into_is_doubted_unless_languages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path)
    (tmp_path / "fr-en").symlink_to(model)
    english, hint = "Where is the station, please?", "dragoman: this was read as French and looks like English"
    assert hint in run(english).stderr
    assert hint not in run("--from", "fr", english).stderr
    assert hint not in run("Où est la gare, s'il vous plaît ?").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--input", "x", "a"), "TEXT and --input FILE are given, expected one of them"),
        (("--output", "x", "a"), "TEXT and --output FILE are given, expected one of them"),
        (("--seed", "3", "a"), "--seed is about drawing translations: give --sample too"),
        (("--sample", "--top-p", "2", "a"), "top_p is 2.0, expected a share above 0"),
        (("--to", "de", "a"), "this model does not translate to de: it knows fr-en"),
    ],
)
def test_options_that_do_not_fit_are_refused(model: str, arguments: tuple[str, ...], message: str) -> None:
    error = refusal("--model", model, *arguments)
    assert isinstance(error, ConfigError)
    assert message in str(error)


# Whole processes


def test_a_glossary_that_changed_does_not_go_on_with_an_output(shout, model: str, tmp_path: Path) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("line\tligne\n", encoding="utf-8")
    arguments = interrupted(shout, model, tmp_path, "--glossary", str(terms))
    terms.write_text("line\tfil\n", encoding="utf-8")
    assert "was made with other settings (glossary_path)" in str(refusal(*arguments))


def test_two_processes_do_not_write_one_output(tmp_path: Path) -> None:
    from dragoman.cli._resumable import resumable_output

    path = tmp_path / "out.txt"
    with resumable_output(path, {}, iter(())) as output:
        output.write(["a"], ["A"])
        with (
            pytest.raises(DataError, match=r"another process is writing .*out\.txt now"),
            resumable_output(path, {}, iter(["a"])),
        ):
            pass
    assert path.read_text(encoding="utf-8") == "A\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--align", "--output", "x"), "--align draws on the terminal, --output is a file: leave one of them out"),
        (("--beam", "2", "--sample"), "--beam is of a search, --sample draws: leave one of them out"),
        (("--ensemble", "x", "--sample"), "--ensemble is of a search, --sample draws: leave one of them out"),
        (("--no-guards", "--glossary", "x"), "--no-guards checks nothing, --glossary must be: leave one of them out"),
        (("--sample", "--seed", "-1", "a"), "seed is -1, expected a number from 0"),
        (("--sample", "--temperature", "nan", "a"), "temperature is nan, expected a number above 0"),
        (("caf\udce9",), "TEXT is not UTF-8: convert it"),
        (
            ("--output", "out/b.txt.gz"),
            "out/b.txt.gz would not be compressed: give --output b.txt, and compress it then",
        ),
    ],
)
def test_what_would_be_ignored_or_cannot_be_is_refused(options: tuple[str, ...], message: str) -> None:
    assert str(refusal(*options)).startswith(message)


def test_a_memory_is_heard(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "SHARE", 0.97)
    monkeypatch.setattr(recall, "TEMPERATURE", 1e-9)
    memory = tmp_path / "memory.tsv"
    memory.write_text("Lame dila.\tGuni.\n", encoding="utf-8")
    words = ("--model", model, "--no-guards", "Lame dila.")
    assert run(*words, "--memory", str(memory)).stdout == "Guni.\n"
    assert run(*words).stdout != "Guni.\n"


@pytest.mark.parametrize(
    ("told", "languages"), [((), "fr-en"), (("--to", "fr"), "en-fr"), (("--from", "en", "--to", "fr"), "en-fr")]
)
def test_a_memory_has_the_languages_of_the_translation(
    told: tuple[str, ...], languages: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = write_tiny_bundle(tmp_path / "both", directions=("fr-en", "en-fr"), languages=("en", "fr"))
    memory = tmp_path / "memory.tsv"
    memory.write_text("Lame dila.\tGuni.\n", encoding="utf-8")
    given = {}
    monkeypatch.setattr("dragoman.translator.load", lambda *_, **options: given.update(options) or Shouter())
    run("--model", str(both.path), "--memory", str(memory), *told, text="Lame dila.\n")
    assert given["memory"] == CorpusConfig(path=str(memory), languages=languages)


def test_a_run_is_not_resumed_with_another_memory(model: str, tmp_path: Path, shout) -> None:
    memory = tmp_path / "memory.tsv"
    memory.write_text("Lame dila.\tGuni.\n", encoding="utf-8")
    (tmp_path / "in.txt").write_text("a\n" * 20, encoding="utf-8")
    words = ("--model", model, "--memory", str(memory), "--input", str(tmp_path / "in.txt"))
    words = (*words, "--output", str(tmp_path / "out.txt"))
    shout(stop_after=10)
    run(*words)
    memory.write_text("Lame dila.\tCefo.\n", encoding="utf-8")
    assert "was made with other settings (memory)" in str(refusal(*words))


def test_a_closed_pipe_is_quiet(model: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("Lame dila.\n" * 3000, encoding="utf-8")
    words = [sys.executable, "-m", "dragoman", "translate", "--model", model, "--no-guards", "--input"]
    first = subprocess.Popen([*words, str(tmp_path / "in.txt")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stderr is not None
    assert first.stdout.readline() != b""
    first.stdout.close()
    assert first.stderr.read() == b""
    assert first.wait(timeout=60) == 0
    first.stderr.close()


def test_verbose_tells_what_is_done(tmp_path: Path) -> None:
    folder = write_tiny_bundle(tmp_path / "model").path
    words = [sys.executable, "-m", "dragoman", "translate", "--model", str(folder), "-v", "Lame dila."]
    environment = {**os.environ, "DRAGOMAN_CACHE": str(tmp_path / "cache")}
    result = subprocess.run(words, capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert result.stderr.startswith(f"dragoman: converting {folder} to CTranslate2 int8\n")
