"""A word by itself is looked up."""

from typing import Any

import pytest
from fake_engine import FakeEngine, fake_translator

from dragoman.text.known_words import KnownWords
from dragoman.translator import Glossary, Sampling, Translation
from dragoman.translator.glossary import Term

KNOWN = KnownWords(
    lexicons={
        "fr-en": {
            "papillons": ("butterflies", "moths"),
            "arc-en-ciel": ("rainbow",),
            "été": ("summer",),
            "or": ("gold",),
            "t": ("not",),
        }
    }
)
ANSWERS = {"papillons": "let's butter", "Papillons": "Let us"}


def translate(
    text: str, doubts: dict[str, float] | None = None, answer: str = "", known: KnownWords = KNOWN, **options: Any
) -> tuple[Translation, FakeEngine]:
    translator, engine = fake_translator(
        lambda source, decode, demand: [answer or ANSWERS.get(source, "plain"), "other"][: decode.num_best],
        doubts=doubts,
        known_words=known,
        tags=("en", "de"),
        languages=(("fr", "en"), ("fr", "de")),
    )
    return translator.translate(text, **options), engine


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("papillons", "butterflies"),
        ("Papillons", "Butterflies"),
        ("PAPILLONS", "BUTTERFLIES"),
        (" papillons\n", " butterflies\n"),
        ("Arc-en-ciel", "Rainbow"),
        ("e\u0301te\u0301", "summer"),
        ("OR", "plain"),
        ("T", "plain"),
    ],
)
def test_a_word_is_what_the_lexicon_says(text: str, wanted: str) -> None:
    assert translate(text)[0].text == wanted


def test_score_confidence_and_alignment_are_the_models() -> None:
    found, engine = translate("papillons", {"butterflies": 0.7}, align=True, alternatives=1)
    assert found.confidence == pytest.approx(0.497, abs=0.001)
    assert found.score < 0
    assert found.alternatives == ("other",)
    ((_, target),) = engine.attended
    assert engine.tokenizer.decode(target) == "butterflies"


@pytest.mark.parametrize(
    ("answer", "doubt", "wanted"),
    [
        ("moths", 2.0, "moths"),
        ("Moths.", 2.0, "Moths."),
        ("the moths", 0.3, "the moths"),
        ("the moths", 1.0, "butterflies"),
        ("she has moths", 0.3, "butterflies"),
        ("the white moths", 0.1, "the white moths"),
    ],
)
def test_what_the_model_knows_is_kept(answer: str, doubt: float, wanted: str) -> None:
    assert translate("papillons", {answer: doubt}, answer)[0].text == wanted


def test_what_the_model_thinks_impossible_is_not_taken() -> None:
    assert translate("papillons", {"butterflies": 7.0})[0].text == "let's butter"


def test_only_single_words_of_this_direction_are_looked_up() -> None:
    assert translate("papillons papillons")[0].text == "plain"
    assert translate("papillons", target="de")[0].text == "let's butter"
    assert translate("papillons", guards=False)[0].text == "let's butter"
    assert translate("papillons", sampling=Sampling(seed=1))[0].text == "let's butter"
    assert translate("papillons", known=KnownWords())[0].text == "let's butter"
    glossary = Glossary((Term("papillons", "butter"),))
    assert translate("papillons", glossary=glossary)[0].text == "let's butter"
