"""Test sets: any corpus, one reference or several a line, and output files that must match them."""

import gzip
import json
from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.evaluate.testset import TestSet, read_hypotheses, read_test_set
from dragoman.recipe import CorpusConfig


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_tsv_file_has_one_reference_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "Va !\tGo!\nViens.\tCome.\nReste.\tStay.\n")
    expected = TestSet("pairs.tsv", ("Va !", "Viens.", "Reste."), (("Go!",), ("Come.",), ("Stay.",)))
    assert read_test_set(CorpusConfig(path=path)) == expected
    assert len(expected) == 3


def test_two_aligned_files_are_a_test_set(tmp_path: Path) -> None:
    source, target = written(tmp_path / "t.fr", "Va !\nViens.\n"), written(tmp_path / "t.en", "Go!\nCome.\n")
    test = read_test_set(CorpusConfig(path=source, target_path=target))
    assert test.references == (("Go!",), ("Come.",))
    assert test.languages == ("fr", "en")


@pytest.mark.parametrize("wrapped", [False, True])
def test_json_lines_may_hold_several_references(tmp_path: Path, wrapped: bool) -> None:
    records = [{"fr": "Va !", "en": ["Go!", "Go away!"]}, {"fr": "Viens\nici.", "en": "Come\nhere."}]
    lines = [json.dumps({"translation": record} if wrapped else record) for record in records]
    path = tmp_path / "test.fr-en.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    test = read_test_set(CorpusConfig(path=str(path)))
    assert test.sources == ("Va !", "Viens ici.")
    assert test.references == (("Go!", "Go away!"), ("Come here.",))


def test_json_lines_may_say_source_and_target(tmp_path: Path) -> None:
    path = written(tmp_path / "test.jsonl", '{"source": "Va !", "target": ["Go!", "Leave!"]}\n')
    assert read_test_set(CorpusConfig(path=path, languages="fr-en")).references == (("Go!", "Leave!"),)


@pytest.mark.parametrize("line", ['{"fr": "Va !", "en": []}', '{"fr": "Va !"}', '{"translation": "Va"}', "[7]"])
def test_a_json_line_without_both_sides_is_refused_with_file_and_line(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "test.jsonl", f'{{"fr": "Non.", "en": "No."}}\n{line}\n')
    with pytest.raises(DataError) as refusal:
        read_test_set(CorpusConfig(path=path, languages="fr-en"))
    assert str(refusal.value) == (
        f'{path}:2: no source with its references, expected {{"fr": "..", "en": "..", or a list of them}}; '
        f"say which languages to read with --from and --to"
    )


def test_half_a_character_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path / "test.jsonl", r'{"fr": "Va !", "en": ["Go!", "\ud800"]}')
    with pytest.raises(DataError, match=r"test.jsonl:1: half a character"):
        read_test_set(CorpusConfig(path=path, languages="fr-en"))


def test_a_line_that_is_not_json_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path / "test.jsonl", "Va !\n")
    with pytest.raises(DataError, match=r"test.jsonl:1: not JSON, expected an object a line"):
        read_test_set(CorpusConfig(path=path))


@pytest.mark.parametrize(("line", "side"), [("\tGo!", "source"), ("Va !\t", "reference")])
def test_a_pair_without_a_side_has_no_score_and_is_refused(tmp_path: Path, line: str, side: str) -> None:
    path = written(tmp_path / "pairs.tsv", f"Non.\tNo.\n{line}\n")
    with pytest.raises(DataError, match=rf"pairs.tsv:2: no {side}, expected text: remove the pair"):
        read_test_set(CorpusConfig(path=path))


def test_a_limit_cuts_the_set_and_an_output_alike(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "".join(f"source {i}\ttarget {i}\n" for i in range(7)))
    output = written(tmp_path / "output.txt", "".join(f"output {i}\n" for i in range(7)))
    test = read_test_set(CorpusConfig(path=path), limit=3)
    assert test.sources == ("source 0", "source 1", "source 2")
    assert read_hypotheses(output, test, limit=3) == ["output 0", "output 1", "output 2"]


def test_an_output_of_another_length_is_refused_with_both_numbers(tmp_path: Path) -> None:
    test = TestSet("pairs.tsv", ("a", "b", "c"), (("x",), ("y",), ("z",)))
    output = written(tmp_path / "output.txt", "one\n\n")
    with pytest.raises(DataError, match=r"output.txt has 2 lines and the test set pairs.tsv has 3 pairs, expected as"):
        read_hypotheses(output, test)


def test_an_empty_output_line_is_a_translation_that_is_empty(tmp_path: Path) -> None:
    test = TestSet("pairs.tsv", ("a", "b"), (("x",), ("y",)))
    assert read_hypotheses(written(tmp_path / "output.txt", "\n y \n"), test) == ["", "y"]


def test_an_empty_file_is_no_test_set(tmp_path: Path) -> None:
    for name in ("pairs.tsv", "pairs.jsonl"):
        with pytest.raises(DataError, match="no pairs in"):
            read_test_set(CorpusConfig(path=written(tmp_path / name, "")))
