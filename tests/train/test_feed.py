"""Batches: (epoch, index) is the same pairs in the same splitting, whoever asks, and in however many parts."""

from dataclasses import replace

import numpy as np
import pytest
from small_runs import small_recipe, write_corpus

from dragoman.recipe import Recipe, TokenizerConfig
from dragoman.text.batches import Batch, collate, padding_share
from dragoman.train.feed import PairFeed
from dragoman.train.prepare import Prepared, prepare


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    folder = tmp_path_factory.mktemp("corpus")
    return small_recipe(write_corpus(folder, 211), valid=(write_corpus(folder, 13, "valid.tsv", seed=7),))


@pytest.fixture(scope="module")
def prepared(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(recipe, tmp_path_factory.mktemp("run"))


def feed_of(prepared: Prepared, recipe: Recipe, dropout: float = 0.0, seed: int = 1, **more: int) -> PairFeed:
    train = replace(recipe.train, seed=seed)
    recipe = replace(recipe, tokenizer=TokenizerConfig(dropout=dropout), train=train)
    return PairFeed(prepared.train, prepared.tokenizer, recipe, **more)


def rows(parts: list[Batch]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The pairs of ids in batches, padding taken off, in an order of their own."""
    return sorted(
        (tuple(source[source != 0].tolist()), tuple(target[target != 0].tolist()))
        for part in parts
        for source, target in zip(part.source_BS, part.target_out_BT, strict=True)
        if target.any()
    )


def whole_epoch(feed: PairFeed, epoch: int) -> list[list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    return [rows(feed.parts(epoch, index, 0, 1, 1)) for index in range(feed.num_batches(epoch))]


def test_an_epoch_is_every_pair_once_in_batches_within_the_budget(prepared: Prepared, recipe: Recipe) -> None:
    feed = feed_of(prepared, recipe)
    for epoch in (0, 3):
        batches = [feed.parts(epoch, index, 0, 1, 1)[0] for index in range(feed.num_batches(epoch))]
        assert rows(batches) == sorted(
            (tuple(source.tolist()), tuple(target.tolist()))
            for source, target in (prepared.train.pair(index) for index in range(len(prepared.train)))
        )
        assert all(batch.num_target_tokens <= recipe.train.batch_tokens for batch in batches)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_asked_again_in_another_order_a_batch_is_the_same(prepared: Prepared, recipe: Recipe, dropout: float) -> None:
    first, second = (feed_of(prepared, recipe, dropout) for _ in range(2))
    wanted = whole_epoch(first, 2)
    whole_epoch(second, 0)
    for index in reversed(range(second.num_batches(2))):
        assert rows(second.parts(2, index, 0, 1, 1)) == wanted[index]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(("ranks", "micro_batches"), [(1, 3), (2, 1), (3, 2)])
def test_the_parts_of_all_ranks_are_the_whole_batch(
    prepared: Prepared, recipe: Recipe, dropout: float, ranks: int, micro_batches: int
) -> None:
    alone = feed_of(prepared, recipe, dropout)
    feeds = [feed_of(prepared, recipe, dropout, num_ranks=ranks) for _ in range(ranks)]
    assert {feed.num_batches(1) for feed in feeds} == {alone.num_batches(1)}
    for index in range(alone.num_batches(1)):
        parts = [feeds[rank].parts(1, index, rank, ranks, ranks * micro_batches) for rank in range(ranks)]
        assert [len(mine) for mine in parts] == [micro_batches] * ranks
        everyone = [part for mine in parts for part in mine]
        (batch,) = alone.parts(1, index, 0, 1, 1)
        assert rows(everyone) == rows([batch])
        assert sum(part.num_target_tokens for part in everyone) == batch.num_target_tokens


def test_a_part_without_pairs_has_a_pass_to_take_part_in_and_nothing_to_teach(
    prepared: Prepared, recipe: Recipe
) -> None:
    parts = feed_of(prepared, recipe).parts(0, 0, 0, 1, 97)
    empty = [part for part in parts if not part.num_target_tokens]
    assert empty
    for part in empty:
        assert part.source_BS.any()
        assert len(part) == 1
        assert not part.target_out_BT.any()
        assert part.num_source_tokens == 0


def test_epochs_and_seeds_have_orders_of_their_own(prepared: Prepared, recipe: Recipe) -> None:
    orders = [whole_epoch(feed_of(prepared, recipe, seed=seed), epoch) for seed, epoch in ((1, 0), (1, 1), (2, 0))]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]
    assert whole_epoch(feed_of(prepared, recipe, seed=1), 0) == orders[0]


def test_with_dropout_a_pair_is_split_otherwise_in_each_epoch_and_still_says_the_same(
    prepared: Prepared, recipe: Recipe
) -> None:
    feed, decode = feed_of(prepared, recipe, dropout=0.5), prepared.tokenizer.decode
    epochs = [[pair for batch in whole_epoch(feed, epoch) for pair in batch] for epoch in (0, 1)]
    assert set(epochs[0]) != set(epochs[1])
    sentences = [sorted((decode(source), decode(target)) for source, target in epoch) for epoch in epochs]
    assert sentences[0] == sentences[1] == sorted(tuple(prepared.train.text(index)) for index in range(211))


def test_a_target_is_read_behind_the_begin(prepared: Prepared, recipe: Recipe) -> None:
    (batch,) = feed_of(prepared, recipe).parts(0, 0, 0, 1, 1)
    assert np.all(batch.target_in_BT[:, 0] == prepared.tokenizer.begin_id)
    real = batch.target_out_BT[:, 1:] != prepared.tokenizer.padding_id
    assert np.array_equal(batch.target_in_BT[:, 1:][real], batch.target_out_BT[:, :-1][real])


def test_with_dropout_batches_are_dealt_by_the_lengths_that_pairs_then_have(prepared: Prepared, recipe: Recipe) -> None:
    feed = feed_of(prepared, recipe, dropout=0.5)
    batches = [feed.parts(0, index, 0, 1, 1)[0] for index in range(feed.num_batches(0))]
    planned = [[feed._draw(0, int(index)) for index in indices] for indices in feed._plan(0)]
    kept = [collate(pairs, prepared.tokenizer.padding_id, prepared.tokenizer.begin_id) for pairs in planned]
    assert rows(batches) == rows(kept)
    assert padding_share(batches) < 0.7 * padding_share(kept)


def test_with_variation_some_pairs_are_met_otherwise_in_each_epoch(prepared: Prepared, recipe: Recipe) -> None:
    feed = feed_of(prepared, replace(recipe, data=replace(recipe.data, variation=0.3)))
    decode = prepared.tokenizer.decode
    plain = {tuple(prepared.train.text(index)) for index in range(211)}
    for epoch in (0, 1):
        met = [(decode(s), decode(t)) for batch in whole_epoch(feed, epoch) for s, t in batch]
        assert len(met) == 211
        assert 0.5 * 211 < sum(pair in plain for pair in met) < 0.9 * 211
