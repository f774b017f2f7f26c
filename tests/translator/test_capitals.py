"""Shouting is read in small letters and answered in capitals."""

import pytest
from fake_engine import fake_translator

from dragoman.translator.capitals import calm, is_shouted


@pytest.mark.parametrize("text", ["JE SUIS ÉTUDIANT.", "BONJOUR", "QUOI ?! IL N'A PAS 17 ANS…"])
def test_capitals_throughout_are_shouting(text: str) -> None:
    assert is_shouted(text)


@pytest.mark.parametrize("text", ["USA", "17", "", "!", "Je suis à l'ONU.", "IBM 5150"])
def test_abbreviations_and_mixed_case_are_not(text: str) -> None:
    assert not is_shouted(text)


def test_a_calm_sentence_begins_with_a_capital() -> None:
    assert calm("« ÇA VA ? »") == "« Ça va ? »"
    assert calm("17 !") == "17 !"


def test_a_shouted_sentence_is_translated_in_small_letters_and_answered_in_capitals() -> None:
    translator, engine = fake_translator(lambda text, options, demand: [f"x{text}y", f"z{text}"])
    translation = translator.translate("DIFO LAME!\nDifo lame!", alternatives=1, align=True)
    assert engine.calls[0].sources == ["Difo lame!", "Difo lame!"]
    assert translation.text == "XDIFO LAME!Y\nxDifo lame!y"
    first, second = translation.sentences
    assert first.source == "DIFO LAME!"
    assert [one.text for one in first.alternatives] == ["ZDIFO LAME!"]
    assert first.alignment == second.alignment != ()


def test_capitals_stay_where_something_must_be_copied() -> None:
    translator, engine = fake_translator(lambda text, options, demand: [text])
    translator.translate("SALUT {NAME} ET BONNE JOURNÉE!")
    assert engine.calls[0].sources == ["SALUT {NAME} ET BONNE JOURNÉE!"]
