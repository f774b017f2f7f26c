"""Which pairs go into a batch together, so that little of it is padding.

A batch is two rectangles, pairs by longest source and pairs by longest target; whatever its pairs do not fill is
padding. Sorting by length alone leaves one side ragged: in a batch of 4,096 target pieces of Multi30k, a sixth of the
source. So pairs are first laid along a line that winds through the plane of both lengths and cut into batches, and then
batches that are close take each other's pairs: two are thrown together and cut apart again where that costs least.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Lengths = NDArray[np.int64]

# Batches are planned this full, so that each has room to give and take.
FILL = 0.94
LEAST_FILL = 0.75
NUM_NEIGHBOURS = 8
NUM_ROUNDS = 2
# With more batches than this the winding line alone is dense enough, and trading would take long.
TRADED_BATCHES = 512
# A strip of the winding line is as wide as so many batches need: wider leaves the target ragged, narrower the source.
STRIP_BATCHES = 4


@dataclass(frozen=True)
class Limits:
    """The most that a batch of several pairs holds: target pieces, and cells of both rectangles with their padding."""

    tokens: int
    cells: int


def pack(source: Lengths, target: Lengths, limits: Limits, rng: np.random.Generator) -> list[Indices]:
    """Groups of positions in `source` and `target`; every position is in exactly one, sorted by target length."""
    order = winding_order(source, target, limits, rng)
    groups = cut(order, source, target, limits)
    if 1 < len(groups) <= TRADED_BATCHES:
        groups = trade(groups, source, target, limits, rng)
    return [group[np.argsort(target[group], kind="stable")] for group in groups]


def regroup(source: Lengths, target: Lengths, num_groups: int, rng: np.random.Generator) -> list[Indices]:
    """Exactly `num_groups` groups of about the same number of target pieces, no more padded than they need be."""
    total = int(target.sum())
    limits = Limits(-(-total // num_groups), int(source.sum()) + total)
    order = winding_order(source, target, limits, rng)
    # No group is empty, also where one pair has the pieces of several.
    numbers = np.arange(1, num_groups)
    places = np.searchsorted(np.cumsum(target[order]), numbers * (total / num_groups))
    places = np.minimum(np.maximum.accumulate(places - numbers) + numbers, len(order) - num_groups + numbers)
    groups = np.split(order, np.maximum(places, numbers))
    if 1 < num_groups <= TRADED_BATCHES:
        groups = trade(groups, source, target, limits, rng)
    return [group[np.argsort(target[group], kind="stable")] for group in groups]


def winding_order(source: Lengths, target: Lengths, limits: Limits, rng: np.random.Generator) -> Indices:
    """All positions, a strip of target lengths at a time, by source length: upwards in one strip, down in the next.

    Pairs of equal lengths are in random order. Every sort here and below is stable: how others break ties depends on
    the processor, and the order of batches must not.
    """
    tokens_of_length = np.bincount(target) * np.arange(int(target.max()) + 1)
    strip_of_length = np.empty_like(tokens_of_length)
    strip, room = 0, int(rng.integers(STRIP_BATCHES * limits.tokens))
    for length, tokens in enumerate(tokens_of_length.tolist()):
        strip_of_length[length] = strip
        room -= tokens
        if room <= 0:
            strip, room = strip + 1, STRIP_BATCHES * limits.tokens
    strips = strip_of_length[target]
    along = np.where(strips % 2 == rng.integers(2), source, -source)
    shuffled = rng.permutation(len(source))
    return shuffled[np.lexsort((along[shuffled], strips[shuffled]))]


def cut(order: Indices, source: Lengths, target: Lengths, limits: Limits) -> list[Indices]:
    """The line in stretches with about the same number of target pieces, none over the limits."""
    ends = np.cumsum(target[order])
    num_groups = max(1, -(-int(ends[-1]) // max(1, int(limits.tokens * FILL))))
    places = np.searchsorted(ends, np.arange(1, num_groups) * (ends[-1] / num_groups)) + 1
    groups = []
    waiting = [group for group in np.split(order, places) if len(group)][::-1]
    while waiting:
        group = waiting.pop()
        tokens = int(target[group].sum())
        if len(group) > 1 and (tokens > limits.tokens or _cells(group, source, target) > limits.cells):
            middle = len(group) // 2
            waiting += [group[middle:], group[:middle]]
        else:
            groups.append(group)
    return groups


def trade(
    groups: list[Indices], source: Lengths, target: Lengths, limits: Limits, rng: np.random.Generator
) -> list[Indices]:
    """The groups after each has met those whose longest source and target are most like its own."""
    groups = list(groups)
    corners = np.array([(source[group].max(), target[group].max()) for group in groups])
    for _ in range(NUM_ROUNDS):
        for one in rng.permutation(len(groups)):
            distance = np.abs(corners - corners[one]).sum(axis=1)
            for other in np.argsort(distance, kind="stable")[: NUM_NEIGHBOURS + 1]:
                if other == one:
                    continue
                both = cut_anew(groups[one], groups[other], source, target, limits)
                for number, group in zip((one, other), both, strict=True):
                    groups[number] = group
                    corners[number] = source[group].max(), target[group].max()
    return groups


def cut_anew(one: Indices, other: Indices, source: Lengths, target: Lengths, limits: Limits) -> tuple[Indices, Indices]:
    """Both groups' pairs in two groups of the fewest cells: as they are, or cut across the source or target length."""
    best, result = _cells(one, source, target) + _cells(other, source, target), (one, other)
    group = np.concatenate([one, other])
    s, t = source[group], target[group]
    total = int(t.sum())
    smaller = min(total - int(t[: len(one)].sum()), int(t[: len(one)].sum()))
    least = max(min(int(LEAST_FILL * limits.tokens), smaller), total - limits.tokens)
    for first, second in ((s, t), (t, s)):
        order = np.lexsort((second, first))
        ends = np.cumsum(t[order])
        start = int(np.searchsorted(ends, least))
        stop = min(int(np.searchsorted(ends, total - least, "right")), len(group) - 1)
        if start >= stop:
            continue
        # Cells of the two parts, for each number of pairs in the left one.
        counts = np.arange(start + 1, stop + 1)
        left = counts * _running_corner(s[order], t[order])[start:stop]
        right = (len(group) - counts) * _running_corner(s[order][::-1], t[order][::-1])[::-1][start + 1 : stop + 1]
        cells = np.where(np.maximum(left, right) <= limits.cells, left + right, best)
        cheapest = int(cells.argmin())
        if cells[cheapest] < best:
            best, place = int(cells[cheapest]), start + cheapest + 1
            result = group[order[:place]], group[order[place:]]
    return result


def _running_corner(source: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    corner: NDArray[Any] = np.maximum.accumulate(source) + np.maximum.accumulate(target)
    return corner


def _cells(group: Indices, source: Lengths, target: Lengths) -> int:
    return len(group) * int(source[group].max() + target[group].max())
