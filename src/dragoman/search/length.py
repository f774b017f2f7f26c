"""How long a translation may get, and how its length weighs in its score (Wu et al. 2016, as the paper uses it)."""

from collections.abc import Iterable


def length_penalty(length: float, alpha: float) -> float:
    """lp(length) = ((5 + length) / 6) ^ alpha, which a hypothesis' log-probability is divided by.

    A log-probability only falls as pieces are added: without a penalty (alpha = 0) short translations win, a larger
    alpha favours long ones. `length` counts the end piece; a tensor of lengths gives a tensor.
    """
    return ((5 + length) / 6) ** alpha  # type: ignore[no-any-return]


def max_lengths(source_lengths: Iterable[int], extra_length: int, most: int | None = None) -> list[int]:
    """The most pieces of each translation, its end not counted: the source's and `extra_length`, never over `most`."""
    lengths = [length + extra_length for length in source_lengths]
    return lengths if most is None else [min(length, most) for length in lengths]


def best_attainable(log_probability: float, length: int, limit: int, alpha: float) -> float:
    """The best score that an open hypothesis of `length` pieces may still end with.

    Each further piece multiplies in a probability of at most 1, so the log-probability is at its best now. Being
    negative, it is at its best over the largest penalty in reach: that of the longest translation (`limit` pieces and
    the end), or of the shortest one when alpha is negative and long translations are punished.
    """
    return log_probability / max(length_penalty(length + 1, alpha), length_penalty(limit + 1, alpha))
