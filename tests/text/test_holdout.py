"""Holding pairs out for validation: no sentence may be on both sides of the split."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.text.corpus import Pair
from dragoman.text.holdout import HeldOut, families_of, fold, hold_out, sentence_hash

FEW_SENTENCES = st.sampled_from([f"{word}{end}" for word in "abcdefghijklmnopqrs" for end in ("", "!", " ?")])
PAIRS = st.lists(st.tuples(FEW_SENTENCES, FEW_SENTENCES.map(str.upper)), min_size=2, max_size=61)


def numbered(sides: Sequence[tuple[str, str]]) -> list[Pair]:
    return [Pair(source, target, number) for number, (source, target) in enumerate(sides, start=1)]


def distinct(count: int) -> list[Pair]:
    return numbered([(f"phrase {i}", f"sentence {i}") for i in range(count)])


def same_sentences(pairs: list[Pair], held: HeldOut) -> set[str]:
    sides = {True: set(), False: set()}
    for pair, is_held in zip(pairs, held.mask.tolist(), strict=True):
        sides[is_held] |= {fold(pair.source), fold(pair.target)}
    return sides[True] & sides[False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Bonjour, le monde !", "bonjour le  monde"),
        ("STRASSE", "straße"),
        ("e\u0301te\u0301", "été"),
        ("e\u200d\u0301té", "été"),
        ("« Non »", "Non."),
        ("Don\u2019t\u00a0go\u2026", "Don't go"),
        ("co\u00adopération", "coopération"),
    ],
)
def test_case_punctuation_and_white_space_do_not_make_another_sentence(one: str, other: str) -> None:
    assert fold(one) == fold(other)
    assert sentence_hash(one) == sentence_hash(other)


@pytest.mark.parametrize(("one", "other"), [("la", "là"), ("की", "का"), ("1,5", "1,6"), ("a b", "b a"), ("?", "!")])
def test_letters_marks_and_numbers_make_another_sentence(one: str, other: str) -> None:
    assert sentence_hash(one) != sentence_hash(other)


@pytest.mark.parametrize("spelling", ["e-mail", "E mail", "e‑mail"])
def test_a_hyphen_a_space_and_nothing_are_the_same(spelling: str) -> None:
    assert sentence_hash(spelling) == sentence_hash("email")


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(PAIRS, st.integers(1, 17), st.integers(0, 5))
def test_no_sentence_of_either_side_is_on_both_sides(sides: list[tuple[str, str]], count: int, seed: int) -> None:
    pairs = numbered(sides)
    try:
        held = hold_out(pairs, count, seed)
    except DataError:
        return
    assert not same_sentences(pairs, held)
    assert 0 < len(held.indices) < len(pairs)


@given(st.lists(st.tuples(st.integers(0, 23), st.integers(20, 43)), min_size=1, max_size=53))
def test_families_are_what_joining_one_by_one_gives(edges: list[tuple[int, int]]) -> None:
    leaders = list(range(len(edges)))
    for later in range(len(edges)):
        for earlier in range(later):
            if set(edges[later]) & set(edges[earlier]):
                old, new = leaders[later], leaders[earlier]
                leaders = [min(old, new) if leader in (old, new) else leader for leader in leaders]
    hashes = np.array([source for source, _ in edges] + [target for _, target in edges], dtype=np.uint64)
    assert families_of(hashes).tolist() == leaders


def test_a_long_chain_of_shared_sentences_is_one_family() -> None:
    num_pairs = 4999
    names = np.random.default_rng(3).permutation(num_pairs + 1).astype(np.uint64)
    assert set(families_of(np.concatenate([names[:-1], names[1:]]))) == {0}


def test_the_split_is_a_function_of_the_seed() -> None:
    pairs = distinct(997)
    first, again, other = (hold_out(pairs, 31, seed).indices.tolist() for seed in (5, 5, 6))
    assert first == again != other
    assert len(first) == 31
    assert first == sorted(first)


def test_pairs_are_drawn_from_everywhere() -> None:
    indices = hold_out(distinct(9973), 499, seed=1).indices
    counts = np.histogram(indices, bins=5, range=(0, 9973))[0]
    assert counts.min() > 60


def test_a_small_corpus_keeps_most_of_its_pairs_to_learn_from() -> None:
    held = hold_out(distinct(53), 1000, seed=1)
    assert len(held.indices) == 5
    assert (
        held.remark
        == "held out 5 of 53 pairs where 1000 were wanted: no more than one pair in 10 is taken from training"
    )


def test_what_was_asked_for_needs_no_remark() -> None:
    assert hold_out(distinct(997), 31, seed=1).remark == ""


def test_small_families_are_preferred() -> None:
    crowd = [("le même", f"other {i}") for i in range(307)]
    singles = [(f"phrase {i}", f"sentence {i}") for i in range(103)]
    held = hold_out(numbered(crowd + singles), 41, seed=1)
    assert len(held.indices) == 41
    assert held.indices.min() >= len(crowd)
    assert held.num_families == 104


def test_pairs_that_lack_a_side_are_not_held_out() -> None:
    whole = [(f"phrase {i}", f"sentence {i}") for i in range(7)]
    held = hold_out(numbered([*whole, ("", ""), ("", "alone"), ("seul", "")]), 3, seed=1)
    assert held.indices.max() < len(whole)
    with pytest.raises(DataError, match="none of 3 pairs can be held out"):
        hold_out(numbered([("", ""), ("", "alone"), ("seul", "")]), 1, seed=1)


def test_families_larger_than_wanted_are_better_than_none() -> None:
    pairs = numbered([(f"phrase {i // 13}", f"sentence {i}") for i in range(13 * 7)])
    held = hold_out(pairs, 3, seed=1)
    assert len(held.indices) == 13
    assert "held out 13 of 91 pairs where 3 were wanted: pairs that share sentences stay together" in held.remark


def test_one_giant_family_beside_a_few_pairs_gives_those_and_says_so() -> None:
    sides = [("le même", f"other {i}") for i in range(601)] + [("seul", "alone")]
    held = hold_out(numbered(sides), 30, seed=1)
    assert held.indices.tolist() == [601]
    assert held.remark.endswith(
        "where 30 were wanted: pairs that share sentences stay together, and the next group is too large"
    )


def test_data_that_cannot_be_split_say_what_to_do() -> None:
    with pytest.raises(
        DataError, match=r"none of 29 pairs can be held out .* share sentences .*: give a validation set"
    ):
        hold_out(numbered([("le même", f"other {i}") for i in range(29)]), 3, seed=1)
    with pytest.raises(DataError, match="1 pairs are too few to hold some out for validation: give more, or a --valid"):
        hold_out(distinct(1), 1, seed=1)
