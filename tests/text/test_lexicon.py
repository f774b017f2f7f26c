"""Which words stand for which, learned from sentences alone."""

import itertools
import random

import pytest

from dragoman.text.lexicon import learn_lexicon, split_words

NOUNS = {"chien": "dog", "chat": "cat", "lundi": "Monday", "eau": "water", "œuf": "egg", "zébu": "zebu"}
VERBS = {"mange": "eats", "voit": "sees", "veut": "wants"}
ADVERBS = {"bien": "well", "vite": "fast", "encore": "again"}


def article(noun: str) -> str:
    return "l'" if noun[0] in "aeéœ" else "le "


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    """Every sentence of the form: the noun verb the noun adverb; French has the adverb before the object."""
    made = [
        (
            f"{article(one).capitalize()}{one} {verb} {adverb} {article(other)}{other} .",
            f"The {NOUNS[one]} {VERBS[verb]} the {NOUNS[other]} {ADVERBS[adverb]} .",
        )
        for one, verb, other, adverb in itertools.product(NOUNS, VERBS, NOUNS, ADVERBS)
        if one != other
    ]
    random.Random(1).shuffle(made)
    return made


def test_words_find_each_other_wherever_they_stand(pairs: list[tuple[str, str]]) -> None:
    there, back = learn_lexicon(pairs)
    for source, target in (NOUNS | VERBS | ADVERBS).items():
        assert there[source] == (target,)
        assert back[target.lower()] == (source,)


def test_a_word_may_have_several_translations_the_usual_first(pairs: list[tuple[str, str]]) -> None:
    draw = random.Random(2)
    mixed = [(source, target.replace("dog", "hound") if draw.random() < 0.3 else target) for source, target in pairs]
    there, back = learn_lexicon(mixed)
    assert there["chien"] == ("dog", "hound")
    assert (back["dog"], back["hound"]) == (("chien",), ("chien",))


def test_a_word_that_belongs_to_another_comes_with_it(pairs: list[tuple[str, str]]) -> None:
    more = [(source.replace("vite", "quelqu'un"), target.replace("fast", "right away")) for source, target in pairs]
    there, back = learn_lexicon(more)
    assert back["away"] == ("quelqu'un",)
    assert there["un"] == ("right away",)
    assert there["encore"] == ("again",)


def test_a_word_that_wants_another_comes_after_one_that_stands_alone(pairs: list[tuple[str, str]]) -> None:
    nouns = list(NOUNS) * 60
    said = ["thank you" if at % 5 > 1 else "thanks" for at in range(len(nouns))]
    articles = ["the", "a"] * (len(nouns) // 2)
    polite = [
        (f"merci {noun}", f"{one} {article} {NOUNS[noun]}")
        for noun, one, article in zip(nouns, said, articles, strict=True)
    ]
    asked = [(f"toi {source}", f"you {target}") for source, target in pairs]
    found = learn_lexicon(polite + asked)[0]["merci"]
    assert (found[0], found[-1]) == ("thanks", "thank")


def test_what_is_rare_or_says_nothing_has_no_entry(pairs: list[tuple[str, str]]) -> None:
    there, _ = learn_lexicon([*pairs, ("un gnou", "a gnu"), ("un gnou", "a gnu"), ("", "x"), ("y" * 3, "")])
    assert "gnou" not in there
    assert learn_lexicon([]) == ({}, {})
    assert learn_lexicon([("..", "!?")] * 9) == ({}, {})
    too_long = " ".join(f"w{'abcdefghij'[at % 10]}" for at in range(41))
    assert learn_lexicon([(too_long, too_long)] * 9) == ({}, {})


def test_more_pairs_than_fit_are_left_out(pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.text.lexicon._MOST_CELLS", 7 * 7 * 201)
    some, all_pairs = learn_lexicon(pairs[:201]), iter(pairs)
    assert learn_lexicon(all_pairs) == some
    assert len(list(all_pairs)) == len(pairs) - 202


def test_words_are_split_at_elisions() -> None:
    assert split_words("L’œuf d'Anne-Marie, 12 fois !") == ["L'", "œuf", "d'", "Anne-Marie", "fois"]
    assert split_words("qu'il dit aujourd'hui") == ["qu'", "il", "dit", "aujourd'hui"]
    assert split_words("I don't see Tom's cats' tails") == ["I", "don't", "see", "Tom's", "cats", "tails"]


def test_words_of_scripts_with_marks_are_whole() -> None:
    assert split_words("किताब पढ़ना, ไทย") == ["किताब", "पढ़ना", "ไทย"]


def test_letters_have_no_entry() -> None:
    there, _ = learn_lexicon([("m a", "b c"), ("m x", "b d"), ("m y", "b e")] * 5)
    assert there == {}
