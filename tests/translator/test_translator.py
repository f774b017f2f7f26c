"""Text in, text out: the skeleton stays, sentences are translated once, and options are honoured."""

import itertools
import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_engine import fake_translator
from hypothesis import given
from hypothesis import strategies as st

from dragoman.engine.engine import DecodeOptions, Demand
from dragoman.errors import BundleError, ConfigError, LengthError
from dragoman.translator import Link, Sampling, Translation, load
from dragoman.translator.drafts import Scribe
from dragoman.translator.options import Settings
from dragoman.translator.prepare import prepare
from tiny_bundle import tiny_texts, tiny_tokenizer, write_tiny_bundle

BLANKS = " \t\u00a0\u202f\u3000"


def louder(text: str, options: DecodeOptions, demand: Demand) -> list[str]:
    """A translation that can be told from its source."""
    return [f"{text.upper()}!", f"{text.upper()}!!", f"{text.upper()}!!!"][: options.num_best]


def indents(text: str) -> list[tuple[str, str]]:
    """The blanks before and after each line."""
    lines = re.split(r"[\n\r\v\f\u2028\u2029]", text)
    return [(line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]) for line in lines]


# The skeleton


@given(st.text(alphabet=st.sampled_from("ab.!? \n\r\t\u00a0\u2028é"), max_size=60))
def test_line_ends_indentation_and_blank_lines_come_back(text: str) -> None:
    translator, _ = fake_translator(lambda *_: ["xyz."])
    translation = translator.translate(text, guards=False).text
    assert re.findall(r"[\n\r\t\u2028]", translation) == re.findall(r"[\n\r\t\u2028]", text)
    assert indents(translation) == indents(text)


@pytest.mark.parametrize("text", ["", " ", "\n", "\n\n  \n", "\t\r\n"])
def test_what_has_no_sentence_comes_back_as_it_is(text: str) -> None:
    translator, engine = fake_translator(louder)
    assert translator.translate(text) == Translation(text, 0.0, 1.0)
    assert all(not call.sources for call in engine.calls)


def test_sentences_of_a_paragraph_are_translated_one_by_one() -> None:
    translator, engine = fake_translator(louder)
    translation = translator.translate("  Baceba dila. Lame ni?\n\n- Poru gula.")
    assert translation.text == "  BACEBA DILA.! LAME NI?!\n\n- PORU GULA.!"
    assert [sentence.source for sentence in translation.sentences] == ["Baceba dila.", "Lame ni?", "Poru gula."]
    assert engine.calls[0].sources == ["Baceba dila.", "Lame ni?", "Poru gula."]


def test_splitting_can_be_switched_off() -> None:
    translator, engine = fake_translator(louder)
    assert translator.translate(" Baceba dila. Lame ni.", split_sentences=False).text == " BACEBA DILA. LAME NI.!"
    assert len(engine.calls[0].sources) == 1


def test_bytes_that_spell_a_line_end_do_not_break_the_line() -> None:
    tokenizer = tiny_tokenizer()
    one, two = tokenizer.ids_batch(["one", "two"])
    assert Scribe(tokenizer, "en").decode([*one, tokenizer.id("<0x0A>"), *two]) == "one two"


# Several at once


def test_a_list_gives_a_list_in_order() -> None:
    translator, _ = fake_translator(louder)
    texts = tiny_texts(31)
    assert [translation.text for translation in translator.translate(texts)] == [f"{text.upper()}!" for text in texts]
    assert translator.translate([]) == []


def test_a_sentence_that_occurs_often_is_translated_once() -> None:
    translator, engine = fake_translator(louder)
    translator.translate(["Dila.", "Lame. Dila.", "Dila."])
    assert engine.calls[0].sources == ["Dila.", "Lame."]


def test_equal_sentences_are_drawn_each_for_itself() -> None:
    translator, engine = fake_translator(louder)
    translator.translate(["Dila.", "Dila."], sampling=Sampling(seed=3))
    assert engine.calls[0].sources == ["Dila.", "Dila."]
    assert engine.calls[0].options.sampling == Sampling(seed=3)


