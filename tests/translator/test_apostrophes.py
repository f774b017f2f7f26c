"""A sentence that lacks its apostrophes is translated as one that has them."""

from typing import Any

import pytest
from fake_engine import FakeEngine, fake_translator

from dragoman.bundle import Bundle, find
from dragoman.text.known_words import KnownWords
from dragoman.translator import Translation

KNOWN = KnownWords(contractions={"fr": {"jai": "j'ai", "daccord": "d'accord"}, "en": {"la": "l'a"}})


def translate(*texts: str, known: KnownWords | None = KNOWN, **options: Any) -> tuple[list[Translation], FakeEngine]:
    translator, engine = fake_translator(lambda text, options, demand: [f"x {text}"], known_words=known)
    return translator.translate(list(texts), **options), engine


def test_the_model_reads_apostrophes_and_what_was_written_is_shown() -> None:
    (found,), engine = translate("Daccord, jai la main", align=True)
    assert engine.calls[0].sources == ["D'accord, j'ai la main"]
    assert found.sentences[0].source == "Daccord, jai la main"
    assert {link.source for link in found.sentences[0].alignment} <= set(range(4))
    assert found.sentences[0].alignment


def test_what_is_shouted_gets_them_too() -> None:
    (found,), engine = translate("JAI FAIM")
    assert engine.calls[0].sources == ["J'ai faim"]
    assert (found.text, found.sentences[0].source) == ("X J'AI FAIM", "JAI FAIM")


def test_a_sentence_in_small_letters_is_not_answered_in_capitals() -> None:
    (found,), _ = translate("jai faim")
    assert found.text == "x j'ai faim"


@pytest.mark.parametrize(("known", "guards"), [(None, True), (KnownWords(), True), (KNOWN, False)])
def test_without_known_words_or_guards_it_is_read_as_it_is(known: KnownWords | None, guards: bool) -> None:
    _, engine = translate("jai faim", known=known, guards=guards)
    assert engine.calls[0].sources == ["jai faim"]


def test_the_models_in_the_box_know_those_of_both_languages() -> None:
    for name in ("fr-en", "en-fr"):
        known = Bundle.open(find(name)).known_words
        assert known is not None
        assert [known.contractions["fr"].get(word) for word in ("cest", "lecole", "la")] == ["c'est", None, None]
        assert [known.contractions["en"].get(word) for word in ("dont", "its", "were")] == ["don't", None, None]
