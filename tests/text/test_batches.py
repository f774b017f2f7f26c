"""Batches: every pair once, little padding, the same order wherever it is planned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.text import batches, packing
from dragoman.text.batches import EpochPlan, collate, padding_share, plan_epoch, planned_padding_share, split

LENGTHS = st.lists(st.tuples(st.integers(1, 41), st.integers(1, 37)), min_size=1, max_size=211)


def sides(lengths: list[tuple[int, int]]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    source, target = np.array(lengths, np.uint32).T
    return source, target


def natural_lengths(count: int, seed: int = 3) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Lengths as sentences have them: many short, few long, the two sides alike."""
    draw = np.random.default_rng(seed)
    target = np.clip(draw.lognormal(2.6, 0.35, count), 2, 97).astype(np.uint32)
    source = np.clip(target * draw.normal(1.1, 0.15, count) + 1, 2, 101).astype(np.uint32)
    return source, target


def as_lists(plan: EpochPlan) -> list[list[int]]:
    return [indices.tolist() for indices in plan]


@given(LENGTHS, st.integers(1, 503), st.integers(0, 5))
def test_an_epoch_has_every_pair_exactly_once(lengths: list[tuple[int, int]], batch_tokens: int, epoch: int) -> None:
    source, target = sides(lengths)
    plan = plan_epoch(source, target, batch_tokens=batch_tokens, seed=1, epoch=epoch)
    assert sorted(index for batch in plan for index in batch) == list(range(len(lengths)))
    assert all(len(batch) for batch in plan)


@given(LENGTHS, st.integers(1, 503), st.integers(0, 1009))
def test_a_batch_keeps_to_its_budget_unless_it_is_a_single_pair(
    lengths: list[tuple[int, int]], batch_tokens: int, max_cells: int
) -> None:
    source, target = sides(lengths)
    for batch in plan_epoch(source, target, batch_tokens=batch_tokens, seed=1, epoch=0, max_cells=max_cells):
        if len(batch) > 1:
            assert target[batch].sum() <= batch_tokens
            assert len(batch) * (source[batch].max() + target[batch].max()) <= (max_cells or 3 * batch_tokens)


@given(LENGTHS)
def test_a_selection_may_leave_out_and_repeat(lengths: list[tuple[int, int]]) -> None:
    source, target = sides(lengths)
    selection = np.array([0, 0, len(lengths) - 1])
    plan = plan_epoch(source, target, batch_tokens=83, seed=1, epoch=0, selection=selection)
    assert sorted(index for batch in plan for index in batch) == sorted(selection)
    assert selection.tolist() == [0, 0, len(lengths) - 1]


def test_the_order_is_a_function_of_seed_and_epoch_and_not_of_ranks() -> None:
    source, target = natural_lengths(1009)

    def plan(seed: int = 1, epoch: int = 0, world_size: int = 1) -> list[list[int]]:
        return as_lists(plan_epoch(source, target, batch_tokens=509, seed=seed, epoch=epoch, world_size=world_size))

    assert plan() == plan() == plan(world_size=7)
    assert len({str(plan()), str(plan(seed=2)), str(plan(epoch=1))}) == 3
    assert {frozenset(batch) for batch in plan()} != {frozenset(batch) for batch in plan(epoch=1)}


def test_the_order_of_batches_does_not_go_by_length() -> None:
    source, target = natural_lengths(3001)
    means = [target[batch].mean() for batch in plan_epoch(source, target, batch_tokens=509, seed=1, epoch=0)]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.4


def test_batches_are_nearly_full_and_nearly_without_padding() -> None:
    source, target = natural_lengths(30_011)
    plan = plan_epoch(source, target, batch_tokens=4096, seed=1, epoch=0)
    assert planned_padding_share(plan, source, target) < 0.03
    tokens = [target[batch].sum() for batch in plan]
    assert np.mean(tokens) > 0.88 * 4096


def test_trading_pairs_lowers_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = natural_lengths(10_007)
    shares = []
    for limit in (512, 0):
        monkeypatch.setattr(packing, "TRADED_BATCHES", limit)
        plan = plan_epoch(source, target, batch_tokens=2053, seed=1, epoch=0)
        shares.append(planned_padding_share(plan, source, target))
    assert shares[0] < 0.7 * shares[1]