def test_a_stream_is_in_order_and_reads_no_further_than_it_must() -> None:
    translator, _ = fake_translator(louder)
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield f"Lame dila {number}."

    stream = translator.stream(endless(), window_texts=7)
    first = [next(stream).text for _ in range(10)]
    assert first == [f"LAME DILA {number}.!" for number in range(10)]
    assert taken <= 28
    taken = 0
    typed = translator.stream(endless(), window_texts=1)
    assert (next(typed).text, taken) == ("LAME DILA 0.!", 1)
    finite = translator.stream(iter(["Dila.", "Lame.", "Ni."]), window_texts=2)
    assert [translation.text for translation in finite] == ["DILA.!", "LAME.!", "NI.!"]


# Scores


def test_confidence_is_the_geometric_mean_and_a_text_has_its_worst_sentence_s() -> None:
    translator, _ = fake_translator(lambda text, *_: [text, text] if "lame" in text.lower() else ["x y z"])
    one, two = translator.translate(["Lame.", "Lame. Dila."], guards=False)
    assert one.confidence == pytest.approx(math.exp(-0.1))
    assert one.score == one.sentences[0].score
    assert two.confidence == min(sentence.confidence for sentence in two.sentences)
    assert two.score == pytest.approx(sum(sentence.score for sentence in two.sentences) / 2)


def test_alternatives_are_other_versions_of_the_whole_text() -> None:
    translator, engine = fake_translator(louder)
    translation = translator.translate("Lame.\nDila.", alternatives=2)
    assert translation.text == "LAME.!\nDILA.!"
    assert translation.alternatives == ("LAME.!!\nDILA.!!", "LAME.!!!\nDILA.!!!")
    assert [one.text for one in translation.sentences[0].alternatives] == ["LAME.!!", "LAME.!!!"]
    assert engine.calls[0].options.num_best == 3


def test_the_beam_holds_the_alternatives() -> None:
    translator, engine = fake_translator(louder)
    translator.translate("Lame.", alternatives=6)
    assert engine.calls[-1].options.search.beam == 7
    translator.translate("Lame.", beam=9, length_penalty=1.5)
    assert engine.calls[-1].options.search.beam == 9
    assert engine.calls[-1].options.search.length_penalty == 1.5
    translator.translate("Lame.")
    assert engine.calls[-1].options.search.beam == 4


def test_the_same_text_from_other_pieces_is_no_alternative() -> None:
    translator, _ = fake_translator(lambda *_: ["same", "same", "", "other"])
    assert translator.translate("Lame.", alternatives=3).alternatives == ("other",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternatives": -1}, "alternatives is -1, expected at least 0"),
        ({"beam": 0}, "beam is 0, expected at least 1"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, int], message: str) -> None:
    translator, _ = fake_translator(louder)
    with pytest.raises(ConfigError, match=message):
        translator.translate("Lame.", **options)  # type: ignore[arg-type]


# Alignment


def test_words_are_linked_where_their_pieces_look() -> None:
    translator, _ = fake_translator(lambda text, *_: [text])
    (sentence,) = translator.translate("Lame dila gula.", align=True, guards=False).sentences
    assert [(link.source, link.target) for link in sentence.alignment] == [(0, 0), (1, 1), (2, 2)]
    assert all(link.weight == 1.0 for link in sentence.alignment)
    assert translator.translate("Lame dila gula.", guards=False).sentences[0].alignment == ()


def test_a_language_tag_is_no_word() -> None:
    languages = (("fr", "en"), ("en", "fr"))
    # With the tag in front, target piece t looks at source piece t - 1: the alignment must know.
    translator, engine = fake_translator(lambda text, *_: [text], languages=languages, tags=("en", "fr"))
    translation = translator.translate("La la la", target="fr", align=True, guards=False)
    tokenizer = engine.tokenizer
    assert engine.calls[0].ids[0][0] == tokenizer.language_id("fr")
    assert engine.calls[0].ids[0][-1] == tokenizer.end_id
    links = translation.sentences[0].alignment
    assert Link(0, 1, 1.0) in links
    assert Link(1, 2, 1.0) in links


# Languages


