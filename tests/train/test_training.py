"""Whole runs, in this process: from a file of pairs to a model folder, with everything that may come between."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from commands import weights_hash
from small_runs import events, run_small, small_recipe, stop_at, translate, weights, write_corpus
from synthetic import make_pairs, write_pairs

from dragoman.bundle import Bundle, expected_shapes
from dragoman.bundle.recording import record
from dragoman.errors import TrainingError
from dragoman.recipe import CorpusConfig, Recipe, TrainConfig
from dragoman.train import checkpoint
from dragoman.train.loop import Loop
from dragoman.train.prepare import prepare
from dragoman.train.request import Request, RunFile
from dragoman.train.run import train_model
from dragoman.train.validate import Validation

FILES = {
    "README.md", "config.json", "model.safetensors", "run", "scorecard.json", "tokenizer.json", "training.jsonl",
    "words.json",
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusConfig:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def trained(corpus: CorpusConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 20 steps with a validation every 10; with dropout, so that what is drawn matters."""
    folder = tmp_path_factory.mktemp("trained") / "model"
    run_small(small_recipe(corpus, model={"dropout": 0.1}), folder)
    return folder


def messages(told: list[Mapping[str, Any]]) -> list[str]:
    return [event["text"] for event in told if event["event"] == "message"]


# What a run leaves


def test_a_run_learns_to_translate_what_it_has_not_seen(tmp_path: Path) -> None:
    pairs = make_pairs(2000)
    train, unseen = pairs[100:], pairs[:100]
    corpora = [CorpusConfig(path=str(write_pairs(tmp_path / name, its))) for name, its in (("t", train), ("v", unseen))]
    shape = {"d_model": 64, "d_ff": 128, "num_heads": 4, "encoder_layers": 2}
    recipe = small_recipe(
        corpora[0],
        valid=(corpora[1],),
        model=shape,
        batch_tokens=512,
        learning_rate=0.004,
        warmup_steps=40,
        max_steps=300,
        validate_steps=300,
    )
    result = run_small(recipe, tmp_path / "model")
    assert result.reason == "finished"
    outputs = translate(tmp_path / "model", [source for source, _ in unseen])
    assert sum(output == target for output, (_, target) in zip(outputs, unseen, strict=True)) >= 99
    bleu = next(score for score in result.scores if score["metric"] == "BLEU")
    assert bleu["score"] > 99


def test_epochs_that_were_asked_for_are_those_of_the_pieces(corpus: CorpusConfig, tmp_path: Path) -> None:
    run_small(small_recipe(corpus, max_steps=0, max_epochs=2.0), tmp_path / "model")
    assert events(tmp_path / "model", "step")[-1]["epoch"] == 2.0


def test_the_folder_is_a_whole_model(trained: Path) -> None:
    assert {path.name for path in trained.iterdir()} == FILES
    bundle = Bundle.open(trained)
    assert bundle.directions == ("xx-yy",)
    assert bundle.known_words is not None
    assert [word in bundle.known_words for word in ("taro", "cat", "oyelaran")] == [True, True, False]
    assert bundle.known_words.lexicons["xx-yy"]["taro"] == ("cat",)
    assert {name: array.shape for name, array in bundle.weights().items()} == expected_shapes(bundle.model_config)
    assert isinstance(translate(trained, ["taro ba miku de peli ."])[0], str)
    scorecard = json.loads((trained / "scorecard.json").read_text(encoding="utf-8"))
    assert [score["metric"] for score in scorecard["scores"]] == ["BLEU", "chrF2"]
    assert all("version:" in score["signature"] for score in scorecard["scores"])
    assert scorecard["data"][0]["name"] == "pairs.tsv"
    assert scorecard["data"][0]["pairs"] > 50
    assert len(scorecard["data"][0]["sha256"]) == 64
    assert scorecard["steps"] == 20
    assert scorecard["command"].startswith("dragoman")
    card = (trained / "README.md").read_text(encoding="utf-8")
    assert "xx → yy" in card
    assert scorecard["data"][0]["sha256"] in card


def test_the_log_tells_the_run_from_start_to_end(trained: Path) -> None:
    log = events(trained)
    assert [(event["event"], event["step"]) for event in log] == [
        ("start", 0),
        ("step", 10),
        ("validation", 10),
        ("step", 20),
        ("validation", 20),
        ("end", 20),
    ]
    start, end = log[0], log[-1]
    assert (start["total_steps"], start["pairs"], start["ranks"], start["device"]) == (20, 211 - 17, 1, "cpu")
    assert start["parameters"] == sum(array.size for array in weights(trained).values())
    assert end["reason"] == "finished"
    for event in events(trained, "validation"):
        assert {"loss", "perplexity", "bleu", "chrf", "samples", "better", "seconds"} <= event.keys()
    seconds = [event["seconds"] for event in log[1:]]
    assert seconds == sorted(seconds)


