"""Names that are new to a model, and long numbers, come through: others stand in for them."""

from collections.abc import Mapping

import pytest
from fake_engine import FakeEngine, fake_translator

from dragoman.serve.glossaries import ClientGlossary
from dragoman.text.known_words import KnownWords
from dragoman.translator import Glossary, Translation
from dragoman.translator.glossary import Term

KNOWN = KnownWords.collect(
    [("Où habite Tom ? vois et le a dit", "Where does Tom live? I see and the has")] * 30
    + [("Ada et un mouton de nuit, que l'on", "Ada")] * 3
    + [("Ada", "Ada")] * 20
)
GARBLED = "Where does Oyan live?"
RIGHT = "Where does Tom live?"
DOUBTS = {GARBLED: 1.0}


def translate(
    text: str,
    answers: Mapping[str, str],
    *,
    known: KnownWords = KNOWN,
    doubts: Mapping[str, float] = DOUBTS,
    language: str = "fr",
    max_length: int = 61,
    glossary: Glossary | None = None,
) -> tuple[Translation, FakeEngine]:
    """The translation and the engine, which answers all that it has no answer for with `GARBLED`."""
    translator, engine = fake_translator(
        lambda source, options, demand: [answers.get(source, GARBLED)] * options.num_best,
        known_words=known,
        doubts=doubts,
        languages=((language, "en"),),
        max_length=max_length,
    )
    return translator.translate(text, align=True, glossary=glossary), engine


def told(text: str, answers: Mapping[str, str], **options: object) -> tuple[str, tuple[str, ...]]:
    found, _ = translate(text, answers, **options)  # type: ignore[arg-type]
    return found.text, found.warnings


def test_the_names_are_in_order() -> None:
    assert KNOWN.stand_ins == ("Tom", "Ada")


def test_a_name_is_put_where_its_stand_in_came_out() -> None:
    found, engine = translate("Où habite Oyelaran ?", {"Où habite Tom ?": RIGHT})
    assert (found.text, found.warnings) == ("Where does Oyelaran live?", ())
    assert len(engine.calls) == 2
    assert found.confidence == pytest.approx(0.905, abs=0.001)
    # The alignment is of the sentence with its name.
    ((source, target),) = engine.attended
    assert engine.tokenizer.decode(source) == "Où habite Oyelaran ?"
    assert engine.tokenizer.decode(target) == "Where does Oyelaran live?"


def test_several_names_have_several_stand_ins_none_of_which_is_in_the_sentence() -> None:
    answers = {"Tom, vois Ada et Eve": "Tom, see Ada and Eve"}
    known = KNOWN | KnownWords((), ("Eve",))
    assert told("Tom, vois Arvid et Xiulan", answers, known=known) == ("Tom, see Arvid and Xiulan", ())
    # Not enough to stand in for all.
    warnings = ("Arvid is missing in the translation", "Xiulan is missing in the translation")
    assert told("Tom, vois Arvid et Xiulan", answers) == (GARBLED, warnings)


def test_the_same_name_twice_has_one_stand_in_and_a_longer_name_its_own() -> None:
    answers = {"Où habite Tom, Tom ?": "Tom, where?", "vois Tom et Ada": "see Tom and Ada"}
    assert told("Où habite Arvid, Arvid ?", answers) == ("Arvid, where?", ())
    assert told("vois Arvid et Arvid Oyelaran", answers) == ("see Arvid and Arvid Oyelaran", ())


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [("Where does he live?", 0.1), (RIGHT, 1.3)],
    ids=["the stand-in is lost", "far less sure"],
)
def test_what_does_not_help_is_not_taken(answer: str, doubt: float) -> None:
    doubts = {**DOUBTS, answer: doubt}
    warnings = ("Oyelaran is missing in the translation",)
    assert told("Où habite Oyelaran ?", {"Où habite Tom ?": answer}, doubts=doubts) == (GARBLED, warnings)


def test_about_as_sure_is_enough_for_a_name_that_is_certain() -> None:
    doubts = {**DOUBTS, RIGHT: 1.1}
    assert told("Où habite Oyelaran ?", {"Où habite Tom ?": RIGHT}, doubts=doubts) == ("Where does Oyelaran live?", ())
    text = "Where does Tom live?"
    assert told("Oyelaran habite où ?", {"Tom habite où ?": text}, doubts=doubts) == (GARBLED, ())


def test_a_name_that_came_through_is_left_alone() -> None:
    right = "Where does Oyelaran live?"
    found, engine = translate("Où habite Oyelaran ?", {"Où habite Oyelaran ?": right})
    assert (found.text, found.warnings, len(engine.calls)) == (right, (), 1)


