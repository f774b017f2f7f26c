"""Batches by token budget: a plan for each epoch, the same wherever it is made, and arrays to train on.

    indices of pairs -> plan_epoch -> a batch's indices -> split among ranks and micro-batches -> collate -> Batch

The plan is a function of seed and epoch. The number of ranks only decides who gets which part of a batch, so that two
ranks together take the same steps as one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.text.packing import Limits, pack

# Pairs are bucketed by length within shuffled windows of so many: memory for sorting is bounded, and in large data a
# pair meets other pairs in every epoch.
WINDOW_PAIRS = 1 << 20


@dataclass(frozen=True, eq=False)
class Batch:
    """Padded ids. `target_in_BT` is `target_out_BT` one place later, behind the begin id: what the decoder reads."""

    source_BS: NDArray[np.int64]
    target_in_BT: NDArray[np.int64]
    target_out_BT: NDArray[np.int64]
    num_source_tokens: int
    num_target_tokens: int
    indices: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.source_BS)


@dataclass(frozen=True, eq=False)
class EpochPlan(Sequence[NDArray[np.int64]]):
    """The batches of an epoch in their order, as indices of pairs: one array, and where its parts begin and end."""

    indices: NDArray[np.uint32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, number: int) -> NDArray[np.int64]: ...

    @overload
    def __getitem__(self, number: slice) -> list[NDArray[np.int64]]: ...

    def __getitem__(self, number: int | slice) -> NDArray[np.int64] | list[NDArray[np.int64]]:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        return self.indices[self.starts[number] : self.ends[number]].astype(np.int64)

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[number] for number in range(len(self)))


def plan_epoch(
    source_lengths: NDArray[Any],
    target_lengths: NDArray[Any],
    *,
    batch_tokens: int,
    seed: int,
    epoch: int,
    selection: NDArray[Any] | None = None,
    max_cells: int = 0,
    world_size: int = 1,
) -> EpochPlan:
    """Every pair, or every one of `selection` (which may name a pair twice), in exactly one batch.

    A batch has at most `batch_tokens` target pieces, and at most `max_cells` (three times as many if 0) cells on both
    sides together, padding counted; a pair that is larger than that makes a batch of its own. Memory: four bytes for
    each pair, and a window.
    """
    num_pairs = len(source_lengths) if selection is None else len(selection)
    if num_pairs < world_size or not num_pairs:
        raise DataError(
            f"there are {num_pairs} pairs to train on for {world_size} ranks, expected at least one for each: "
            f"start fewer ranks, or give more data"
        )
    rng = np.random.default_rng((seed, epoch))
    limits = Limits(batch_tokens, max_cells or 3 * batch_tokens)
    indices = np.arange(num_pairs, dtype=np.uint32) if selection is None else selection.astype(np.uint32)
    rng.shuffle(indices)
    sizes: list[int] = []
    for start in range(0, num_pairs, WINDOW_PAIRS):
        window = indices[start : start + WINDOW_PAIRS].copy()
        source, target = (lengths[window].astype(np.int64) for lengths in (source_lengths, target_lengths))
        groups = pack(source, target, limits, rng)
        indices[start : start + len(window)] = window[np.concatenate(groups)]
        sizes += map(len, groups)
    ends = np.cumsum(sizes, dtype=np.int64)
    order = rng.permutation(len(ends))
    return EpochPlan(indices, (ends - sizes)[order], ends[order])


def split(indices: NDArray[Any], parts: int) -> list[NDArray[Any]]:
    """A batch dealt out into parts of nearly the same size, for ranks and micro-batches; some empty if it is small.

    Dealt like cards, because a batch is sorted by target length: the parts' target pieces differ by one target at most.
    """
    return [indices[part::parts] for part in range(parts)]


def collate(
    pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    padding_id: int,
    begin_id: int,
    indices: NDArray[Any] | Sequence[int] = (),
) -> Batch:
    """Pairs of ids, padded to rectangles. No pairs make a batch of no rows and no columns."""
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    target_out_BT = _padded(targets, padding_id)
    target_in_BT = np.full_like(target_out_BT, padding_id)
    target_in_BT[:, :1] = begin_id
    target_in_BT[:, 1:] = target_out_BT[:, :-1]
    # The end of a shorter target would be read at the place where nothing is asked: padding, as everywhere there.
    target_in_BT[target_out_BT == padding_id] = padding_id
    return Batch(
        source_BS=_padded(sources, padding_id),
        target_in_BT=target_in_BT,
        target_out_BT=target_out_BT,
        num_source_tokens=sum(map(len, sources)),
        num_target_tokens=sum(map(len, targets)),
        indices=np.asarray(indices, np.int64),
    )


def padding_share(batches: Iterable[Batch]) -> float:
    """The share of all cells, of source and target together, that are padding."""
    real = cells = 0
    for batch in batches:
        real += batch.num_source_tokens + batch.num_target_tokens
        cells += batch.source_BS.size + batch.target_out_BT.size
    return 1 - real / cells if cells else 0.0


def planned_padding_share(plan: EpochPlan, source_lengths: NDArray[Any], target_lengths: NDArray[Any]) -> float:
    """`padding_share` of the batches that a plan will make, without making them."""
    real = cells = 0
    for indices in plan:
        for lengths in (source_lengths[indices], target_lengths[indices]):
            real += int(lengths.sum())
            cells += len(lengths) * int(lengths.max())
    return 1 - real / cells


def _padded(rows: Sequence[NDArray[Any]], padding_id: int) -> NDArray[np.int64]:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.full((len(rows), int(lengths.max(initial=0))), padding_id, np.int64)
    if rows:
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return padded
