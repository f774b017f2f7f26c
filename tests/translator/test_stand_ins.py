"""Names that a model has never met come through: others stand in for them."""

from collections.abc import Mapping

import pytest
from fake_engine import fake_translator

from dragoman.text.known_words import KnownWords

KNOWN = KnownWords.collect([("Où habite Tom, Ada ? vois et le", "Where does Tom live, Ada? I see and the")] * 20)
GARBLED = "Where does Oyan live?"
RIGHT = "Where does Tom live?"


def translate(
    text: str,
    answers: Mapping[str, str],
    *,
    known: KnownWords = KNOWN,
    doubted: tuple[str, ...] = (GARBLED,),
    languages: tuple[tuple[str, str], ...] = (("fr", "en"),),
) -> tuple[str, tuple[str, ...], int]:
    """The translation, its warnings, and how often the engine was called."""
    translator, engine = fake_translator(
        lambda source, options, demand: [answers.get(source, GARBLED)] * options.num_best,
        known_words=known,
        doubted=doubted,
        languages=languages,
    )
    found = translator.translate(text)
    return found.text, found.warnings, len(engine.calls)


def test_a_name_is_put_where_its_stand_in_came_out() -> None:
    answers = {"Où habite Tom ?": RIGHT}
    assert translate("Où habite Oyelaran ?", answers) == ("Where does Oyelaran live?", (), 2)


def test_several_names_have_several_stand_ins_none_of_which_is_in_the_sentence() -> None:
    answers = {"Tom, vois Ada et Eve": "Tom, see Ada and Eve"}
    known = KNOWN | KnownWords((), ("Eve",))
    text, warnings, _ = translate("Tom, vois Arvid et Xiulan", answers, known=known)
    assert (text, warnings) == ("Tom, see Arvid and Xiulan", ())
    # Not enough to stand in for all.
    text, warnings, _ = translate("Tom, vois Arvid et Xiulan", answers)
    assert text == GARBLED
    assert warnings == ("Arvid is missing in the translation", "Xiulan is missing in the translation")


def test_the_same_name_twice_has_one_stand_in() -> None:
    assert translate("Où habite Arvid, Arvid ?", {"Où habite Tom, Tom ?": "Tom, where do you live?"})[:2] == (
        "Arvid, where do you live?",
        (),
    )


@pytest.mark.parametrize(
    ("answer", "doubted"),
    [("Where does he live?", (GARBLED,)), (RIGHT, ()), (RIGHT, (GARBLED, RIGHT))],
    ids=["the stand-in is lost", "as sure without it", "no surer with it"],
)
def test_what_does_not_help_is_not_taken(answer: str, doubted: tuple[str, ...]) -> None:
    text, warnings, _ = translate("Où habite Oyelaran ?", {"Où habite Tom ?": answer}, doubted=doubted)
    assert (text, warnings) == (GARBLED, ("Oyelaran is missing in the translation",))


def test_a_name_that_came_through_is_left_alone() -> None:
    right = "Where does Oyelaran live?"
    assert translate("Où habite Oyelaran ?", {"Où habite Oyelaran ?": right}) == (right, (), 1)


def test_a_first_word_may_be_no_name_so_there_the_model_must_be_sure() -> None:
    sure, unsure = "Tom lives where?", "Tom the meat."
    assert translate("Oyelaran habite où ?", {"Tom habite où ?": sure})[:2] == ("Oyelaran lives where?", ())
    # Half as much doubt as in what the model made of the word itself, but doubt.
    text, warnings, _ = translate(
        "Coupe le vois", {"Tom le vois": unsure}, doubted=(GARBLED, unsure), languages=(("fr", "en"),)
    )
    assert (text, warnings) == (GARBLED, ())


def test_in_german_a_capital_does_not_tell_a_name() -> None:
    assert translate("Où habite Oyelaran ?", {"Où habite Tom ?": RIGHT}, languages=(("de", "en"),))[0] == GARBLED


def test_without_known_words_there_are_no_names() -> None:
    assert translate("Où habite Oyelaran ?", {"Où habite Tom ?": RIGHT}, known=KnownWords()) == (GARBLED, (), 1)


def test_the_alignment_is_of_the_sentence_with_its_name() -> None:
    translator, _ = fake_translator(
        lambda source, options, demand: [RIGHT if "Tom" in source else GARBLED], known_words=KNOWN, doubted=(GARBLED,)
    )
    found = translator.translate("Où habite Oyelaran ?", align=True)
    assert found.text == "Where does Oyelaran live?"
    assert found.sentences[0].alignment
