"""Pairs to translate by, as ids, and those among them whose source is most like a sentence's.

Two sources are alike by the pieces, and pairs of neighbouring pieces, that both have; a rare one counts for more:

    likeness = sum of log((1 + N) / n) over what both have / (2 + length / mean length), n of the N sources have it
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[int]

_COMMON = 1000
_COMMON_SHARE = 0.1
"""What more sources than this have, and more than this share of them, is no reason to think two of them alike."""


class Examples:
    """Sources and their translations, each with its end. The index takes some 24 bytes for each piece of a source."""

    def __init__(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> None:
        self.sources = sources
        self.targets = targets
        coded = [_codes(source) for source in sources]
        codes = np.concatenate([np.zeros(0, np.int64), *coded])
        owners = np.repeat(np.arange(len(sources), dtype=np.int32), list(map(len, coded)))
        order = np.lexsort((owners, codes))
        codes, owners = codes[order], owners[order]
        # A source that has something twice has it.
        is_new = np.ones(len(codes), bool)
        is_new[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
        self._owners = owners[is_new]
        self._codes, self._starts = np.unique(codes[is_new], return_index=True)
        self._ends = np.append(self._starts[1:], len(self._owners))
        lengths = np.array([len(source) for source in sources], np.float32)
        # A long source has something in common with everything.
        self._discounts = 1 / (2 + lengths / max(1.0, float(lengths.mean()))) if len(sources) else lengths

    def __len__(self) -> int:
        return len(self.sources)

    def nearest(self, source: Ids, num: int) -> NDArray[np.int64]:
        """The places of the `num` examples whose sources are most like this one, best first; fewer if few are alike."""
        scores = np.zeros(len(self), np.float32)
        most = max(_COMMON, _COMMON_SHARE * len(self))
        for code in np.unique(_codes(source)):
            place = int(np.searchsorted(self._codes, code))
            if place == len(self._codes) or self._codes[place] != code:
                continue
            having = self._owners[self._starts[place] : self._ends[place]]
            if len(having) <= most:
                scores[having] += np.log((1 + len(self)) / len(having))
        scores *= self._discounts
        best = np.argpartition(-scores, num - 1)[:num] if num < len(self) else np.arange(len(self))
        best = best[np.argsort(-scores[best], kind="stable")]
        return best[scores[best] > 0]


def _codes(source: Ids) -> NDArray[np.int64]:
    """A number for every piece, and one for every two neighbours; the end, which all have, has none."""
    ids = np.asarray(source[:-1], np.int64)
    return np.concatenate([ids, (ids[:-1] + 1 << 32) + ids[1:]])