def test_the_first_direction_that_fits_is_taken() -> None:
    languages = (("fr", "en"), ("fr", "de"), ("en", "fr"))
    translator, _ = fake_translator(louder, languages=languages)
    assert translator.direction(None, None) == ("fr", "en")
    assert translator.direction(None, "de") == ("fr", "de")
    assert translator.direction("en", None) == ("en", "fr")
    with pytest.raises(ConfigError, match="this model does not translate from de to en: it knows fr-en, fr-de, en-fr"):
        translator.translate("Lame.", source="de", target="en")


# Long sentences


def test_a_long_sentence_is_cut_between_clauses_with_a_warning() -> None:
    translator, engine = fake_translator(lambda text, *_: [text.upper()], max_length=31)
    text = "Lame dila gula, " * 9 + "lame dila."
    translation = translator.translate(text, guards=False)
    assert translation.text == text.upper()
    assert max(len(ids) for ids in engine.calls[0].ids) <= 31
    assert len(translation.sentences) > 2
    (warning,) = translation.warnings
    pieces = len(translator._tokenizer.ids_batch([text])[0])
    parts = len(translation.sentences)
    assert warning == f"a sentence of {pieces} pieces was cut into {parts}, the model takes 30: {text[:40]!r}…"


def test_capitals_are_counted_as_the_model_reads_them() -> None:
    translator, engine = fake_translator(louder, max_length=13)
    assert translator.translate("TV OK, " * 40).text.count("!") > 1
    assert all(len(engine.tokenizer.ids_batch([source])[0]) < 13 for call in engine.calls for source in call.sources)


def test_strict_refuses_a_long_sentence() -> None:
    translator, engine = fake_translator(louder, max_length=13)
    with pytest.raises(LengthError, match=r"a sentence has \d+ pieces, the model takes at most 12: split it, or allow"):
        translator.translate(["Dila.", "Lame dila gula, " * 9], strict=True)
    assert engine.calls == []


def test_a_hundred_thousand_characters_lose_nothing() -> None:
    translator, _ = fake_translator(lambda text, *_: [text])
    text = "la" * 50_000
    assert translator.translate(text, guards=False).text == text


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("head", "unit"),
    [("", "A"), ("", "A@"), ("%", "0"), ("", "!"), ("a", " "), ("a –", " "), ("", ' "'), ("", ".)"), ("", "{"),
     ("", "\u0301"), ("a", "\x01"), ("", "A. ")],
)  # fmt: skip
def test_a_hundred_thousand_characters_of_any_kind_are_prepared_in_no_time(head: str, unit: str) -> None:
    text = head + (unit * 100_000)[:100_000] + "b"
    prepared = prepare([text], Scribe(tiny_tokenizer(()), "en"), "fr", 509, Settings())
    assert "".join(segment.text for segment in prepared.segments[0]) == text


# For real


def test_threads_share_a_translator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    translator = load(write_tiny_bundle(tmp_path / "model").path, compute_type="float32", workers=2)
    texts = tiny_texts(19)
    alone = [translator.translate(text, guards=False).text for text in texts]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda text: translator.translate(text, guards=False).text, texts))
    assert together == alone == [one.text for one in translator.translate(texts, guards=False)]
    assert (translator.engine_name, translator.compute_type) == ("ctranslate2", "float32")


def test_both_engines_translate_text_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    folder = write_tiny_bundle(tmp_path / "model", directions=("fr-en", "en-fr"), languages=("en", "fr")).path
    fast, reference = load(folder, compute_type="float32", workers=1), load(folder, engine="torch")
    for target in ("en", "fr"):
        first, second = (
            [(one.text, [s.alignment for s in one.sentences]) for one in each.translate(
                tiny_texts(7), target=target, align=True, guards=False)]
            for each in (fast, reference)
        )  # fmt: skip
        assert [text for text, _ in first] == [text for text, _ in second]
        for (_, ours), (_, theirs) in zip(first, second, strict=True):
            assert [[(link.source, link.target) for link in links] for links in ours] == [
                [(link.source, link.target) for link in links] for links in theirs
            ]


def test_a_model_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="there is no model at"):
        load(tmp_path / "none")
