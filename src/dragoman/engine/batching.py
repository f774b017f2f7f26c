"""Batches of sources: of like length, so that little is padded, and of a size that keeps every worker busy."""

from collections.abc import Sequence

from dragoman.engine.engine import Ids
from dragoman.errors import LengthError


def plan_batches(lengths: Sequence[int], batch_tokens: int, workers: int = 1) -> list[list[int]]:
    """The places of the sources, batch by batch, longest sources first.

    A batch's padded size (its sources times the longest) is at most `batch_tokens`, or it is a single source. Few
    sources are shared out evenly among the workers.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    budget = min(batch_tokens, -(-sum(lengths) // workers))
    batches: list[list[int]] = []
    for place in order:
        if not batches or (len(batches[-1]) + 1) * lengths[batches[-1][0]] > budget:
            batches.append([])
        batches[-1].append(place)
    return batches


def check_lengths(sources: Sequence[Ids], max_length: int) -> None:
    """Refuse what the model cannot read."""
    for source in sources:
        if not source:
            raise LengthError("a source has no pieces, expected at least the end piece")
        if len(source) > max_length:
            raise LengthError(
                f"source has {len(source)} pieces, the model takes at most {max_length}: "
                f"split the text or train with a larger max_length"
            )
