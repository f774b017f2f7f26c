"""Several models searched as one: what may come next is what they think in the mean, at every step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.search.searchable import Searchable


@dataclass(frozen=True)
class MixtureState:
    """Where each of the models stands."""

    states: tuple[Any, ...]

    def select(self, rows_R: Tensor) -> MixtureState:
        return MixtureState(tuple(state.select(rows_R) for state in self.states))


@dataclass(frozen=True)
class MixtureStep:
    logits_BV: Tensor
    state: MixtureState


class Mixture:
    """Models that read and write the same pieces; a piece's probability is the mean of what they give it."""

    def __init__(self, models: Sequence[Searchable[Any]]) -> None:
        self._models = models

    def encode(self, source_BS: Tensor) -> MixtureState:
        return MixtureState(tuple(model.encode(source_BS) for model in self._models))

    def step(self, last_B: Tensor, state: MixtureState) -> MixtureStep:
        steps = [model.step(last_B, each) for model, each in zip(self._models, state.states, strict=True)]
        return MixtureStep(
            mean_log_probs([step.logits_BV for step in steps]), MixtureState(tuple(step.state for step in steps))
        )


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of the probabilities that several models' logits stand for."""
    log_probs = torch.stack([each.log_softmax(dim=-1) for each in logits])
    return log_probs.logsumexp(dim=0) - math.log(len(logits))