def test_a_name_with_an_ending_is_no_reason_for_a_warning() -> None:
    inflected = "Where does Oyelaranin live?"
    assert told("Où habite Oyelaran ?", {"Où habite Oyelaran ?": inflected}) == (inflected, ())


@pytest.mark.parametrize("head", ["", "Tom a dit : « ", "(« "])
def test_a_first_word_may_be_no_name_so_there_the_model_must_be_sure(head: str) -> None:
    answers = {f"{head}{'Ada' if 'Tom' in head else 'Tom'} le vois": "Ada Tom the meat."}
    doubts = {**DOUBTS, "Ada Tom the meat.": 0.3}
    assert told(f"{head}Coupe le vois", answers, doubts=doubts)[0] != GARBLED
    # Surer than of what it made of the word itself, but not sure.
    assert told(f"{head}Coupe le vois", answers, doubts={**doubts, "Ada Tom the meat.": 0.5}) == (GARBLED, ())


def test_a_missing_number_is_not_traded_for_a_name() -> None:
    whole = "Oyan has 3417 sheep"
    answers = {"vois Oyelaran a 3417": whole, "vois Tom a 3417": "Tom has 317 sheep"}
    assert told("vois Oyelaran a 3417", answers, doubts={whole: 1.0})[0] == whole


@pytest.mark.parametrize("known", [KNOWN, KnownWords()], ids=["known words", "none"])
def test_a_number_that_was_lost_is_put_where_a_year_came_out(known: KnownWords) -> None:
    answers = {"le mouton a 1847 et 25": "The sheep has 184747 and 25", "le mouton a 1985 et 25": "Its 1985 and 25"}
    assert told("le mouton a 1847 et 25", answers, known=known) == ("Its 1847 and 25", ())
    answers = {"vois 1985 : 31415, 8 et 2718": "1985, 8", "vois 1985 : 2013, 8 et 1976": "See 1985: 2013, 8, 1976."}
    assert told("vois 1985 : 31415, 8 et 2718", answers, known=known) == ("See 1985: 31415, 8, 2718.", ())


@pytest.mark.parametrize(("number", "back"), [("34,5", "34,5"), ("12 417", "12417"), ("1.234.567,50", "1234567,50")])
def test_decimals_keep_their_mark_and_groups_are_joined(number: str, back: str) -> None:
    answers = {f"le mouton a {number}": "The sheep has 29", "le mouton a 1985": "Its 1985"}
    assert told(f"le mouton a {number}", answers) == (f"Its {back}", ())


def test_names_and_numbers_that_are_lost_together_come_back_together() -> None:
    answers = {"vois Tom a 1985": "See, Tom has 1985"}
    assert told("vois Oyelaran a 3417", answers) == ("See, Oyelaran has 3417", ())


@pytest.mark.parametrize("number", ["7", "3,417"])
def test_small_numbers_and_those_that_mean_another_elsewhere_have_no_stand_in(number: str) -> None:
    found, engine = translate(f"le mouton a {number}", {f"le mouton a {number}": "The sheep has 29"})
    assert found.text == "The sheep has 29"
    assert not any("1985" in source for call in engine.calls for source in call.sources)


def test_a_number_whose_stand_in_is_written_out_stays_missing() -> None:
    answers = {"vois 1847": "184747", "vois 1985": "nineteen eighty-five"}
    assert told("vois 1847", answers) == ("184747", ("the number 1847 is missing in the translation",))


@pytest.mark.parametrize("kind", [Glossary, ClientGlossary])
def test_what_the_glossary_says_is_no_name_to_keep(kind: type[Glossary]) -> None:
    glossary = kind([Term("Oyelaran", "Ojelaran")])
    right = "Where does Ojelaran live?"
    assert told("Où habite Oyelaran ?", {"Où habite Oyelaran ?": right}, glossary=glossary) == (right, ())


def test_a_sentence_that_a_stand_in_makes_too_long_is_left_as_it_is() -> None:
    known = KnownWords(KNOWN.filters, ("Q" * 31,))
    found, engine = translate("Où habite Xu ?", {}, known=known, max_length=23)
    assert (found.text, found.warnings) == (GARBLED, ("Xu is missing in the translation",))
    assert len(engine.calls) == 1


@pytest.mark.parametrize("language", ["de", "de_AT", "deu", "lb"])
def test_in_german_a_capital_does_not_tell_a_name(language: str) -> None:
    assert told("Où habite Oyelaran ?", {"Où habite Tom ?": RIGHT}, language=language) == (GARBLED, ())


def test_without_known_words_there_are_no_names() -> None:
    assert told("Où habite Oyelaran ?", {"Où habite Tom ?": RIGHT}, known=KnownWords()) == (GARBLED, ())
