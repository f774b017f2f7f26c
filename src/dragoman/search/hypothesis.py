"""What search returns: a translation in ids, and how likely the model holds it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.search.length import length_penalty


@dataclass(frozen=True)
class Hypothesis:
    """A translation, whole or cut off.

    `ids` has neither the begin nor the end piece; `piece_log_probabilities` has one number an id and, of a finished
    hypothesis, one for the end; `log_probability` is their sum, and `score` that over the length penalty.
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float
    piece_log_probabilities: tuple[float, ...]
    finished: bool


def make_hypothesis(ids: Sequence[int], log_probs: Sequence[float], *, finished: bool, alpha: float) -> Hypothesis:
    """A hypothesis with its score under the length penalty `alpha`."""
    assert len(log_probs) == len(ids) + finished
    total = sum(log_probs)
    return Hypothesis(
        ids=tuple(ids),
        log_probability=total,
        score=total / length_penalty(len(log_probs), alpha),
        piece_log_probabilities=tuple(log_probs),
        finished=finished,
    )
