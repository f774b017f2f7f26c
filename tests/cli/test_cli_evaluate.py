"""`dragoman evaluate`, from options to tables, JSON and files."""

import json
import os
from pathlib import Path

import pytest
import sacrebleu
from scoring_files import OUTPUT, SOURCES, TARGETS, FakeModels, refusal, run, write_lines, write_pairs

from dragoman.bundle import Bundle
from dragoman.cli._scoring import choose_direction
from dragoman.cli.evaluate import command
from dragoman.errors import ConfigError, DataError
from dragoman.text.languages import UNKNOWN
from tiny_bundle import write_tiny_bundle


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    return write_pairs(tmp_path)


@pytest.fixture
def output(tmp_path: Path) -> str:
    return write_lines(tmp_path / "output.txt", OUTPUT)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> FakeModels:
    models = FakeModels({"small": OUTPUT})
    monkeypatch.setattr("dragoman.cli.evaluate.open_model", models)
    return models


def test_an_output_is_scored_with_signatures(pairs: str, output: str) -> None:
    result = run(command, "--hypotheses", output, "--test", pairs)
    assert result.exit_code == 0
    bleu = sacrebleu.corpus_bleu(list(OUTPUT), [list(TARGETS)]).score
    assert f"BLEU     {bleu:.2f}  nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in result.stdout
    for part in ("chrF2++", "TER", "output.txt on pairs.tsv", "pairs 5", "1-5", "empty                1  20.00 %"):
        assert part in result.stdout
    assert "sentences/s" not in result.stdout
    assert result.stderr == ""


def test_json_is_one_object_on_standard_output(pairs: str, models: FakeModels) -> None:
    options = ("--json", "--beam", "7", "--engine", "torch", "--ensemble", "other")
    result = run(command, "--model", "small", "--test", pairs, *options)
    summary = json.loads(result.stdout)
    assert summary["scores"][0]["value"] == sacrebleu.corpus_bleu(list(OUTPUT), [list(TARGETS)]).score
    assert summary["system"]["beam"] == 7
    assert summary["num_pairs"] == 5
    assert summary["speed"]["sentences_per_second"] > 0
    settings = {"engine": "torch", "compute_type": None, "beam": 7, "ensemble": ("other",), "memory": None}
    assert models.opened == [{"name": "small", "languages": ("source", "target"), **settings}]


def test_a_model_shows_its_speed_and_progress_goes_to_standard_error(pairs: str, models: FakeModels) -> None:
    result = run(command, "--model", "small", "--test", pairs)
    assert "words of output/s, split at white space" in result.stdout
    assert result.stderr == "translating with small: 5 of 5 lines\n"


def test_two_aligned_files_and_a_limit(tmp_path: Path, output: str) -> None:
    source, target = write_lines(tmp_path / "t.fr", SOURCES), write_lines(tmp_path / "t.en", TARGETS)
    arguments = ("--hypotheses", output, "--source", source, "--target", target, "--limit", "3", "--json")
    summary = json.loads(run(command, *arguments).stdout)
    assert summary["num_pairs"] == 3
    assert summary["scores"][0]["value"] == sacrebleu.corpus_bleu(list(OUTPUT[:3]), [list(TARGETS[:3])]).score


def test_several_references_are_read_from_json_lines(tmp_path: Path, output: str) -> None:
    records = [{"fr": s, "en": [t, h or "x"]} for s, t, h in zip(SOURCES, TARGETS, OUTPUT, strict=True)]
    test = write_lines(tmp_path / "test.jsonl", tuple(map(json.dumps, records)))
    arguments = ("--hypotheses", output, "--test", test, "--from", "fr", "--to", "en", "--json")
    assert "nrefs:2" in json.loads(run(command, *arguments).stdout)["scores"][0]["signature"]


def test_lowercase_and_tokenize_reach_the_signature(pairs: str, output: str) -> None:
    result = run(command, "--hypotheses", output, "--test", pairs, "--lowercase", "--tokenize", "char")
    assert "case:lc|eff:no|tok:char" in result.stdout


