"""Is one output better than the other, or is it chance? Paired bootstrap resampling, and the lines that changed most.

The test set is drawn again, with replacement, many times; both outputs are scored on every draw (the same lines, hence
*paired*). The spread of the difference over the draws gives its 95 % interval. The p-value is sacreBLEU's: with the
same seed and number of draws it is the same number as `sacrebleu --paired-bs` prints. Drawing is done here because
sacreBLEU keeps the differences to itself and takes its seed from the environment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.evaluate.scores import DEFAULTS, ScoreOptions
from dragoman.evaluate.testset import TestSet
from dragoman.settings import at_least, option, to_mapping
from dragoman.text.metrics import Metric, reference_streams, scorer, sentence_chrf

COMPARED: tuple[Metric, ...] = ("bleu", "chrf")
SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """How two outputs are compared."""

    samples: int = option(1000, "draws of the test set")
    seed: int = option(12345, "of the draws; the default is sacreBLEU's")
    changes: int = option(10, "lines to show that gained most, and that lost most")

    def __post_init__(self) -> None:
        at_least(100, "samples", self.samples)
        at_least(0, "seed", self.seed)
        at_least(0, "changes", self.changes)


@dataclass(frozen=True)
class Difference:
    """One metric on both outputs: second minus first, its 95 % interval, and how probable as much is by chance."""

    name: str
    signature: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float

    @property
    def significant(self) -> bool:
        """Both signs agree. On a handful of lines this p-value is too sure of itself, and the interval is not."""
        return self.p_value < SIGNIFICANT and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Change:
    """A line that the two outputs translate differently, with the chrF of each."""

    number: int
    source: str
    references: tuple[str, ...]
    first: str
    second: str
    first_chrf: float
    second_chrf: float

    @property
    def difference(self) -> float:
        return self.second_chrf - self.first_chrf


@dataclass(frozen=True)
class Comparison:
    """Two outputs of one test set. `gains` are the lines where the second is better by most, `losses` by least."""

    first: str
    second: str
    test_set: str
    num_pairs: int
    num_changed: int
    samples: int
    seed: int
    differences: tuple[Difference, ...]
    gains: tuple[Change, ...]
    losses: tuple[Change, ...]

    def summary(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return to_mapping(self)


COMPARE_DEFAULTS = CompareOptions()


def compare_outputs(
    first: Sequence[str],
    second: Sequence[str],
    test: TestSet,
    options: CompareOptions = COMPARE_DEFAULTS,
    scoring: ScoreOptions = DEFAULTS,
    *,
    names: tuple[str, str] = ("first", "second"),
) -> Comparison:
    """Compare two outputs, a line a sentence of the test set."""
    changes = _changes(first, second, test, scoring.lowercase)
    gains = sorted((change for change in changes if change.difference > 0), key=lambda c: (-c.difference, c.number))
    losses = sorted((change for change in changes if change.difference < 0), key=lambda c: (c.difference, c.number))
    return Comparison(
        first=names[0],
        second=names[1],
        test_set=test.name,
        num_pairs=len(test),
        num_changed=len(changes),
        samples=options.samples,
        seed=options.seed,
        differences=tuple(_difference(metric, first, second, test, options, scoring) for metric in COMPARED),
        gains=tuple(gains[: options.changes]),
        losses=tuple(losses[: options.changes]),
    )


def _changes(first: Sequence[str], second: Sequence[str], test: TestSet, lowercase: bool) -> list[Change]:
    chrfs = [sentence_chrf(output, test.references, lowercase=lowercase) for output in (first, second)]
    lines = zip(test.sources, test.references, first, second, *chrfs, strict=True)
    changes = [Change(number, *line) for number, line in enumerate(lines, start=1)]
    return [change for change in changes if change.first != change.second]


def _difference(
    metric: Metric,
    first: Sequence[str],
    second: Sequence[str],
    test: TestSet,
    options: CompareOptions,
    scoring: ScoreOptions,
) -> Difference:
    library = scorer(metric, lowercase=scoring.lowercase, tokenize=scoring.tokenize)
    statistics = [
        np.asarray(library._extract_corpus_statistics(output, reference_streams(output, test.references)), float)
        for output in (first, second)
    ]
    whole = [library._compute_score_from_stats(lines.sum(0)) for lines in statistics]
    scores = [float(score.score) for score in whole]
    totals = _draws(np.hstack(statistics), options.samples, options.seed)
    drawn = [
        np.array([library._compute_score_from_stats(total).score for total in output])
        for output in np.split(totals, 2, axis=1)
    ]
    differences = drawn[1] - drawn[0]
    low, high = np.quantile(differences, (0.025, 0.975))
    signature = library.get_signature()
    signature.update("seed", options.seed)
    signature.update("bs", options.samples)
    return Difference(
        name=whole[0].name,
        signature=str(signature),
        first=scores[0],
        second=scores[1],
        difference=scores[1] - scores[0],
        low=float(low),
        high=float(high),
        p_value=_p_value(differences, scores[1] - scores[0]),
    )


def _draws(lines: NDArray[np.float64], samples: int, seed: int) -> NDArray[np.float64]:
    """The sum of the lines' statistics over each draw, a row a draw."""
    generator = np.random.default_rng(seed)
    num_lines = len(lines)
    counts = (
        np.bincount(generator.choice(num_lines, size=num_lines, replace=True), minlength=num_lines)
        for _ in range(samples)
    )
    return np.stack([count @ lines for count in counts])


def _p_value(differences: NDArray[np.float64], difference: float) -> float:
    """The share of draws that stray from their mean by as much as the whole set's difference.

    sacreBLEU asks for more than as much, by which an output would differ significantly from itself: all draws are 0,
    none is more. Asking for as much gives 1 there, and the same number wherever no two draws are equal.
    """
    distances = np.abs(differences)
    strays = distances - distances.mean()
    count = int(np.sum(strays >= abs(difference)))
    return (count + 1) / (len(differences) + 1)
