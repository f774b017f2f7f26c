"""`dragoman doctor` as a person meets it."""

import gzip
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.doctor import command
from dragoman.errors import ConfigError, DataError
from dragoman.recipe import TokenizerConfig


def pairs(count: int) -> list[tuple[str, str]]:
    draw = random.Random(count)
    numbers = [[draw.randint(10, 9999) for _ in range(draw.randint(2, 13))] for _ in range(count)]
    return [(f"suite de {', '.join(map(str, n))}.", f"row of {', '.join(map(str, n))}.") for n in numbers]


def tsv(path: Path, sides: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in sides), encoding="utf-8")
    return str(path)


def doctor(*arguments: str, input: bytes | None = None) -> Result:
    return CliRunner().invoke(command, arguments, input=input, catch_exceptions=False)


def test_a_sound_corpus_is_ready_to_train(tmp_path: Path) -> None:
    result = doctor(tsv(tmp_path / "train.fr-en.tsv", pairs(103)), "--strict")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "fr → en"
    assert lines[1].split() == ["set", "pairs", "kept", "side", "words", "median", "95", "%"]
    assert lines[2].split()[:4] == ["train", "103", "103", "fr"]
    assert lines[-1] == "ready to train, nothing found"


def test_problems_are_told_with_place_and_advice_and_are_fatal_only_when_strict(tmp_path: Path) -> None:
    path = tsv(tmp_path / "p.tsv", pairs(103))
    with open(path, "a") as file:
        file.write("one column\n\tno source\n")
    result, strict = doctor(path), doctor(path, "--strict")
    assert result.exit_code == 0
    assert strict.exit_code == 1
    assert strict.stdout == result.stdout
    lines = result.stdout.splitlines()
    assert "dropped from train: 1 with one column (0.95 %), 1 with an empty side (0.95 %)" in lines
    assert "problem in train, 0.95 %: 1 line with one column" in lines
    assert f"    {path}:104" in lines
    assert any(line.startswith("  → Put a tab between source and target.") for line in lines)
    assert lines[-1] == "1 problem, 1 warning: mend the problems before training"


def test_output_that_is_no_terminal_is_plain_and_unbroken(tmp_path: Path) -> None:
    path = tsv(tmp_path / "p.tsv", [*pairs(53), ("beep \x1b[31m[bold]" + "x" * 90, "bip " + "y" * 90)])
    result = doctor(path)
    assert "\x1b" not in result.stdout
    assert "      beep \\u001b[31m[bold]" + "x" * 90 in result.stdout.splitlines()
    assert result.stderr == ""


def test_json_is_one_object(tmp_path: Path) -> None:
    result = doctor(tsv(tmp_path / "p.tsv", [("été", "summer"), ("", "x")]), "--json", "--from", "fr", "--to", "pt-BR")
    diagnosis = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert diagnosis["languages"] == ["fr", "pt_BR"]
    assert diagnosis["sets"][0]["kept"] == 1
    assert [finding["kind"] for finding in diagnosis["findings"]] == ["empty"]


def test_two_aligned_files_are_given_by_options_or_with_a_comma(tmp_path: Path) -> None:
    sides = pairs(53)
    for index, name in enumerate(("a.fr", "a.en")):
        (tmp_path / name).write_text("".join(f"{pair[index]}\n" for pair in sides))
    source, target = str(tmp_path / "a.fr"), str(tmp_path / "a.en")
    by_options = doctor("--source", source, "--target", target)
    assert by_options.stdout.splitlines()[0] == "fr → en"
    assert doctor(f"{source},{target}").stdout == by_options.stdout


def test_sentences_of_valid_and_test_in_train_are_told(tmp_path: Path) -> None:
    train = tsv(tmp_path / "train.tsv", pairs(103))
    valid, test = tsv(tmp_path / "v.tsv", pairs(103)[:3]), tsv(tmp_path / "t.tsv", pairs(103)[50:51])
    result = doctor(train, "--valid", valid, "--test", test)
    assert "problem in valid: 3 pairs of valid with a sentence that is in train too" in result.stdout
    assert "problem in test: 1 pair of test with a sentence that is in train too" in result.stdout


def test_standard_input_is_a_corpus(tmp_path: Path) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in pairs(53)).encode()
    assert doctor("-", input=gzip.compress(text)).stdout.splitlines()[-1] == "ready to train, nothing found"


def test_the_report_is_written_beside_the_summary(tmp_path: Path) -> None:
    page = tmp_path / "doctor.html"
    result = doctor(tsv(tmp_path / "p.tsv", pairs(53)), "--report", str(page))
    assert result.stdout.splitlines()[-1] == f"report: {page}"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_tokenizer_or_the_folder_that_holds_one_counts_real_pieces(tmp_path: Path) -> None:
    from dragoman.text.tokenizer import Tokenizer

    sides = pairs(211)
    texts = [text for pair in sides for text in pair]
    Tokenizer.learn(texts, TokenizerConfig(vocab_size=331)).save(tmp_path / "tokenizer.json")
    path = tsv(tmp_path / "p.tsv", sides)
    by_folder = doctor(path, "--model", str(tmp_path))
    assert by_folder.stdout.splitlines()[1].endswith("pieces a word")
    assert doctor(path, "--model", str(tmp_path / "tokenizer.json")).stdout == by_folder.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--source", "a.fr"), "--source is one of two aligned files: give the other one with --target"),
        (("--target", "a.en"), "--target is one of two aligned files: give the other one with --source"),
        (("p.tsv", "--from", "fr"), "--from names one language of two: give the other one with --to"),
        (("p.tsv", "--to", "fr"), "--to names one language of two: give the other one with --from"),
    ],
)
def test_half_of_what_belongs_together_is_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        doctor(*arguments)


def test_a_report_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    page = tmp_path / "missing" / "doctor.html"
    with pytest.raises(DataError, match=r"cannot write the report \S+doctor\.html: there is no folder"):
        doctor(tsv(tmp_path / "p.tsv", pairs(53)), "--report", str(page))


def test_nothing_given_says_what_to_give() -> None:
    with pytest.raises(DataError, match="no corpus to look at: name a file of pairs"):
        doctor()


def test_it_predicts_what_training_would_take_unless_told_not_to(tmp_path: Path) -> None:
    pairs = tmp_path / "p.tsv"
    pairs.write_text("".join(f"la phrase {n}\tthe sentence {n}\n" for n in range(97)), encoding="utf-8")
    told = json.loads(CliRunner().invoke(command, [str(pairs), "--json"]).stdout)
    assert told["predicted_seconds"] > 0
    assert told["predicted_memory_bytes"] > 0
    untold = json.loads(CliRunner().invoke(command, [str(pairs), "--json", "--no-prediction"]).stdout)
    assert untold["predicted_seconds"] is None