def test_the_report_and_the_output_are_written(tmp_path: Path, pairs: str, models: FakeModels) -> None:
    report, written = tmp_path / "report.html", tmp_path / "written.txt"
    result = run(command, "--model", "small", "--test", pairs, "--report", str(report), "--output", str(written))
    assert f"output: {written}\nreport: {report}\n" in result.stdout
    assert written.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in OUTPUT)
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {path.name for path in tmp_path.iterdir()} == {"pairs.tsv", "report.html", "written.txt"}


def test_a_report_goes_into_a_pipe_without_replacing_it(pairs: str, output: str) -> None:
    result = run(command, "--hypotheses", output, "--test", pairs, "--report", "/dev/null")
    assert result.exit_code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("option", ["--report", "--output"])
def test_a_place_that_cannot_be_written_is_refused_before_translating(
    tmp_path: Path, pairs: str, models: FakeModels, option: str
) -> None:
    place = tmp_path / "nowhere" / "file"
    message = refusal(command, "--model", "small", "--test", pairs, option, str(place))
    assert message == f"cannot write the {option[2:]} {place}: there is no folder {place.parent}, make it first"
    assert models.translated == []


def test_a_tokenizer_that_is_unknown_is_refused_before_translating(pairs: str, models: FakeModels) -> None:
    message = refusal(command, "--model", "small", "--test", pairs, "--tokenize", "13")
    assert message == "tokenize is '13': did you mean '13a'?"
    assert models.translated == []


@pytest.mark.parametrize("arguments", [[], ["--model", "a", "--hypotheses", "b"]])
def test_exactly_one_thing_is_evaluated(pairs: str, arguments: list[str]) -> None:
    result = run(command, "--test", pairs, *arguments)
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception) == "expected one thing to evaluate: give --model MODEL, or --hypotheses FILE"


@pytest.mark.parametrize("arguments", [[], ["--test", "a", "--source", "b", "--target", "c"]])
def test_exactly_one_test_set_is_given(output: str, arguments: list[str]) -> None:
    message = refusal(command, "--hypotheses", output, *arguments)
    assert message == "expected one test set: give --test pairs.tsv, or --source FILE and --target FILE"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "a"], "--source is one of two aligned files: give the other one with --target"),
        (["--target", "a"], "--target is one of two aligned files: give the other one with --source"),
        (["--test", "a", "--from", "fr"], "--from names one language of two: give the other one with --to"),
        (["--test", "a", "--to", "en"], "--to names one language of two: give the other one with --from"),
        (["--beam", "5"], "--beam does nothing to an output that exists already: leave it out, or give --model"),
        (
            ["--ensemble", "a"],
            "--ensemble does nothing to an output that exists already: leave it out, or give --model",
        ),
        (["--memory", "a"], "--memory does nothing to an output that exists already: leave it out, or give --model"),
    ],
)
def test_half_a_pair_of_options_and_idle_ones_are_refused(output: str, arguments: list[str], message: str) -> None:
    assert refusal(command, "--hypotheses", output, *arguments) == message


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--record", "--record is for the card of one model, --ensemble names others: leave one of them out"),
        ("--behaviour", "--behaviour tries one model, --ensemble names others: leave one of them out"),
    ],
)
def test_what_is_about_one_model_is_refused_for_an_ensemble(option: str, message: str) -> None:
    assert refusal(command, "--model", "a", "--ensemble", "b", option) == message


def test_what_is_about_one_model_is_refused_with_a_memory() -> None:
    message = "--record is for the card of one model, --memory is beside it: leave one of them out"
    assert refusal(command, "--model", "a", "--memory", "b", "--record") == message


def test_a_memory_is_handed_on_and_what_it_knows_of_the_test_set_is_told(
    pairs: str, models: FakeModels, tmp_path: Path
) -> None:
    memory = tmp_path / "memory.tsv"
    memory.write_text(f"{SOURCES[0]}\tA\nB\t{SOURCES[1]}\nC\tD\n", encoding="utf-8")
    words = ("--model", "small", "--test", pairs, "--memory", str(memory))
    result = run(command, *words, "--from", "fr", "--to", "en")
    assert result.stderr.startswith("dragoman: 2 of the test set's 5 sources are in the memory too\n")
    run(command, *words, "--from", "fr", "--to", "en", "--swap")
    run(command, *words)
    languages = [opened["memory"].languages for opened in models.opened]
    assert languages == ["fr-en", "fr-en", ""]
    assert all(opened["memory"].path == str(memory) for opened in models.opened)


