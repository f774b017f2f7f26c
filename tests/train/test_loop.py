"""The loop: what a step does to the weights, which steps it skips, and what a validation decides."""

import math
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_loop import START, Judge, Slope, slope_loop
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.errors import TrainingError
from dragoman.model.transformer import Transformer
from dragoman.recipe import TrainConfig
from dragoman.text.batches import Batch, collate, split
from dragoman.train import checkpoint
from dragoman.train.checkpoint import Progress
from dragoman.train.distributed import World
from dragoman.train.loop import MOST_SKIPPED_IN_A_ROW, Loop, draw_seed
from dragoman.train.objective import Objective
from dragoman.train.optimizer import make_optimizers

# Steps


def test_a_step_follows_the_gradient_of_the_mean_over_real_target_pieces(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=3)
    loop.run()
    # Two pieces, 2 and 4, cost 6 weights: 3 a piece, at a rate of 1/4.
    assert loop.model.weight.item() == START - 3 * 0.75
    assert loop.progress.target_tokens == 6


def test_micro_batches_of_a_step_are_one_step(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=3, micro_batches=2)
    loop.run()
    assert loop.model.weight.item() == START - 3 * 0.75
    assert loop.progress.step == 3


def test_a_gradient_is_clipped_to_its_largest_norm(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=1, clip_norm=0.5)
    loop.run()
    assert loop.model.weight.item() == pytest.approx(START - 0.25 * 0.5)


def test_epochs_and_batches_are_counted(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=13)
    loop.run()
    assert (loop.progress.epoch, loop.progress.batch) == (2, 3)


