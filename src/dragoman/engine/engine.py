"""Who runs the model: the one interface that all engines have. Ids in, ids out; no text, and no torch here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError
from dragoman.recipe import SearchConfig
from dragoman.search.length import length_penalty, max_lengths

Ids = Sequence[int]
Attention = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How pieces are drawn: from softmax(log p / temperature), of the `top_k` likeliest (0: all), of those the fewest
    whose shares reach `top_p`.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ConfigError(
                f"temperature is {self.temperature}, expected a number above 0: "
                f"for the likeliest translation leave sampling away"
            )
        if self.top_k < 0:
            raise ConfigError(f"top_k is {self.top_k}, expected at least 0, which means all pieces")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, expected a share above 0, up to 1, which means all pieces")
        if not 0 <= self.seed < 2**32:
            raise ConfigError(f"seed is {self.seed}, expected a number from 0 up to, not including, {2**32}")


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """What is asked of an engine, for all sources of a call; with `sampling` translations are drawn, not searched."""

    search: SearchConfig = field(default_factory=SearchConfig)
    num_best: int = 1
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.num_best < 1:
            raise ConfigError(f"num_best is {self.num_best}, expected at least 1")
        if self.sampling is None and self.num_best > self.search.beam:
            raise ConfigError(
                f"num_best is {self.num_best}, the beam holds {self.search.beam}: take a beam of at least "
                f"{self.num_best}"
            )


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What one translation must begin with, and the phrases that it must and must not have; all in ids."""

    prefix: tuple[int, ...] = ()
    must: tuple[tuple[int, ...], ...] = ()
    must_not: tuple[tuple[int, ...], ...] = ()


NO_DEMAND = Demand()


@dataclass(frozen=True)
class Output:
    """A translation, as an engine gives it.

    `ids` has neither begin nor end; a translation that met its maximum length first is not `finished`. `score` is
    `log_probability`, which counts the end, over the paper's length penalty.
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float
    finished: bool

    @property
    def mean_log_probability(self) -> float:
        """Of a piece, the end counted."""
        return self.log_probability / max(1, len(self.ids) + self.finished)


def make_output(ids: Ids, log_probability: float, finished: bool, alpha: float) -> Output:
    """An output with its score under the length penalty `alpha`."""
    score = log_probability / length_penalty(len(ids) + finished, alpha)
    return Output(tuple(ids), log_probability, score, finished)


class Pending(Protocol):
    """Translations under way."""

    def results(self) -> list[list[Output]]:
        """Wait for them: `num_best` or fewer for each source, best first, never none."""
        ...


class Engine(Protocol):
    """Runs one model. Safe to share between threads; keeps nothing of a call."""

    @property
    def name(self) -> str:
        """As `--engine` has it."""
        ...

    @property
    def compute_type(self) -> str:
        """What its matrix products are computed in."""
        ...

    def lacks(self, options: DecodeOptions, demands: Sequence[Demand] | None = None) -> str:
        """What of all this the engine cannot do; empty if it can do it."""
        ...

    def submit(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> Pending:
        """Begin to translate; `demands` has one entry a source, if any."""
        ...

    def translate_ids(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Output]]:
        """Translate, and wait for it."""
        ...

    def score_ids(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of every piece of each target, and of its end."""
        ...

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Attention]:
        """Where the model looks in each source as it writes its target, without end: (target pieces, source pieces); a
        model without attention gives no rows.
        """
        ...


@dataclass(frozen=True)
class Done:
    """Translations that were not put off."""

    outputs: list[list[Output]]

    def results(self) -> list[list[Output]]:
        return self.outputs


def limits_of(sources: Sequence[Ids], options: DecodeOptions, max_length: int) -> list[int]:
    """The most pieces that each translation may have, its end not counted."""
    return max_lengths(map(len, sources), options.search.extra_length, max_length - 1)


def check_demands(sources: Sequence[Ids], demands: Sequence[Demand] | None) -> Sequence[Demand]:
    """One demand a source."""
    if demands is None:
        return [NO_DEMAND] * len(sources)
    if len(demands) != len(sources):
        raise ConfigError(f"demands has {len(demands)} entries for {len(sources)} sources: give one a source")
    return demands
