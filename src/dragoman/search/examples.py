"""Pairs to translate by, as ids, and those among them whose source is most like a sentence's.

Two sources are alike by the pieces, and pairs of neighbouring pieces, that both have; a rare one weighs more:

    weight = log((1 + N) / n), n of the N sources have it
    rank by  weight of what both have / (2 + length / mean length)
    likeness = weight of what both have / weight of what either has
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[int]

_COMMON = 1000
_COMMON_SHARE = 0.1
"""What more sources than this have, and more than this share of them, is no reason to think two of them alike."""


@dataclass(frozen=True)
class Alike:
    """The places of examples, best first, and how alike each is: above 0, and 1 for what has the same pieces."""

    places: NDArray[np.int64]
    likeness: NDArray[np.float32]


class Examples:
    """Sources and their translations, each with its end. The index takes some 24 bytes for each piece of a source."""

    def __init__(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> None:
        self.sources = sources
        self.targets = targets
        lengths = np.fromiter(map(len, sources), np.int64, len(sources))
        flat = np.fromiter((id for source in sources for id in source), np.int64, int(lengths.sum()))
        codes, owners = _codes(flat, np.repeat(np.arange(len(sources), dtype=np.int32), lengths))
        order = np.lexsort((owners, codes))
        codes, owners = codes[order], owners[order]
        # A source that has something twice has it.
        is_new = np.ones(len(codes), bool)
        is_new[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
        self._owners = owners[is_new]
        self._codes, self._starts, counts = np.unique(codes[is_new], return_index=True, return_counts=True)
        self._ends = self._starts + counts
        self._weights = np.log((1 + len(sources)) / counts).astype(np.float32)
        self._weights[counts > max(_COMMON, _COMMON_SHARE * len(sources))] = 0
        self._totals = np.bincount(self._owners, np.repeat(self._weights, counts), len(sources)).astype(np.float32)
        # A long source has something in common with everything.
        self._discounts = (1 / (2 + lengths / max(1.0, lengths.mean()))).astype(np.float32) if len(sources) else lengths

    def __len__(self) -> int:
        return len(self.sources)

    def nearest(self, source: Ids, num: int) -> Alike:
        """The `num` examples whose sources are most like this one; fewer if few are alike."""
        shared = np.zeros(len(self), np.float32)
        ids = np.asarray(source, np.int64)
        codes = np.unique(_codes(ids, np.zeros(len(ids), np.int32))[0])
        places = np.minimum(np.searchsorted(self._codes, codes), max(0, len(self._codes) - 1))
        known = places[self._codes[places] == codes] if len(self._codes) else places[:0]
        for place in known[self._weights[known] > 0]:
            shared[self._owners[self._starts[place] : self._ends[place]]] += self._weights[place]
        total = self._weights[known].sum() + (len(codes) - len(known)) * np.log1p(len(self))
        touched = np.flatnonzero(shared)
        ranks = -shared[touched] * self._discounts[touched]
        best = np.argpartition(ranks, num - 1)[:num] if num < len(touched) else np.arange(len(touched))
        best = touched[best[np.argsort(ranks[best], kind="stable")]]
        return Alike(best, shared[best] / (total + self._totals[best] - shared[best]))


def _codes(ids: NDArray[np.int64], owners: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """A number for every piece, and one for every two neighbours, and whose they are; the end, the last of each owner,
    which all have, has none.
    """
    goes_on = owners[1:] == owners[:-1]
    singles = np.flatnonzero(goes_on)
    doubles = singles[:-1][np.diff(singles) == 1]
    codes = np.concatenate([ids[singles], (ids[doubles] + 1 << 32) + ids[doubles + 1]])
    return codes, np.concatenate([owners[singles], owners[doubles]])