def test_a_log_line_has_the_mean_of_its_steps(tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []
    slope_loop(tmp_path, steps=13, tell=told.append).run()
    steps = [event for event in told if event["event"] == "step"]
    assert [event["step"] for event in steps] == [10, 13]
    weights = [START - 0.75 * step for step in range(13)]
    assert steps[0]["loss"] == pytest.approx(3 * sum(weights[:10]) / 10)
    assert steps[1]["loss"] == pytest.approx(3 * sum(weights[10:]) / 3)
    assert steps[1]["epoch"] == 2.6
    assert steps[1]["gradient_norm"] == pytest.approx(3)
    assert steps[1]["learning_rate"] == 0.25
    assert steps[1]["target_tokens"] == 26
    assert steps[1]["padding"] == 0


# A loss that is not a number


def test_a_step_whose_loss_is_not_a_number_is_skipped_and_counted(tmp_path: Path) -> None:
    judge = Judge()
    loop = slope_loop(tmp_path, steps=4, poisoned={2}, judge=judge, validate_steps=1)
    assert loop.run().skipped_steps == 1
    assert judge.shown == [START - 0.75, START - 0.75, START - 1.5, START - 2.25]


def test_a_skipped_step_leaves_optimizer_and_average_as_they_were(tmp_path: Path) -> None:
    def run(folder: str, steps: int, poisoned: set[int]) -> dict[str, Tensor]:
        objective = Slope()
        adam = torch.optim.AdamW(objective.parameters(), lr=0.0)
        loop = slope_loop(
            tmp_path / folder, steps=steps, poisoned=poisoned, objective=objective, optimizers=[adam], ema_decay=0.5
        )
        loop.run()
        return loop._tensors()

    # Step 1 and then 3 are steps 1 and 2 of a run without the bad one.
    torch.testing.assert_close(run("bad", 3, {2}), run("good", 2, set()), atol=0, rtol=0)


def test_one_bad_piece_among_micro_batches_skips_the_step(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=1, poisoned={1}, micro_batches=3)
    assert loop.run().skipped_steps == 1
    assert loop.model.weight.item() == START


def test_twenty_bad_steps_in_a_row_stop_with_the_last_good_state_intact(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=100, poisoned=range(8, 100), validate_steps=5)
    with pytest.raises(TrainingError) as caught:
        loop.run()
    assert str(caught.value) == (
        "the loss was not a number for 20 steps in a row, up to step 27; earlier checkpoints are intact: "
        "lower train.learning_rate or raise train.warmup_steps"
    )
    found = checkpoint.latest(tmp_path)
    assert found is not None
    tensors, progress = checkpoint.load(found)
    assert tensors["model.weight"].item() == START - 7 * 0.75
    assert (progress.step, progress.skipped_steps) == (25, 18)


def test_a_good_step_starts_the_count_anew(tmp_path: Path) -> None:
    bad = set(range(1, 2 * MOST_SKIPPED_IN_A_ROW)) - {MOST_SKIPPED_IN_A_ROW}
    loop = slope_loop(tmp_path, steps=2 * MOST_SKIPPED_IN_A_ROW, poisoned=bad)
    assert loop.run().skipped_steps == len(bad)
    assert loop.model.weight.item() == START - 2 * 0.75


def test_a_log_line_of_nothing_but_skipped_steps_has_no_loss(tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []
    slope_loop(tmp_path, steps=10, poisoned=range(11), tell=told.append).run()
    (line,) = [event for event in told if event["event"] == "step"]
    assert line["loss"] is None
    assert line["skipped"] == 10


# Validation, and when it ends a run


@pytest.mark.parametrize("metric", ["loss", "bleu", "chrf"])
def test_patience_ends_a_run_after_so_many_validations_without_a_better_one(tmp_path: Path, metric: str) -> None:
    figures = [5.0, 4.0, 4.5, 4.0, 3.0, 3.5, 3.0, 9.0]
    judge = Judge(*(figures if metric == "loss" else [-figure for figure in figures]))
    loop = slope_loop(tmp_path, steps=1000, judge=judge, validate_steps=2, patience=3, metric=metric)
    progress = loop.run()
    assert (progress.finished, progress.step, progress.best_step) == ("patience", 16, 10)
    assert progress.best == (3.0 if metric == "loss" else -3.0)
    best, _ = checkpoint.load(loop.weights.best)
    assert best["weight"].item() == START - 10 * 0.75


def test_without_patience_a_run_goes_to_its_end(tmp_path: Path) -> None:
    progress = slope_loop(tmp_path, steps=23, judge=Judge(1.0, 2.0), validate_steps=2).run()
    assert (progress.finished, progress.step, progress.best_step) == ("finished", 23, 2)


def test_patience_is_taken_up_where_a_run_was_stopped(tmp_path: Path) -> None:
    begun = Progress(total_steps=1000, step=4, best=1.0, best_step=2, validations_since_best=1)
    progress = slope_loop(tmp_path, judge=Judge(2.0), validate_steps=2, patience=2, progress=begun).run()
    assert (progress.finished, progress.step) == ("patience", 6)


def test_the_last_step_is_always_validated(tmp_path: Path) -> None:
    judge = Judge()
    slope_loop(tmp_path, steps=7, judge=judge, validate_steps=5).run()
    assert judge.shown == [START - 5 * 0.75, START - 7 * 0.75]


class Interrupter(Judge):
    """Somebody presses Ctrl-C while it judges for the first time."""

    def __call__(self, state: Mapping[str, Tensor]) -> Mapping[str, Any]:
        if not self.shown:
            signal.raise_signal(signal.SIGINT)
        return super().__call__(state)


def test_a_run_that_is_stopped_at_its_last_step_is_at_its_end(tmp_path: Path) -> None:
    progress = slope_loop(tmp_path, steps=3, judge=Interrupter(), validate_steps=2).run()
    assert (progress.step, progress.finished) == (3, "finished")
    progress = slope_loop(tmp_path / "other", steps=7, judge=Interrupter(), validate_steps=2).run()
    assert (progress.step, progress.finished) == (3, "interrupted")


@pytest.mark.parametrize("seed", [0, 2**31 - 1, 2**62])
def test_any_seed_can_be_drawn_from(seed: int) -> None:
    torch.manual_seed(draw_seed(TrainConfig(seed=seed).seed, 10**6, 7))


def test_if_not_told_otherwise_an_epoch_is_validated(tmp_path: Path) -> None:
    judge = Judge()
    slope_loop(tmp_path, steps=10, judge=judge).run()
    assert judge.shown == [START - 5 * 0.75, START - 10 * 0.75]


def test_a_validation_that_is_not_a_number_is_worse_than_any(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=5, judge=Judge(math.nan, 3.0, math.nan, 2.0, math.nan), validate_steps=1)
    progress = loop.run()
    assert (progress.best, progress.best_step) == (2.0, 4)


def test_better_weights_are_told_with_their_figures(tmp_path: Path) -> None:
    told: list[tuple[int, float]] = []

    def on_better(metrics: Mapping[str, Any], progress: Progress) -> None:
        told.append((progress.step, metrics["loss"]))

    slope_loop(tmp_path, steps=4, judge=Judge(3.0, 4.0, 2.0, 2.0), validate_steps=1, on_better=on_better).run()
    assert told == [(1, 3.0), (3, 2.0)]


# With the Transformer


class PairList:
    """Fixed pairs, five to a batch, the same in every epoch: their lengths differ, so that halves differ in size."""

    def __init__(self) -> None:
        draw = np.random.default_rng(3)
        lengths = draw.integers(2, 14, (15, 2))
        self.pairs = [tuple(draw.integers(3, 31, length) for length in both) for both in lengths]

    def num_batches(self, epoch: int) -> int:
        return 3

    def parts(self, epoch: int, index: int, first: int, stride: int, count: int) -> list[Batch]:
        cut = split(np.arange(5 * index, 5 * index + 5), count)
        return [collate([self.pairs[i] for i in cut[part]], 0, 1) for part in range(first, count, stride)]


def transformer_loop(folder: Path, *, plain: bool = False, dropout: float = 0.0, **settings: Any) -> Loop:
    torch.manual_seed(7)
    shape = {"d_model": 22, "d_ff": 37, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": dropout}
    model = Transformer(ModelConfig(vocab_size=31, max_length=29, **shape))
    config = TrainConfig(**{"learning_rate": 0.02, "warmup_steps": 3, "save_seconds": 0.0, **settings})
    return Loop(
        objective=Objective(model, 0, smoothing=0.1),
        model=model,
        optimizers=[torch.optim.SGD(model.parameters(), lr=0.0)] if plain else make_optimizers(model, config),
        feed=PairList(),
        validator=lambda state: {"loss": 1.0},
        config=config,
        d_model=22,
        folder=folder,
        world=World(),
        tell=lambda event: None,
        progress=Progress(total_steps=settings.get("max_steps", 7)),
    )


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_accumulating_parts_of_a_batch_gives_the_step_of_the_whole(tmp_path: Path, parts: int) -> None:
    loops = [transformer_loop(tmp_path / str(count), plain=True, micro_batches=count) for count in (1, parts)]
    for loop in loops:
        before = {name: p.detach().clone() for name, p in loop.model.named_parameters()}
        loop.run()
    whole, accumulated = (dict(loop.model.named_parameters()) for loop in loops)
    torch.testing.assert_close(accumulated, whole, atol=1e-6, rtol=0)
    assert all((whole[name] - value).abs().max() > 1e-5 for name, value in before.items())


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_a_run_taken_up_from_its_checkpoint_ends_with_the_same_bits(tmp_path: Path, optimizer: str) -> None:
    settings = {"dropout": 0.3, "optimizer": optimizer, "ema_decay": 0.8, "weight_decay": 0.1, "validate_steps": 4}
    whole = transformer_loop(tmp_path / "whole", **settings)
    whole.run()
    found = checkpoint.checkpoint_path(tmp_path / "whole", 4)
    tensors, progress = checkpoint.load(found)
    assert progress.step == 4
    resumed = transformer_loop(tmp_path / "resumed", **settings)
    with torch.no_grad():
        for parameter in resumed.model.parameters():
            parameter.zero_()
    resumed.progress = progress
    resumed.restore(tensors)
    resumed.run()
    torch.testing.assert_close(resumed._tensors(), whole._tensors(), atol=0, rtol=0)


def test_what_is_drawn_differs_from_step_to_step_and_from_rank_to_rank() -> None:
    seeds = {draw_seed(seed, step, rank) for seed in (1, 2) for step in range(1, 101) for rank in range(8)}
    assert len(seeds) == 2 * 100 * 8