def test_an_output_of_another_length_is_refused(tmp_path: Path, pairs: str) -> None:
    short = write_lines(tmp_path / "short.txt", OUTPUT[:2])
    result = run(command, "--hypotheses", short, "--test", pairs)
    assert isinstance(result.exception, DataError)
    assert "has 2 lines and the test set pairs.tsv has 5 pairs" in str(result.exception)


def test_a_report_that_cannot_be_written_says_why(tmp_path: Path, pairs: str, output: str) -> None:
    long = tmp_path / ("r" * 300)
    message = refusal(command, "--hypotheses", output, "--test", pairs, "--report", str(long))
    assert message == f"cannot write the report {long}: File name too long"


def test_the_report_draws_alignments_of_the_lines_it_shows(tmp_path: Path, pairs: str, models: FakeModels) -> None:
    report = tmp_path / "report.html"
    result = run(command, "--model", "small", "--test", pairs, "--report", str(report), "--json")
    assert report.read_text(encoding="utf-8").count('class="threads"') == 4, "the empty output has no words to join"
    assert json.loads(result.stdout)["num_pairs"] == 5


@pytest.mark.parametrize(
    ("wanted", "direction"),
    [
        (("en", "fr"), ("en", "fr")),
        (("en_GB", "FR"), ("en", "fr")),
    ],
)
def test_a_model_of_several_directions_takes_that_of_the_test_set(
    wanted: tuple[str, str], direction: tuple[str, str]
) -> None:
    assert choose_direction((("fr", "en"), ("en", "fr")), wanted, "small") == direction


def test_a_test_set_that_does_not_tell_its_languages_is_for_the_only_direction_or_asked_about() -> None:
    assert choose_direction((("fr", "en"),), UNKNOWN, "small") == ("fr", "en")
    with pytest.raises(ConfigError, match="does not tell its languages, and small translates fr-en, en-fr: say which"):
        choose_direction((("fr", "en"), ("en", "fr")), UNKNOWN, "small")


def test_a_test_set_the_wrong_way_round_is_to_be_swapped() -> None:
    with pytest.raises(ConfigError, match="the test set is fr-en, small goes the other way: turn it round with --swap"):
        choose_direction((("en", "fr"),), ("fr", "en"), "small")


def test_a_model_of_other_languages_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        choose_direction((("fr", "en"), ("en", "fr")), ("de", "en"), "small")
    assert str(refused.value) == (
        "the test set is de-en, the model small translates fr-en, en-fr: "
        "take another model, or say which languages these are with --from and --to"
    )


def test_a_real_model_is_evaluated_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiny_bundle import tiny_texts, write_tiny_bundle

    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    bundle = write_tiny_bundle(tmp_path / "tiny", directions=("fr-en",))
    texts = tiny_texts(13)
    test = write_lines(tmp_path / "pairs.tsv", tuple(f"{text}\t{text}" for text in texts))
    report = tmp_path / "report.html"
    arguments = ("--model", str(bundle.path), "--test", test, "--beam", "2", "--json", "--report", str(report))
    result = run(command, *arguments, "--engine", "ctranslate2", "--compute-type", "float32")
    assert result.exit_code == 0, result.exception
    assert json.loads(result.stdout)["system"] == {
        "name": "tiny",
        "engine": "ctranslate2",
        "compute_type": "float32",
        "beam": 2,
        "length_penalty": bundle.search.length_penalty,
        "weights_hash": bundle.weights_hash(),
    }
    assert 'class="threads"' in report.read_text(encoding="utf-8")


def test_swapped_pairs_are_scored_the_other_way_round(tmp_path: Path, pairs: str) -> None:
    output = write_lines(tmp_path / "swapped.txt", SOURCES)
    scores = json.loads(run(command, "--hypotheses", output, "--test", pairs, "--swap", "--json").output)["scores"]
    assert {score["name"]: score["value"] for score in scores}["chrF2"] == pytest.approx(100.0)


def test_swapped_pairs_of_no_known_language_are_for_the_model_s_first_direction(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "model", directions=("fr-en",))
    (tmp_path / "plain.tsv").write_text("Ba.\tLa.\n", encoding="utf-8")
    arguments = ["--model", str(bundle.path), "--test", str(tmp_path / "plain.tsv"), "--swap", "--engine", "torch"]
    assert json.loads(run(command, *arguments, "--beam", "1", "--json").stdout)["num_pairs"] == 1


