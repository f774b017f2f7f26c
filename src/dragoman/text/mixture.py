"""Several corpora as one, each with its weight."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError
from dragoman.text.dataset import Dataset, PairIds, PairText


class Mixture:
    """Datasets laid end to end: pair `i` of the second has index `len(first) + i`."""

    def __init__(self, datasets: Sequence[Dataset], weights: Sequence[float] | None = None) -> None:
        self.datasets = list(datasets)
        self.weights = [1.0] * len(self.datasets) if weights is None else [float(weight) for weight in weights]
        if len(self.weights) != len(self.datasets) or not self.datasets:
            raise ConfigError(f"{len(self.datasets)} corpora have {len(self.weights)} weights: give one for each")
        if min(self.weights) <= 0:
            raise ConfigError(f"a corpus has the weight {min(self.weights)}, expected a number above 0")
        self._starts = list(accumulate(map(len, self.datasets), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    @cached_property
    def source_lengths(self) -> NDArray[Any]:
        return self._joined([dataset.source_lengths for dataset in self.datasets])

    @cached_property
    def target_lengths(self) -> NDArray[Any]:
        return self._joined([dataset.target_lengths for dataset in self.datasets])

    def epoch(self, seed: int, epoch: int) -> NDArray[np.uint32] | None:
        """The indices that an epoch goes through, in no particular order: a function of seed and epoch alone.

        None is every pair once, which costs no memory to say. A corpus of weight w adds w times its pairs: the next
        stretch of an endless row of shuffled passes over it. So weight 2 is each pair twice, and weight 0.5 one half
        in this epoch and the other half in the next.
        """
        if all(weight == 1 for weight in self.weights):
            return None
        parts = [
            stretch(len(dataset), weight, epoch, (seed, number)) + np.uint32(start)
            for number, (dataset, weight, start) in enumerate(
                zip(self.datasets, self.weights, self._starts, strict=False)
            )
        ]
        return np.concatenate(parts)

    def pair(self, index: int) -> PairIds:
        dataset, place = self._find(index)
        return dataset.pair(place)

    def text(self, index: int) -> PairText:
        dataset, place = self._find(index)
        return dataset.text(place)

    def drawn_pair(self, index: int, split: Callable[[PairText], Sequence[list[int]]]) -> PairIds:
        dataset, place = self._find(index)
        return dataset.drawn_pair(place, split)

    def _find(self, index: int) -> tuple[Dataset, int]:
        number = 0
        while index >= self._starts[number + 1]:
            number += 1
        return self.datasets[number], index - self._starts[number]

    def _joined(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def stretch(num_pairs: int, weight: float, epoch: int, seed: tuple[int, ...]) -> NDArray[np.uint32]:
    """From `epoch · weight` to `(epoch + 1) · weight` passes, each in an order of its own, cut to whole pairs."""
    start, end = round(epoch * weight * num_pairs), round((epoch + 1) * weight * num_pairs)
    parts = []
    for number in range(start // num_pairs, -(-end // num_pairs)):
        first, last = max(start - number * num_pairs, 0), min(end - number * num_pairs, num_pairs)
        order = np.arange(num_pairs, dtype=np.uint32)
        if last - first < num_pairs:
            np.random.default_rng((*seed, number)).shuffle(order)
        parts.append(order[first:last])
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)
