"""A loop around one weight, so that every step of it can be checked by hand."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.recipe import TrainConfig
from dragoman.text.batches import Batch, collate
from dragoman.train.checkpoint import Progress
from dragoman.train.distributed import World
from dragoman.train.loop import Loop
from dragoman.train.loss import Loss

POISON = 13
START = 64.0


class Slope(nn.Module):
    """Each target piece costs the weight times its id; the id `POISON` costs what is not a number."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([START]))

    def forward(self, source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> Loss:
        cost = (self.weight * target_out_BT.sum()).sum()
        if target_out_BT.eq(POISON).any():
            cost = cost * torch.nan
        return Loss(cost, cost.detach())


class SlopeFeed:
    """Batches of the ids 2 and 4, so that a piece costs three times the weight; five make an epoch."""

    def __init__(self, poisoned: Collection[int] = ()) -> None:
        self.poisoned = poisoned

    def num_batches(self, epoch: int) -> int:
        return 5

    def parts(self, epoch: int, index: int, first: int, stride: int, count: int) -> list[Batch]:
        step = 5 * epoch + index + 1
        target = [POISON, 4] if step in self.poisoned else [2, 4]
        return [collate([(np.array([7, 7, 7]), np.array(target))], 0, 1) for _ in range(first, count, stride)]


class Judge:
    """Says the scripted figures, the last one for ever; and remembers the weights that it was shown."""

    def __init__(self, *figures: float) -> None:
        self.figures = figures or (1.0,)
        self.shown: list[float] = []

    def __call__(self, state: Mapping[str, Tensor]) -> Mapping[str, Any]:
        figure = self.figures[min(len(self.shown), len(self.figures) - 1)]
        self.shown.append(state["weight"].item())
        return {"loss": figure, "bleu": figure, "chrf": figure}


def slope_loop(
    folder: Path,
    *,
    steps: int = 10,
    poisoned: Collection[int] = (),
    judge: Judge | None = None,
    tell: Callable[[Mapping[str, Any]], None] = lambda event: None,
    progress: Progress | None = None,
    optimizers: Sequence[torch.optim.Optimizer] | None = None,
    deadline_seconds: float = 0.0,
    most_steps: int = 0,
    on_better: Any = None,
    objective: Slope | None = None,
    **settings: Any,
) -> Loop:
    """Plain gradient descent at a rate of 1/4, unless `settings` say otherwise: a step takes 3/4 off the weight."""
    constant = {"learning_rate": 0.25, "warmup_steps": 1, "decay_share": 0.0, "clip_norm": 0.0, "save_seconds": 0.0}
    objective = objective or Slope()
    return Loop(
        objective=objective,
        model=objective,
        optimizers=list(optimizers or [torch.optim.SGD(objective.parameters(), lr=0.0)]),
        feed=SlopeFeed(poisoned),
        validator=judge or Judge(),
        config=TrainConfig(**{**constant, **settings}),
        d_model=22,
        folder=folder,
        world=World(),
        tell=tell,
        progress=progress or Progress(total_steps=steps),
        deadline_seconds=deadline_seconds,
        most_steps=most_steps,
        on_better=on_better,
    )