def test_there_is_a_model_from_the_first_validation_on(corpus: CorpusConfig, tmp_path: Path) -> None:
    opened: list[str] = []

    def open_it(event: Mapping[str, Any]) -> None:
        if event["event"] == "validation":
            opened.append(Bundle.open(tmp_path / "model").weights_sha256)

    run_small(small_recipe(corpus), tmp_path / "model", trackers=[open_it])
    assert len(set(opened)) == 2


def test_a_tracker_hears_all_that_the_log_has(corpus: CorpusConfig, tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []
    run_small(small_recipe(corpus), tmp_path / "model", trackers=[told.append])
    heard = [event for event in told if event["event"] != "message"]
    assert json.loads(json.dumps(heard)) == events(tmp_path / "model")


def test_a_tracker_that_raises_is_dropped_and_the_run_goes_on(corpus: CorpusConfig, tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []

    def broken(event: Mapping[str, Any]) -> None:
        if event["event"] == "step":
            raise OSError("the line is dead")

    result = run_small(small_recipe(corpus), tmp_path / "model", trackers=[broken, told.append])
    assert result.reason == "finished"
    assert messages(told).count("broken failed (the line is dead): going on without it") == 1


def test_the_average_of_the_last_is_taken_if_it_validates_better(corpus: CorpusConfig, tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []
    # A large rate goes round the valley; its middle is lower.
    recipe = small_recipe(corpus, average=3, validate_steps=3, max_steps=17, learning_rate=0.02, decay_share=0.0)
    run_small(recipe, tmp_path / "model", trackers=[told.append])
    last = sorted((tmp_path / "model" / "run" / "weights").glob("step-*"))
    assert [checkpoint.load(path)[1].step for path in last] == [12, 15, 17]
    states = {
        "the best validation": checkpoint.load(tmp_path / "model" / "run" / "weights" / "best.safetensors")[0],
        "the average of the last 3": checkpoint.average(last),
    }
    prepared, planned = prepare(recipe, tmp_path / "model" / "run"), Bundle.open(tmp_path / "model").model_config
    validation = Validation(prepared, replace(recipe, model=planned), torch.device("cpu"))
    losses = {name: validation(state)["loss"] for name, state in states.items()}
    chosen = min(losses, key=losses.__getitem__)
    assert chosen in next(text for text in messages(told) if " has the " in text)
    for name, array in weights(tmp_path / "model").items():
        torch.testing.assert_close(torch.from_numpy(array), states[chosen][name], atol=0, rtol=0)


# Stopping and going on


def test_an_interrupted_run_is_resumed_to_the_same_bits(corpus: CorpusConfig, trained: Path, tmp_path: Path) -> None:
    recipe, told = small_recipe(corpus, model={"dropout": 0.1}), []
    stopped = run_small(recipe, tmp_path / "model", trackers=[stop_at(10), told.append])
    assert (stopped.reason, stopped.step) == ("interrupted", 11)
    assert "stopped at step 11; the same command with --resume goes on from there" in messages(told)
    finished = run_small(recipe, tmp_path / "model", resume=True)
    assert (finished.reason, finished.step) == ("finished", 20)
    assert weights_hash(tmp_path / "model") == weights_hash(trained)
    told_steps = [(event["event"], event["step"]) for event in events(tmp_path / "model")]
    assert told_steps == [(event["event"], event["step"]) for event in events(trained)]


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(corpus: CorpusConfig, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, model={"dropout": 0.1}, validate_steps=5)
    run_small(recipe, tmp_path / "model", trackers=[stop_at(10)])
    damaged = checkpoint.checkpoint_path(tmp_path / "model" / "run", 11)
    damaged.write_bytes(damaged.read_bytes()[:-7])
    run_small(recipe, tmp_path / "model", resume=True)
    run_small(recipe, tmp_path / "whole")
    assert weights_hash(tmp_path / "model") == weights_hash(tmp_path / "whole")


def test_resuming_a_finished_run_changes_nothing(corpus: CorpusConfig, tmp_path: Path) -> None:
    first = run_small(small_recipe(corpus, max_steps=5), tmp_path / "model")
    before, log = weights_hash(tmp_path / "model"), events(tmp_path / "model")
    recorded = {"metric": "BLEU", "score": 31.0, "on": "test.tsv", "signature": "x"}
    record(Bundle.open(tmp_path / "model"), scores=[recorded])
    again = run_small(small_recipe(corpus, max_steps=5), tmp_path / "model", resume=True)
    assert (again.reason, again.step, again.scores) == (first.reason, first.step, first.scores)
    assert weights_hash(tmp_path / "model") == before
    assert recorded in Bundle.open(tmp_path / "model").scorecard["scores"]
    assert [event["event"] for event in events(tmp_path / "model")] == [event["event"] for event in log]


def test_resuming_nothing_starts_from_the_beginning_and_says_so(corpus: CorpusConfig, tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []
    run_small(small_recipe(corpus, max_steps=2), tmp_path / "model", trackers=[told.append], resume=True)
    assert messages(told)[0] == "there is nothing to resume yet: starting from the beginning"


def test_data_that_have_changed_cannot_be_resumed(tmp_path: Path) -> None:
    recipe = small_recipe(write_corpus(tmp_path, 101), max_steps=2)
    run_small(recipe, tmp_path / "model")
    write_corpus(tmp_path, 103)
    with pytest.raises(TrainingError, match="the training data have changed since the run began: start anew in anothe"):
        run_small(recipe, tmp_path / "model", resume=True)


def test_a_folder_that_holds_a_run_is_not_overwritten(corpus: CorpusConfig, trained: Path) -> None:
    before = weights_hash(trained)
    with pytest.raises(
        TrainingError, match="holds a training run already: add --resume to go on with it, or choose an"
    ):
        run_small(small_recipe(corpus), trained)
    assert weights_hash(trained) == before


@pytest.mark.parametrize("name", ["README.md", "training.jsonl", "words.json", "scorecard.json"])
def test_what_is_somebodys_own_is_not_written_over(corpus: CorpusConfig, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"source": "taro", "target": "cat"}\n', encoding="utf-8")
    with pytest.raises(TrainingError, match=rf"{name} is there already, and would be written over: choose another"):
        run_small(small_recipe(corpus), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_disk_that_is_full_at_the_first_checkpoint_leaves_a_run_that_goes_on(
    corpus: CorpusConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(corpus, max_steps=4, validate_steps=2)
    with monkeypatch.context() as full:
        full.setattr("dragoman.train.loop.checkpoint.save", mock.Mock(side_effect=TrainingError("no space left")))
        with pytest.raises(TrainingError, match="no space left"):
            run_small(recipe, tmp_path / "model")
    assert run_small(recipe, tmp_path / "model", resume=True).reason == "finished"


def test_what_a_resumed_run_would_ignore_is_refused(corpus: CorpusConfig, tmp_path: Path) -> None:
    run_small(small_recipe(corpus, max_steps=2), tmp_path / "model")
    other = replace(Recipe(), train=TrainConfig(learning_rate=0.5))
    with pytest.raises(TrainingError, match=r"the recipe is not that of the run in .*: train.learning_rate: .* -> 0.5"):
        train_model(Request(recipe=other, output=tmp_path / "model", asked=("train.learning_rate",)), resume=True)


def test_the_command_of_a_model_is_the_one_that_began_it(corpus: CorpusConfig, tmp_path: Path) -> None:
    run_small(small_recipe(corpus, max_steps=2), tmp_path / "model", command="dragoman train x")
    (tmp_path / "model" / "config.json").unlink()
    train_model(Request(output=tmp_path / "model", command="dragoman train --resume"), resume=True)
    assert Bundle.open(tmp_path / "model").scorecard["command"] == "dragoman train x"


def test_whichever_comes_first_of_steps_and_epochs_ends_a_run(corpus: CorpusConfig, tmp_path: Path) -> None:
    assert run_small(small_recipe(corpus, max_steps=300, max_epochs=0.5), tmp_path / "model").step < 20


def test_a_model_may_be_read_by_whom_the_mask_lets(trained: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in trained.iterdir() if path.is_file()}
    assert modes == {(trained / "config.json").stat().st_mode & 0o777}


def test_a_model_that_is_of_no_run_is_not_overwritten(corpus: CorpusConfig, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "copy", ignore=shutil.ignore_patterns("run"))
    with pytest.raises(TrainingError, match=r"copy holds a model already: choose another --output, and add --init"):
        run_small(small_recipe(corpus), tmp_path / "copy", init=str(tmp_path / "copy"), resume=True)
    assert weights_hash(tmp_path / "copy") == weights_hash(trained)


def test_what_was_begun_with_another_budget_or_model_is_not_resumed(corpus: CorpusConfig, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, max_steps=2)
    run_small(recipe, tmp_path / "model")
    for name, asked in (("--budget", {"budget_seconds": 60.0}), ("--init", {"init": "other"})):
        with pytest.raises(TrainingError, match=f"{name} is not that of the run in .*: leave it out to go on"):
            run_small(recipe, tmp_path / "model", resume=True, **asked)


def test_data_that_are_gone_meanwhile_do_not_stop_the_run(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, 101)
    remove = [lambda event: Path(corpus.path).unlink() if event["event"] == "start" else None]
    assert run_small(small_recipe(corpus), tmp_path / "model", trackers=remove).reason == "finished"


def test_a_step_that_does_not_fit_into_memory_says_what_helps(
    corpus: CorpusConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(corpus, max_steps=2)
    monkeypatch.setattr(Loop, "run", lambda self: torch.empty(1 << 58))
    with pytest.raises(TrainingError, match=r"^a step of 256 target pieces does not .* train\.micro_batches=2$"):
        run_small(recipe, tmp_path / "model")
    monkeypatch.setattr(Loop, "run", lambda self: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="size"):
        run_small(recipe, tmp_path / "other")


def test_two_processes_do_not_train_in_one_folder(corpus: CorpusConfig, tmp_path: Path) -> None:
    recipe, folder = small_recipe(corpus, max_steps=2), tmp_path / "model"
    run_small(recipe, folder)
    busy = pytest.raises(TrainingError, match=f"^another process is training in {folder} now$")
    with RunFile(folder / "run" / "run.json").held(), busy:
        run_small(recipe, folder, resume=True)
    assert run_small(recipe, folder, resume=True).step == 2


def test_checkpoints_of_nobody_knows_what_are_not_gone_on_from(corpus: CorpusConfig, tmp_path: Path) -> None:
    run_small(small_recipe(corpus, max_steps=2), tmp_path / "model")
    (tmp_path / "model" / "run" / "run.json").unlink()
    with pytest.raises(TrainingError, match=r"run has checkpoints but no run\.json: choose another --output$"):
        run_small(small_recipe(corpus, max_steps=2), tmp_path / "model", resume=True)


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_run_that_gets_no_better_stops_early(corpus: CorpusConfig, tmp_path: Path, metric: str) -> None:
    # A rate that moves no weight: every validation is as good as the first.
    recipe = small_recipe(
        corpus, metric=metric, patience=3, learning_rate=1e-30, validate_steps=2, max_steps=1000, optimizer="adam"
    )
    result = run_small(recipe, tmp_path / "model")
    assert (result.reason, result.step) == ("patience", 8)
    assert events(tmp_path / "model", "end")[0]["reason"] == "patience"
    longer = replace(recipe, train=replace(recipe.train, max_steps=2000))
    with pytest.raises(TrainingError, match="ended early, as it got no better: go on from its model with --init"):
        run_small(longer, tmp_path / "model", resume=True, asked=("train.max_steps",))
    with pytest.raises(TrainingError, match=r"train\.max_steps: 1000 -> 2000"):
        run_small(longer, tmp_path / "model", resume=True)


def test_a_problem_in_the_data_is_fatal_if_asked(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.tsv", make_pairs(101))
    with path.open("a") as file:
        file.write("one column\n" * 53)
    recipe = small_recipe(CorpusConfig(path=str(path)), max_steps=2)
    with pytest.raises(TrainingError, match=r"^1 problem in the data, first: 53 lines with one column"):
        run_small(recipe, tmp_path / "strict", strict=True)
    assert run_small(recipe, tmp_path / "lenient").reason == "finished"


# Ways to train


def test_a_corpus_of_weight_two_is_gone_through_twice_an_epoch(tmp_path: Path) -> None:
    one, other = write_corpus(tmp_path, 101, "one.tsv"), write_corpus(tmp_path, 103, "other.tsv", seed=7)
    recipe = small_recipe(one, replace(other, weight=2.0), max_steps=7)
    run_small(recipe, tmp_path / "model")
    (start,), (step,) = events(tmp_path / "model", "start"), events(tmp_path / "model", "step")
    assert start["pairs"] == 101 + 103 - 17
    # Seven batches are less of an epoch, as that is longer by the second corpus.
    assert step["epoch"] < 7 * 256 / start["target_tokens_per_epoch"] * 0.8


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": "bfloat16"},
        {"r_drop": 0.5, "micro_batches": 2},
        {"optimizer": "muon", "ema_decay": 0.9, "schedule": "cosine"},
        {"optimizer": "adam", "schedule": "paper", "label_smoothing": 0.0, "clip_norm": 0.0},
        {"weight_decay": 0.1, "schedule": "inverse-sqrt", "metric": "chrf"},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_every_way_of_training_learns(corpus: CorpusConfig, tmp_path: Path, settings: dict[str, Any]) -> None:
    run_small(small_recipe(corpus, model={"dropout": 0.1}, **settings), tmp_path / "model")
    first, second = events(tmp_path / "model", "step")
    assert second["loss"] < first["loss"] - 0.1
    precision = settings.get("precision", "float32")
    assert events(tmp_path / "model", "start")[0]["precision"] == precision
