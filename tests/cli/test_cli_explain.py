"""`dragoman explain`: what it prints, what it writes, what it refuses."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.explain import command
from dragoman.errors import BundleError, ConfigError, DataError, MissingExtraError
from dragoman.explain import Trace
from dragoman.explain.terminal import text_width
from tiny_bundle import write_tiny_bundle

TEXT = "Baceba dila gupo."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("explain") / "model"
    return str(write_tiny_bundle(folder, directions=("fr-en", "en-fr"), languages=("en", "fr")).path)


def run(model: str, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--model", model, *arguments], catch_exceptions=False)


def test_it_prints_the_translation_the_alignment_and_the_most_telling_heads(model: str) -> None:
    result = run(model, "Baceba dila.", "Gupo.")
    lines = result.stdout.splitlines()
    trace = json.loads(run(model, "--json", "Baceba dila.", "Gupo.").stdout)
    assert lines[0] == "fr  Baceba dila."
    assert lines[1].startswith("en  ")
    assert "sentence 1 of 2" in result.stdout
    assert "Which words looked where (decoder.1.cross_attention, mean of its heads)" in lines
    assert "Most telling heads: what the log-probability (" in result.stdout
    assert sum(line.startswith(("  encoder.", "  decoder.")) for line in lines) == 5
    assert f"score {trace['translation']['score']:.2f}" in result.stdout
    assert all(text_width(line) <= 80 for line in lines)


def test_json_is_what_a_saved_trace_has(model: str, tmp_path: Path) -> None:
    result = run(model, "--json", "--save", str(tmp_path / "trace"), TEXT)
    assert json.loads(result.stdout) == Trace.load(tmp_path / "trace").meta()
    assert result.stderr == f"wrote {tmp_path / 'trace'}\n"


def test_a_step_and_the_search_are_shown_when_asked_for(model: str) -> None:
    plain, more = run(model, TEXT).stdout, run(model, "--step", "2", "--tree", "--beam", "3", TEXT).stdout
    assert "Piece 2 of" in more
    assert "Piece 2 of" not in plain
    assert "The search: [chosen] score" in more
    assert "beam 3" in more


def test_a_beginning_is_forced_and_heads_are_off(model: str) -> None:
    off = "decoder.0.cross_attention.1"
    result = run(model, "--force", "Lame", "--off", off, "--length-penalty", "1", "--json", TEXT)
    meta = json.loads(result.stdout)
    assert meta["translation"]["text"].startswith("Lame")
    assert meta["request"]["off"] == [off]
    assert meta["request"]["length_penalty"] == 1
    assert f"switched off: {off}" in run(model, "--off", off, TEXT).stdout


def test_another_sentence_and_the_other_direction_are_explained(model: str) -> None:
    meta = json.loads(run(model, "--from", "en", "--to", "fr", "--sentence", "2", "--json", "Ba ce. Di fo.").stdout)
    assert (meta["source"]["text"], meta["request"]["target"]) == ("Di fo.", "fr")


def test_pictures_and_the_page_are_written(model: str, tmp_path: Path) -> None:
    result = run(model, "--png", str(tmp_path / "png"), "--html", str(tmp_path / "page.html"), TEXT)
    names = {file.name for file in (tmp_path / "png").iterdir()}
    assert {"alignment.png", "heads-cross.png", "positions.png", "learning-rate.png", "label-smoothing.png"} <= names
    assert "window.DRAGOMAN_TRACE" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert result.stderr.splitlines()[-1] == f"wrote {tmp_path / 'page.html'}"


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["--step", "99", TEXT], ConfigError, "--step is 99, the translation has"),
        (["--off", "encoder.9", TEXT], ConfigError, "'encoder.9' does not name a head"),
        (["--sentence", "3", TEXT], ConfigError, "the text has 1"),
        (["--to", "de", TEXT], ConfigError, "this model does not translate"),
        ([" "], DataError, "there is nothing to translate in ' '"),
        (["caf\udce9"], DataError, "TEXT is not UTF-8"),
        (["--force", "caf\udce9", TEXT], DataError, "--force is not UTF-8"),
        (
            ["--html", "/nowhere/page.html", TEXT],
            DataError,
            "cannot write the page /nowhere/page.html: there",
        ),
        (["--json", "--tree", TEXT], ConfigError, "--tree is for reading, --json has all"),
        (["--model", "/nowhere", TEXT], BundleError, "there is no model at /nowhere"),
    ],
)
def test_what_cannot_be_is_one_sentence(model: str, arguments: list[str], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run(model, *arguments)


def test_a_tree_that_nobody_could_read_is_refused(model: str) -> None:
    found = run(model, "--beam", "65", TEXT)
    assert found.exit_code == 2
    assert "65 is not in the range 1<=x<=64" in found.output


def test_without_torch_it_says_what_to_install(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError) as caught:
        run(model, TEXT)
    assert (
        str(caught.value)
        == "explaining a translation needs torch: pip install -c constraints.txt '.[train]' in dragoman's folder"
    )
