"""Each change does what a careless writer does, to the source alone or to both sides, and nothing else."""

import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.dataset import PairText
from dragoman.text.variation import (
    CHANGES,
    made_up_name,
    other_apostrophes,
    other_name,
    other_number,
    vary,
    without_accents,
    without_capitals,
    without_full_stop,
)

PAIR = PairText("L'élève Koro a lu 17 livres à Nantes !", "The pupil Koro read 17 books in Nantes!")
texts = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1).map(str.strip).filter(bool)


def draw(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_full_stop_goes_on_both_sides() -> None:
    assert without_full_stop(PAIR, draw()) == (PAIR.source[:-2], PAIR.target[:-1])
    assert without_full_stop(PairText("Viens ici", "Come here."), draw()) is None


def test_capitals_accents_and_apostrophes_change_in_the_source_alone() -> None:
    assert without_capitals(PAIR, draw()) == ("l'élève koro a lu 17 livres à nantes !", PAIR.target)
    assert without_accents(PAIR, draw()) == ("L'eleve Koro a lu 17 livres a Nantes !", PAIR.target)
    assert other_apostrophes(PAIR, draw()) == ("L’élève Koro a lu 17 livres à Nantes !", PAIR.target)
    other_scripts = PairText("が й हिन्दी", "x")
    assert without_accents(other_scripts, draw()) is None
    plain = PairText("oui", "yes")
    assert [change(plain, draw()) for change in (without_capitals, without_accents, other_apostrophes)] == [None] * 3


def test_a_number_or_a_name_that_both_sides_have_becomes_another_on_both() -> None:
    for seed in range(23):
        number = other_number(PAIR, draw(seed))
        assert number is not None
        new = "".join(filter(str.isdigit, number.source))
        assert number == tuple(side.replace("17", new) for side in PAIR)
        name = other_name(PAIR, draw(seed))
        assert name is not None
        changed = [old for old in ("Koro", "Nantes") if old not in name.source]
        assert len(changed) == 1
        assert changed[0] not in name.target


def test_what_only_one_side_has_or_one_has_twice_is_left_alone() -> None:
    assert other_number(PairText("Il a 3 ans.", "He is three."), draw()) is None
    assert other_number(PairText("3 et 3", "3"), draw()) is None
    assert other_name(PairText("Londres est belle.", "London is beautiful."), draw()) is None


def test_names_are_made_up_in_great_number_and_can_be_written_anywhere() -> None:
    rng = draw()
    names = {made_up_name(rng) for _ in range(997)}
    assert len(names) > 900
    assert all(name.isascii() and name.isalpha() and name.istitle() for name in names)


@given(texts, texts, st.integers(0, 10**6))
def test_any_pair_keeps_two_sides_and_the_same_seed_repeats_the_change(source: str, target: str, seed: int) -> None:
    pair = PairText(unicodedata.normalize("NFC", source), unicodedata.normalize("NFC", target))
    varied = vary(pair, draw(seed))
    assert varied.source
    assert varied.target
    assert vary(pair, draw(seed)) == varied


def test_every_kind_of_change_is_met() -> None:
    met = {vary(PAIR, draw(seed)) for seed in range(211)}
    for change in CHANGES[:4]:
        assert change(PAIR, draw()) in met
    assert len(met) > 100
