"""`dragoman compare`: models and output files, in any mixture."""

import json
from pathlib import Path

import pytest
from scoring_files import OUTPUT, TARGETS, FakeModels, refusal, run, write_lines, write_pairs

from dragoman.cli.compare import command

QUICK = ("--samples", "101")


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    return write_pairs(tmp_path)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> FakeModels:
    models = FakeModels({"small": OUTPUT, "large": TARGETS})
    monkeypatch.setattr("dragoman.cli.compare.open_model", models)
    return models


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    return write_lines(tmp_path / "a.txt", OUTPUT), write_lines(tmp_path / "b.txt", TARGETS)


def test_two_files_are_compared_in_words_and_numbers(files: tuple[str, str], pairs: str) -> None:
    result = run(command, *files, "--test", pairs, *QUICK)
    assert result.exit_code == 0
    first, second = files
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[:3] == [f"A = {first}", f"B = {second}", "3 of 5 lines of pairs.tsv differ"]
    assert lines[4].split() == ["score", "A", "B", "B", "-", "A", "95", "%", "interval", "p"]
    assert lines[5].startswith("BLEU")
    assert "100.00" in lines[5]
    assert "paired bootstrap, 101 draws, seed 12345" in lines
    assert any("|bs:101|seed:12345|" in line for line in lines)
    begin = lines.index("B gains most")
    assert lines[begin + 1 : begin + 6] == [
        "  line 3: chrF 0.0 -> 100.0",
        "     source  Je ne sais pas où est la gare.",
        "  reference  I do not know where the station is.",
        "          A  (nothing)",
        "          B  I do not know where the station is.",
    ]
    assert "B loses most" not in lines


def test_a_model_compares_with_a_file_as_its_output_does(
    files: tuple[str, str], pairs: str, models: FakeModels
) -> None:
    two_files = json.loads(run(command, *files, "--test", pairs, "--json", *QUICK).stdout)
    mixed = json.loads(run(command, "small", files[1], "--test", pairs, "--json", "--beam", "3", *QUICK).stdout)
    assert mixed["first"] == "small"
    assert mixed["differences"] == two_files["differences"]
    assert mixed["gains"] == two_files["gains"]
    assert models.opened == [
        {"name": "small", "languages": ("source", "target"), "engine": None, "compute_type": None, "beam": 3}
    ]


def test_two_models_are_opened_before_either_translates(pairs: str, models: FakeModels) -> None:
    assert refusal(command, "small", "lagre", "--test", pairs) == "there is no model at lagre"
    assert models.translated == []
    result = run(command, "small", "large", "--test", pairs, *QUICK)
    assert models.translated == ["small", "large"]
    assert result.stderr == "translating with small: 5 of 5 lines\ntranslating with large: 5 of 5 lines\n"


def test_the_verdict_names_the_better_one_only_when_it_is_clear(tmp_path: Path) -> None:
    many = tuple(f"this is sentence number {i} of the test" for i in range(41))
    test = write_lines(tmp_path / "many.tsv", tuple(f"phrase {i}\t{text}" for i, text in enumerate(many)))
    good = write_lines(tmp_path / "good.txt", many)
    bad = write_lines(tmp_path / "bad.txt", tuple(text[5:21] for text in many))
    verdicts = {}
    for one in (good, bad):
        for other in (good, bad):
            lines = run(command, one, other, "--test", test, *QUICK).stdout.splitlines()
            verdicts[one, other] = next(line for line in lines if line.startswith("BLEU"))
    assert verdicts[bad, good].rstrip().endswith("B is better")
    assert verdicts[good, bad].rstrip().endswith("A is better")
    assert verdicts[good, good].rstrip().endswith("1.0000  could be chance")


def test_options_reach_the_comparison(files: tuple[str, str], pairs: str) -> None:
    arguments = ("--test", pairs, "--json", "--lowercase", "--tokenize", "char", "--seed", "3", "--changes", "1")
    comparison = json.loads(run(command, *files, *arguments, *QUICK).stdout)
    assert "bs:101|seed:3|case:lc|eff:no|tok:char" in comparison["differences"][0]["signature"]
    assert len(comparison["gains"]) == 1
    assert comparison["num_changed"] == 3


def test_settings_of_a_model_are_refused_where_there_is_none(files: tuple[str, str], pairs: str) -> None:
    message = refusal(command, *files, "--test", pairs, "--engine", "torch")
    assert message == "--engine does nothing to outputs that exist already: leave it out"


def test_too_few_draws_are_a_usage_error(files: tuple[str, str], pairs: str) -> None:
    result = run(command, *files, "--test", pairs, "--samples", "7")
    assert result.exit_code == 2
    assert "7 is not in the range x>=100" in result.stderr
