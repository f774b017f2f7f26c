"""`recipes/rnn-vs-transformer`: one command trains, measures and compares; called again, it does nothing twice."""

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from dragoman.cli import dragoman

RECIPE = Path(__file__).parents[1] / "recipes" / "rnn-vs-transformer"
sys.path.insert(0, str(RECIPE))

import run as comparison  # noqa: E402
from comparison_figures import Line, line_chart, word_grid  # noqa: E402
from comparison_page import Alignment, Measured, Validation, write_page  # noqa: E402

from dragoman.evaluate.quality import Bucket  # noqa: E402

WORDS = {"ona": "one", "dua": "two", "tria": "three", "kvara": "four", "kvina": "five", "sesa": "six", "sepa": "seven"}


def pairs(count: int, start: int) -> str:
    names = list(WORDS)
    rows = [[names[(start + i * k) % 7] for k in range(1, 4 + i % 9)] for i in range(count)]
    return "".join(f"{' '.join(row)}\t{' '.join(WORDS[word] for word in reversed(row))}\n" for row in rows)


def measured(name: str, weights: tuple[tuple[float, ...], ...], architecture: str = "recurrent") -> Measured:
    return Measured(
        name=name,
        title=f"the {name}",
        architecture=architecture,
        parameters=1_234_567,
        bleu=31.4159,
        bleu_signature="nrefs:1",
        chrf=52.5,
        chrf_signature="nc:6",
        training_tokens_per_second=2345.6,
        training_tokens=98_765,
        decoding_tokens_per_second=789.1,
        source_pieces=11.0,
        target_pieces=13.0,
        buckets=(Bucket("1-5", 17, 40.0, 60.0), Bucket("6-10", 19, 20.0, 50.0)),
        validations=(Validation(1.0, 10.0), Validation(2.0, 30.0)),
        alignment=Alignment("a <b> c", "x | y", weights),
        threads=2,
    )


def test_the_page_tells_everything_and_shows_where_each_looked(tmp_path: Path) -> None:
    models = [measured("rnn", ()), measured("transformer", ((0.5, 0.5, 0.0),) * 3, "transformer")]
    write_page(tmp_path, models, test_set="test.tsv", num_pairs=36, minutes=30, command="python run.py")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    for row in (
        "|  | the rnn | the transformer |",
        "| BLEU | 31.4 | 31.4 |",
        "| chrF | 52.5 | 52.5 |",
        "| parameters | 1,234,567 | 1,234,567 |",
        "| target tokens/s in training | 2,346 | 2,346 |",
        "| target tokens/s in decoding | 789 | 789 |",
        "| sequential steps a sentence, training | 24.0 | 2.0 |",
        "| sequential steps a sentence, decoding | 24.0 | 14.0 |",
        "| 6-10 | 19 | 20.0 | 20.0 |",
        "    python run.py",
        "No alignment to draw: it has no attention, or the words of this translation cannot be told apart.",
    ):
        assert row in page.splitlines()
    assert "30 minutes each" in page
    assert "nrefs:1" in page
    figures = {path.name for path in tmp_path.glob("*.svg")}
    assert figures == {"bleu-by-length.svg", "bleu-by-time.svg", "alignment-transformer.svg"}
    assert all(name in page for name in figures)
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["models"][1]["bleu"] == 31.4159


def test_a_figure_is_whole_and_holds_no_markup_of_its_words() -> None:
    from xml.etree import ElementTree

    lines = [Line("<one>", [(0, 10.0), (1, 42.0)]), Line("two", [(0, 5.0), (1, 41.9)]), Line("none yet", [])]
    chart = line_chart(lines, [(0, "1-5"), (1, "6-10")], "words", "BLEU")
    grid = word_grid(((0.9, 0.1),), ["<b>", "&"], ["c"], "a title")
    for figure in (chart, grid):
        ElementTree.fromstring(figure)
    assert "&lt;one&gt;" in chart
    assert chart.count("<circle") == 4
    assert grid.count("<rect") == 2


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    chart = line_chart([Line(name, [(0, 40.0)]) for name in ("a", "b", "c")], [(0, "x")], "words", "BLEU")
    heights = [float(part.split('"')[0]) for part in chart.split('x="478" y="')[1:]]
    assert len(heights) == 3
    assert all(after - before >= 16 for before, after in pairwise(heights))


@pytest.fixture
def trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that train, which run in this process."""
    told: list[Sequence[str]] = []

    def run(command: list[str], check: bool, env: Mapping[str, str]) -> None:
        told.append(command)
        result = CliRunner().invoke(dragoman, command[3:])
        assert result.exit_code == 0, result.exception

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(comparison, "subprocess", SimpleNamespace(run=run))
    monkeypatch.setattr("dragoman.train.run.measure_operations_per_second", lambda **_: 1e10)
    monkeypatch.setattr("dragoman.train.hardware.reuse_memory", lambda: None)
    monkeypatch.setattr("dragoman.train.journal.draw_curves", lambda *_: None)
    monkeypatch.setattr(comparison, "LEAST_PAIRS", 1)
    return told


def test_one_command_compares_three_models_and_the_same_command_again_trains_nothing(
    tmp_path: Path, trainings: list[Sequence[str]]
) -> None:
    for name, count, start in (("train", 211, 0), ("valid", 13, 3), ("test", 11, 5)):
        (tmp_path / f"{name}.xx-yy.tsv").write_text(pairs(count, start), encoding="utf-8")
    settings = ("train.max_steps=1", "train.precision=float32", "model.d_ff=32")
    arguments = ["train.xx-yy.tsv", "--valid", "valid.xx-yy.tsv", "--test", "test.xx-yy.tsv", "--minutes", "0",
                 "--width", "32", "--vocab-size", "331", "--output", "page"]  # fmt: skip
    arguments += [word for setting in settings for word in ("--set", setting)]
    comparison.main(arguments)
    presets = [command[command.index("--preset") + 1] for command in trainings]
    assert presets == ["rnn", "rnn-attention", "small"]
    assert all("model.d_model=32" in command for command in trainings)
    results: dict[str, Any] = json.loads((tmp_path / "page" / "results.json").read_text(encoding="utf-8"))
    assert [model["architecture"] for model in results["models"]] == ["recurrent", "recurrent", "transformer"]
    assert results["models"][0]["alignment"]["weights"] == []
    assert sum(bucket["num_pairs"] for bucket in results["models"][2]["buckets"]) == 11
    page = (tmp_path / "page" / "README.md").read_bytes()
    comparison.main(arguments)
    assert len(trainings) == 3
    assert (tmp_path / "page" / "README.md").read_bytes() == page
    with pytest.raises(SystemExit, match=r"was trained with other settings, which .*rnn\.asked\.json has"):
        comparison.main([*arguments, "--set", "train.max_steps=2"])
