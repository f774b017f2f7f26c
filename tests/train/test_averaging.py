"""Which weights count: the exponential average follows each step, the last ones and the best are kept on disk."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dragoman.recipe import TrainConfig
from dragoman.train import checkpoint
from dragoman.train.averaging import Weights
from dragoman.train.checkpoint import Progress
from dragoman.train.lora import adapt


class Point(nn.Module):
    """One weight."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([value]))

    def move(self, value: float) -> None:
        with torch.no_grad():
            self.weight.fill_(value)


def make(model: nn.Module, folder: Path, **settings: Any) -> Weights:
    return Weights(model, TrainConfig(**settings), folder / "weights")


def test_the_exponential_average_follows_by_its_decay(tmp_path: Path) -> None:
    model = Point(8.0)
    weights = make(model, tmp_path, ema_decay=0.75)
    for value in (4.0, 0.0, 12.0):
        model.move(value)
        weights.follow(1_000)
    # 8 -> 3/4 · 8 + 1/4 · 4 = 7 -> 3/4 · 7 = 5.25 -> 3/4 · 5.25 + 1/4 · 12
    assert weights.state()["weight"].item() == 6.9375


def test_what_was_before_any_step_is_soon_forgotten(tmp_path: Path) -> None:
    model = Point(8.0)
    weights = make(model, tmp_path, ema_decay=0.999)
    model.move(4.0)
    for step in range(30):
        weights.follow(step)
    assert weights.state()["weight"].item() == pytest.approx(4.0, abs=1e-3)


def test_the_average_counts_and_training_goes_on_from_the_models_own_weights(tmp_path: Path) -> None:
    model = Point(8.0)
    weights = make(model, tmp_path, ema_decay=0.5)
    model.move(4.0)
    weights.follow(1_000)
    assert weights.state()["weight"].item() == 6
    assert model.weight.item() == 4


def test_without_a_decay_the_weights_of_the_last_step_count(tmp_path: Path) -> None:
    model = Point(8.0)
    weights = make(model, tmp_path)
    model.move(4.0)
    weights.follow(1_000)
    state = weights.state()
    assert state["weight"].item() == 4
    assert weights.tensors() == {}
    model.move(2.0)
    assert state["weight"].item() == 4  # a copy: what is validated must not move under the validator


def test_the_average_of_adapters_is_worked_into_the_weights(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 5, bias=False))
    before = model[0].weight.detach().clone()
    adapt(model, rank=2)
    weights = make(model, tmp_path, ema_decay=0.5)
    (adapter,) = model[0].parametrizations.weight
    with torch.no_grad():
        adapter.b.fill_(1.0)
    weights.follow(1_000)
    state = weights.state()
    assert list(state) == ["0.weight"]
    torch.testing.assert_close(state["0.weight"], before + 2 * torch.full((5, 2), 0.5) @ adapter.a.detach())
    assert adapter.b.eq(1).all()


def test_an_average_is_saved_and_taken_up_again(tmp_path: Path) -> None:
    model = Point(8.0)
    weights = make(model, tmp_path, ema_decay=0.5)
    model.move(4.0)
    weights.follow(1_000)
    again = make(Point(0.0), tmp_path, ema_decay=0.5)
    again.restore(weights.tensors())
    assert again.state()["weight"].item() == 6


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_last_validations_and_the_best_are_kept(tmp_path: Path, count: int) -> None:
    model = Point()
    weights = make(model, tmp_path, average=count)
    for step, better in ((5, True), (10, True), (15, False), (20, False)):
        model.move(float(step))
        weights.keep(weights.state(), Progress(step=step), better)
    kept = [checkpoint.load(path)[0]["weight"].item() for path in weights.last()]
    assert kept == [5, 10, 15, 20][-count:]
    best, progress = checkpoint.load(weights.best)
    assert best["weight"].item() == progress.step == 10
    assert checkpoint.average(weights.last())["weight"].item() == sum(kept) / count