def test_large_data_is_planned_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WINDOW_PAIRS", 307)
    source, target = natural_lengths(1009)
    plan = plan_epoch(source, target, batch_tokens=509, seed=1, epoch=0)
    assert sorted(index for batch in plan for index in batch) == list(range(1009))
    assert plan.indices.dtype == np.uint32


def test_a_plan_is_read_like_a_list() -> None:
    source, target = natural_lengths(211)
    plan = plan_epoch(source, target, batch_tokens=509, seed=1, epoch=0)
    assert [batch.tolist() for batch in plan[1:3]] == [plan[1].tolist(), plan[2].tolist()]
    assert plan[-1].tolist() == plan[len(plan) - 1].tolist()
    with pytest.raises(IndexError):
        plan[len(plan)]


@given(LENGTHS, st.integers(1, 7))
def test_parts_make_up_the_batch_and_have_nearly_the_same_tokens(lengths: list[tuple[int, int]], parts: int) -> None:
    source, target = sides(lengths)
    for batch in plan_epoch(source, target, batch_tokens=211, seed=1, epoch=0):
        cut = split(batch, parts)
        assert len(cut) == parts
        assert sorted(np.concatenate(cut)) == sorted(batch)
        tokens = [int(target[part].sum()) for part in cut]
        assert max(tokens) - min(tokens) <= target[batch].max()


def test_a_batch_of_fewer_pairs_than_parts_leaves_some_empty() -> None:
    assert [part.tolist() for part in split(np.array([5, 3]), 3)] == [[5], [3], []]
    empty = collate([], padding_id=0, begin_id=1)
    assert (len(empty), empty.num_target_tokens, empty.source_BS.shape) == (0, 0, (0, 0))


def test_more_ranks_than_pairs_is_refused() -> None:
    source, target = natural_lengths(3)
    with pytest.raises(DataError, match="there are 3 pairs to train on for 5 ranks, expected at least one for each"):
        plan_epoch(source, target, batch_tokens=97, seed=1, epoch=0, world_size=5)
    with pytest.raises(DataError, match="there are 0 pairs to train on for 1 ranks"):
        plan_epoch(source[:0], target[:0], batch_tokens=97, seed=1, epoch=0)


def test_collating_pads_and_shifts_the_target_behind_the_begin_id() -> None:
    pairs = [(np.array([5, 6, 2], np.uint16), np.array([7, 2], np.uint16)),
             (np.array([8, 2], np.uint16), np.array([9, 10, 11, 2], np.uint16))]  # fmt: skip
    batch = collate(pairs, padding_id=0, begin_id=1, indices=[13, 4])
    assert batch.source_BS.tolist() == [[5, 6, 2], [8, 2, 0]]
    assert batch.target_in_BT.tolist() == [[1, 7, 0, 0], [1, 9, 10, 11]]
    assert batch.target_out_BT.tolist() == [[7, 2, 0, 0], [9, 10, 11, 2]]
    assert (batch.num_source_tokens, batch.num_target_tokens) == (5, 6)
    assert batch.indices.tolist() == [13, 4]
    assert batch.source_BS.dtype == batch.target_in_BT.dtype == batch.indices.dtype == np.int64


@given(LENGTHS)
def test_what_a_plan_foretells_is_the_padding_of_its_batches(lengths: list[tuple[int, int]]) -> None:
    source, target = sides(lengths)
    plan = plan_epoch(source, target, batch_tokens=211, seed=1, epoch=0)
    pairs = [(np.full(s, 7), np.full(t, 7)) for s, t in lengths]
    made = [collate([pairs[index] for index in batch], padding_id=0, begin_id=1) for batch in plan]
    assert padding_share(made) == pytest.approx(planned_padding_share(plan, source, target))
    assert sum((batch.source_BS == 0).sum() + (batch.target_out_BT == 0).sum() for batch in made) == pytest.approx(
        padding_share(made) * sum(batch.source_BS.size + batch.target_out_BT.size for batch in made)
    )


def test_no_batches_have_no_padding() -> None:
    assert padding_share([]) == 0.0
