"""How much of a translation stands in the translations of sources alike (Zhang et al. 2018, made simpler).

    examples -> the phrases of their translations, each with the root of the greatest likeness that it comes with
    a translation -> the sum over its phrases

A phrase is a few pieces in a row, the begin and the end among them. Added to a translation's log-probability, that says
which of a beam's translations people wrote the like of; nothing is asked of the model, so any engine's will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dragoman.search.examples import Examples, Ids

NUM_EXAMPLES = 32
LENGTHS = (2, 3, 4)
WEIGHT = 0.3
"""Of a phrase that stands in the translation of the very same source, in nats."""

Phrase = tuple[int, ...]


def phrases_alike(source: Ids, examples: Examples, begin_id: int) -> dict[Phrase, float]:
    """What each phrase is worth in a translation of this source; a phrase that is not there is worth nothing."""
    worth: dict[Phrase, float] = {}
    alike = examples.nearest(source, NUM_EXAMPLES)
    for place in np.argsort(alike.likeness):  # the most alike come last, and stay
        target = begin_id, *examples.targets[alike.places[place]]
        worth.update(dict.fromkeys(_phrases(target), WEIGHT * float(alike.likeness[place]) ** 0.5))
    return worth


def support(target: Ids, worth: Mapping[Phrase, float]) -> float:
    """What the phrases of a translation, begin and end included, are worth together."""
    return sum(worth.get(phrase, 0.0) for phrase in _phrases(tuple(target)))


def _phrases(ids: Sequence[int]) -> Iterator[Phrase]:
    for length in LENGTHS:
        yield from zip(*(ids[start:] for start in range(length)), strict=False)
