"""BPE-dropout: the paper's, and the same every time."""

import random
import string
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.recipe import TokenizerConfig
from dragoman.text import merge_dropout
from dragoman.text.merge_dropout import NUM_SPLITTINGS, MergeDropout, merge
from dragoman.text.tokenizer import Tokenizer


def sentences(count: int) -> list[str]:
    draw = random.Random(3)
    words = ["".join(draw.choices("aeinorst", k=draw.randint(1, 11))) for _ in range(61)]
    return [" ".join(draw.choices(words, k=draw.randint(1, 13))) for _ in range(count)]


TOKENIZER = Tokenizer.learn(sentences(307), TokenizerConfig(vocab_size=503))
TEXTS = st.one_of(st.text(), st.text(alphabet="aeinorst ▁'.1é猫"), st.sampled_from(sentences(41)))


def generator(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.lists(TEXTS, max_size=5))
def test_without_dropout_the_pieces_are_those_of_the_tokenizer(texts: list[str]) -> None:
    assert MergeDropout(TOKENIZER, 0.0, seed=1).ids_batch(texts, generator()) == TOKENIZER.ids_batch(texts)


@given(TEXTS, st.sampled_from([0.1, 0.5, 0.97]))
def test_dropout_changes_the_pieces_but_never_the_text(text: str, rate: float) -> None:
    ids = MergeDropout(TOKENIZER, rate, seed=1).ids(text, generator())
    assert TOKENIZER.decode(ids) == TOKENIZER.normalize(text)


@given(st.lists(TEXTS, max_size=5))
def test_a_batch_draws_as_its_texts_do_one_by_one(texts: list[str]) -> None:
    dropout, one, other = MergeDropout(TOKENIZER, 0.3, seed=1), generator(), generator()
    assert dropout.ids_batch(texts, one) == [dropout.ids(text, other) for text in texts]
    assert one.random() == other.random()


def test_a_draw_depends_on_seed_and_generator_and_on_nothing_drawn_before() -> None:
    texts = sentences(53)
    used = MergeDropout(TOKENIZER, 0.3, seed=1)
    used.ids_batch(reversed(texts), generator(99))
    expected = MergeDropout(TOKENIZER, 0.3, seed=1).ids_batch(texts, generator())
    assert used.ids_batch(texts, generator()) == expected
    assert used.ids_batch(texts, generator(8)) != expected
    assert MergeDropout(TOKENIZER, 0.3, seed=2).ids_batch(texts, generator()) != expected


def test_forgetting_does_not_change_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = MergeDropout(TOKENIZER, 0.3, seed=1).ids_batch(sentences(53), generator())
    monkeypatch.setattr(merge_dropout, "CACHED_SPLITTINGS", 11)
    forgetful = MergeDropout(TOKENIZER, 0.3, seed=1)
    assert forgetful.ids_batch(sentences(53), generator()) == expected
    assert len(forgetful._cache) <= 13


def test_a_word_has_many_splittings_but_a_bounded_number() -> None:
    dropout, rng = MergeDropout(TOKENIZER, 0.5, seed=1), generator()
    word = max(sentences(307)[0].split(), key=len)
    seen = {tuple(dropout.ids(word, rng)) for _ in range(499)}
    assert 2 < len(seen) <= NUM_SPLITTINGS


def test_each_possible_merge_is_left_out_with_the_chance_given() -> None:
    # One merge is possible: ab stays apart with chance `rate`.
    draw = random.Random(1)
    merges = {(0, 1): (0, 2)}
    counts = Counter(tuple(merge([0, 1], merges, lambda: draw.random() < 0.25)) for _ in range(4001))
    assert set(counts) == {(2,), (0, 1)}
    assert counts[0, 1] / 4001 == pytest.approx(0.25, abs=0.03)


def test_a_merge_that_was_left_out_may_be_done_at_a_later_step() -> None:
    # a b c: (b c) comes first by rank. It is left out once, so (a b) is done, and then (ab c) instead.
    letters = {letter: id for id, letter in enumerate(string.ascii_lowercase)}
    merges = {(1, 2): (0, 100), (0, 1): (1, 101), (101, 2): (2, 102), (0, 100): (3, 102)}
    verdicts = iter([False, True, False])  # of (a b), (b c); then of (ab c)
    assert merge([letters[letter] for letter in "abc"], merges, lambda: next(verdicts)) == [102]
    verdicts = iter([False, True, True])
    assert merge([0, 1, 2], merges, lambda: next(verdicts)) == [101, 2]


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match=r"tokenizer.dropout is 1.0, expected a share from 0 up to"):
        MergeDropout(TOKENIZER, 1.0, seed=1)
    unigram = Tokenizer.learn(sentences(307), TokenizerConfig(kind="unigram", vocab_size=401))
    with pytest.raises(ConfigError, match="these pieces were not learned by merging"):
        MergeDropout(unigram, 0.1, seed=1)
