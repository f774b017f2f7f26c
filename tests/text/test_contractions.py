"""Apostrophes are put where texts nearly always have them, and nowhere else."""

import pytest

from dragoman.text.contractions import learn_contractions, with_apostrophes

TEXTS = [
    *["I don't know, I’m new."] * 10,
    *["Don't ask: it's late."] * 10,
    *["Its tail is long."] * 3,
    *["We're sure they were here."] * 10,
    *["You mustn't, mustn't, mustn't."] * 9,
    *["the cat's tail, 'quoted' at 5 o'clock"] * 10,
]
ENGLISH = {"dont": "don't", "im": "i'm", "cats": "cat's", "oclock": "o'clock"}


def test_what_is_next_to_never_met_without_an_apostrophe_is_learned() -> None:
    # its and were are words of their own, and mustn't is in too few sentences.
    assert learn_contractions(TEXTS) == ENGLISH
    assert learn_contractions(TEXTS * 20 + ["cats dont"]) == {**ENGLISH, "mustnt": "mustn't"}
    assert learn_contractions(["don't"] * 10 + ["dont"]) == {}
    assert learn_contractions([]) == {}


def test_of_two_words_that_are_the_same_without_the_commoner_is_learned() -> None:
    assert learn_contractions(["m'en"] * 10 + ["me'n"] * 11) == {"men": "me'n"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i dont know", "i don't know"),
        ("Dont ask, Im “dont”. Oclock!", "Don't ask, I'm “don't”. O'clock!"),
        ("dont-know Dont.", "don't-know Don't."),
    ],
)
def test_what_lacks_an_apostrophe_gets_it(text: str, expected: str) -> None:
    assert with_apostrophes(text, ENGLISH) == expected


@pytest.mark.parametrize(
    "text",
    ["I don't know", "IM, IVE", "www.dont.com", "dont.com", "dont@im.net", "@im #im {im} im/im", "shoo-im", "im's"],
)
def test_other_words_stay(text: str) -> None:
    assert with_apostrophes(text, ENGLISH) == text


def test_several_apostrophes_and_letters_whose_small_form_is_longer() -> None:
    assert with_apostrophes("Daujourdhui, İm", {"daujourdhui": "d'aujourd'hui", "i̇m": "i̇'m"}) == "D'aujourd'hui, İm"