def test_behaviour_is_tried_told_and_recorded(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "model", directions=("fr-en", "en-fr"), languages=("en", "fr"))
    arguments = ["--model", str(bundle.path), "--behaviour", "--engine", "torch", "--beam", "1"]
    found = json.loads(run(command, *arguments, "--json", "--record").output)
    assert found["direction"] == "fr-en"
    assert {"kind", "tried", "held", "failures"} == set(found["behaviour"][0])
    assert Bundle.open(bundle.path).scorecard["behaviour"] == {"fr-en": found["behaviour"]}
    assert "| fr-en | all capitals | 20 |" in (bundle.path / "README.md").read_text(encoding="utf-8")
    assert "unseen number" in run(command, *arguments).output


def test_recorded_scores_replace_those_of_the_same_set(tmp_path: Path, pairs: str) -> None:
    old = {"metric": "BLEU", "score": 1.0, "on": "elsewhere", "signature": "s"}
    bundle = write_tiny_bundle(tmp_path / "model", scorecard={"scores": [old]})
    for _ in range(2):
        run(command, "--model", str(bundle.path), "--test", pairs, "--record", "--beam", "2", "--engine", "torch")
    scores = Bundle.open(bundle.path).scorecard["scores"]
    assert scores[0] == old
    assert len(scores) == len({(score["metric"], score["on"]) for score in scores}) > 2
    assert scores[1]["on"] == f"fr-en pairs.tsv, {len(SOURCES)} pairs, beam 2, torch float32"


def test_a_pipe_that_is_closed_costs_the_record_nothing(
    tmp_path: Path, pairs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(text: str, err: bool = False) -> None:
        if not err:
            raise BrokenPipeError(text)

    bundle = write_tiny_bundle(tmp_path / "model", directions=("fr-en",), languages=("en", "fr"))
    monkeypatch.setattr("click.echo", closed)
    arguments = ["--model", str(bundle.path), "--record", "--json", "--beam", "1", "--engine", "torch"]
    for asked, kept in ((["--behaviour"], "behaviour"), (["--test", pairs], "scores")):
        assert run(command, *arguments, *asked).exit_code != 0
        assert kept in Bundle.open(bundle.path).scorecard


def test_a_recorded_score_leaves_those_with_another_signature(tmp_path: Path, pairs: str) -> None:
    bundle = write_tiny_bundle(tmp_path / "model")
    arguments = ["--model", str(bundle.path), "--test", pairs, "--record", "--beam", "1", "--engine", "torch"]
    run(command, *arguments)
    run(command, *arguments, "--lowercase")
    bleu = [score for score in Bundle.open(bundle.path).scorecard["scores"] if score["metric"] == "BLEU"]
    assert ["case:mixed" in score["signature"] for score in bleu] == [True, False]


@pytest.mark.parametrize(
    "option", [["--report", "report.html"], ["--output", "out.txt"], ["--lowercase"], ["--tokenize", "none"]]
)
def test_behaviour_refuses_what_it_would_ignore(option: list[str]) -> None:
    refused = refusal(command, "--model", "any", "--behaviour", *option)
    assert refused == f"{option[0]} does nothing with --behaviour, which scores no output: leave one of them out"


@pytest.mark.parametrize("option", [["--swap"], ["--limit", "3"], ["--target", "pairs.en"]])
def test_behaviour_without_a_test_set_refuses_what_is_about_one(option: list[str]) -> None:
    refused = refusal(command, "--model", "any", "--behaviour", *option)
    assert refused == f"{option[0]} is about a test set, and none is given: leave it out, or give --test"


def test_behaviour_and_recording_need_a_model(output: str) -> None:
    for flag in ("--behaviour", "--record"):
        assert refusal(command, "--hypotheses", output, flag) == f"{flag} is about a model: give --model"


def test_a_file_in_a_folder_that_cannot_be_written_to_is_refused_before_the_work(
    tmp_path: Path, pairs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    error = refusal(command, "--model", "missing", "--test", pairs, "--output", str(tmp_path / "out.txt"))
    assert str(error) == f"cannot write the output {tmp_path}/out.txt: its folder cannot be written to, choose another"
