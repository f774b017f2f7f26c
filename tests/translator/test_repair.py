"""What goes wrong is noticed, decoded again another way, and told if it stays."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_engine import fake_translator

from dragoman.engine.engine import DecodeOptions, Demand
from dragoman.translator import Glossary, Sampling, Term, load
from dragoman.translator.glossary import is_used
from tiny_bundle import tiny_texts, write_tiny_bundle

LOOP = "so so so so so so so so so"


def way(options: DecodeOptions, demand: Demand) -> str:
    """The name of the way that an engine is asked to go."""
    if demand.must:
        return "constrained"
    if options.sampling is not None:
        return "sampled"
    if options.search.no_repeat_ngram:
        return "without repeats"
    return "another hypothesis" if options.num_best > 1 else "first"


def by_way(answers: dict[str, Sequence[str]], default: str):  # type: ignore[no-untyped-def]
    def answer(text: str, options: DecodeOptions, demand: Demand) -> Sequence[str]:
        return answers.get(way(options, demand), [default])

    return answer


# Suspicions


@pytest.mark.parametrize("bad", [LOOP, "", "la maison est grande", "aa " * 60, "Cut off in the middle…"])
@pytest.mark.parametrize("right_way", ["another hypothesis", "without repeats", "sampled"])
def test_a_bad_translation_is_replaced_by_the_first_good_one(bad: str, right_way: str) -> None:
    answer = by_way({right_way: [bad, "The house is big."]}, bad)
    translator, engine = fake_translator(answer)
    translation = translator.translate("la maison est grande")
    assert translation.text == "The house is big."
    assert translation.warnings == ()
    ways = [way(call.options, call.demands[0]) for call in engine.calls]
    assert ways[-1] == right_way


@pytest.mark.parametrize(
    ("bad", "warning"),
    [
        (LOOP, "the translation repeats itself"),
        ("", "nothing was written"),
        ("la maison est grande", "the source was copied, not translated"),
        (
            "once upon a time " + "there was a very long story that nobody had asked for at all, " * 2,
            "far longer or shorter",
        ),
        ("The house…", "the translation was cut off after"),
    ],
)
def test_what_stays_wrong_is_told(bad: str, warning: str) -> None:
    translator, _ = fake_translator(lambda *_: [bad])
    translation = translator.translate("la maison est grande")
    assert any(warning in one for one in translation.warnings)
    assert translation.text == bad.removesuffix("…").strip()


def test_a_good_translation_is_decoded_once_and_kept() -> None:
    translator, engine = fake_translator(lambda *_: ["The house is big.", "Better?"])
    assert translator.translate("la maison est grande").text == "The house is big."
    assert len(engine.calls) == 1


def test_only_the_bad_sentences_are_decoded_again() -> None:
    translator, engine = fake_translator(lambda text, *_: [LOOP if "grande" in text else "Fine."])
    translator.translate(["la maison est grande", "le chat dort"])
    assert len(engine.calls) > 3
    assert not any("le chat dort" in call.sources for call in engine.calls[1:])


def test_guards_can_be_switched_off() -> None:
    translator, engine = fake_translator(lambda *_: [LOOP])
    translation = translator.translate("la maison est grande", guards=False)
    assert (translation.text, translation.warnings, len(engine.calls)) == (LOOP, (), 1)


def test_a_sample_is_looked_at_but_not_replaced() -> None:
    translator, engine = fake_translator(lambda *_: [LOOP])
    translation = translator.translate("la maison est grande", sampling=Sampling())
    assert translation.warnings == ("the translation repeats itself",)
    assert len(engine.calls) == 1


def test_a_long_sentence_that_is_cut_off_is_translated_in_halves() -> None:
    whole = "Lame dila gula, lame dila gula"

    def answer(text: str, options: DecodeOptions, demand: Demand) -> list[str]:
        return ["only the beginning…"] if text == whole else [{"L": "One two three,", "l": "four five six"}[text[0]]]

    translator, _ = fake_translator(answer)
    translation = translator.translate(whole)
    assert translation.text == "One two three, four five six"
    assert translation.warnings == ("translated in 2 parts, put together again",)


def test_alternatives_stay_when_the_best_is_replaced() -> None:
    answer = by_way({"another hypothesis": [LOOP, "The house is big.", "A big house."]}, LOOP)
    translator, _ = fake_translator(answer)
    translation = translator.translate("la maison est grande", alternatives=2)
    assert translation.text == "The house is big."


def test_alternatives_that_lack_something_are_left_out() -> None:
    found = ["Hello {name}, it is 57.", "Hello.", "Hello {name}, it is 75.", "Hi {name}, it is 57."]
    translator, _ = fake_translator(lambda *_: found)
    translation = translator.translate("Bonjour {name}, il est 57.", alternatives=3)
    assert (translation.text, translation.alternatives) == (found[0], (found[3],))
    assert len(translator.translate("Bonjour {name}, il est 57.", alternatives=3, guards=False).alternatives) == 3


# What must be carried over


def test_a_number_that_got_lost_is_looked_for_in_other_hypotheses_first() -> None:
    answer = by_way({"another hypothesis": ["He has cows.", "He has 57 cows."]}, "He has cows.")
    translator, engine = fake_translator(answer)
    translation = translator.translate("il a 57 vaches")
    assert (translation.text, translation.warnings) == ("He has 57 cows.", ())
    assert len(engine.calls) == 2


def test_a_number_that_no_hypothesis_has_is_demanded() -> None:
    translator, engine = fake_translator(by_way({"constrained": ["He has 57 cows."]}, "He has cows."))
    assert translator.translate("il a 57 vaches").text == "He has 57 cows."
    (demand,) = engine.calls[-1].demands
    assert demand.must == (tuple(translator._tokenizer.ids_batch(["57"])[0]),)


def test_an_engine_that_cannot_be_told_what_must_appear_leaves_a_warning() -> None:
    translator, engine = fake_translator(lambda *_: ["He has cows."], lacking="phrases that must appear")
    translation = translator.translate("il a 57 vaches")
    assert translation.warnings == ("the number 57 is missing in the translation",)
    assert not any(demand.must for call in engine.calls for demand in call.demands)


def test_a_number_with_separators_is_told_but_not_forced() -> None:
    translator, engine = fake_translator(by_way({"constrained": ["wrong"]}, "It costs a lot."))
    assert translator.translate("ça coûte 1 234,50 euros").warnings == (
        "the number 1 234,50 is missing in the translation",
    )
    assert not any(demand.must for call in engine.calls for demand in call.demands)


@pytest.mark.parametrize("item", ["https://a.example/x?y=1", "ada@example.org", "{name}", "%(count)d"])
def test_what_cannot_be_written_is_put_back_where_it_was(item: str) -> None:
    def answer(text: str, options: DecodeOptions, demand: Demand) -> list[str]:
        return [{"écris à": "write to", "dès demain.": "tomorrow."}.get(text, "write tomorrow.")]

    translator, _ = fake_translator(answer, lacking="phrases that must appear")
    translation = translator.translate(f"écris à {item} dès demain.")
    assert translation.text == f"write to {item} tomorrow."
    assert translation.warnings == ("translated in 2 parts, put together again",)


def test_what_is_demanded_has_the_mark_of_a_word_s_start_only_where_it_starts_a_word() -> None:
    tokenizer = fake_translator(lambda *_: [])[0]._tokenizer
    for text, starts_a_word in (("à {nom} ici", True), ("à ({nom}) ici", False)):
        translator, engine = fake_translator(lambda *_: ["to here now"])
        translator.translate(text)
        demanded = [demand.must[0] for call in engine.calls for demand in call.demands if demand.must]
        assert tokenizer.piece(demanded[0][0]).startswith("▁") is starts_a_word
        assert tokenizer.decode(demanded[0]) == "{nom}"


@pytest.mark.parametrize("text", ["https://a.example", "{name} {other}", "123 + 45 = 168", "☃ …"])
def test_what_has_no_words_is_not_translated(text: str) -> None:
    translator, engine = fake_translator(lambda *_: ["nonsense"])
    assert translator.translate(text).text == text
    assert engine.calls[0].sources == []


# Glossary


def test_a_term_is_demanded_when_it_is_not_used() -> None:
    glossary = Glossary([Term("vache", "bovine animal")])
    translator, engine = fake_translator(by_way({"constrained": ["The bovine animal sleeps."]}, "The cow sleeps."))
    translation = translator.translate("La vache dort.", glossary=glossary)
    assert (translation.text, translation.warnings) == ("The bovine animal sleeps.", ())
    assert engine.calls[-1].demands[0].must == (tuple(translator._tokenizer.ids_batch(["bovine animal"])[0]),)


def test_a_term_is_put_into_the_source_for_an_engine_that_cannot_be_told_what_must_appear() -> None:
    def answer(text: str, options: DecodeOptions, demand: Demand) -> list[str]:
        return ["The bovine sleeps." if "bovine" in text else "The cow sleeps."]

    translator, engine = fake_translator(answer, lacking="phrases that must appear")
    translation = translator.translate("La vache dort.", glossary=Glossary([Term("vache", "bovine")]))
    assert (translation.text, translation.warnings) == ("The bovine sleeps.", ())
    assert engine.calls[-1].sources == ["La bovine dort."]


def test_what_is_around_a_term_is_translated_where_nothing_else_helps() -> None:
    def answer(text: str, options: DecodeOptions, demand: Demand) -> list[str]:
        return [{"La": "The", "et l'": "and the", "dort.": "sleeps."}.get(text, "They sleep.")]

    translator, _ = fake_translator(answer, lacking="phrases that must appear")
    glossary = Glossary([Term("vache", "bovine"), Term("oie", "fowl")])
    translation = translator.translate("La vache et l'oie dort.", glossary=glossary)
    assert translation.text == "The bovine and the fowl sleeps."
    assert translation.warnings == ("translated in 3 parts, put together again",)
    assert translator.translate("Vache", glossary=glossary).text == "Bovine"
    assert "a@b.example" in translator.translate("La vache et a@b.example", glossary=glossary).text


def test_a_term_always_appears_in_what_ctranslate2_translates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    model = write_tiny_bundle(tmp_path / "model").path
    translator = load(model, engine="ctranslate2", compute_type="float32", workers=1)
    term = Term("vache", "bovine animal")
    texts = [*(f"{text} vache {text}" for text in tiny_texts(5)), "vache", "L'vache!", "LA VACHE DORT ICI."]
    for translation in translator.translate(texts, glossary=Glossary([term])):
        assert is_used(term, translation.text), translation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bonjour {name}, comment vas-tu ?", "Hello {name}, how?"),
        ("Bonjour ({name}) ; comment vas-tu ?", "Hello ({name}) ; how?"),
        ("Bonjour : « {name} ». Comment vas-tu ?", "Hello « {name} ». how?"),
        ("l'{name}'s ami", "the {name} friend"),
    ],
)
def test_marks_beside_a_placeholder_stay(text: str, expected: str) -> None:
    words = {"Bonjour": "Hello", "Bonjour :": "Hello", "comment vas-tu ?": "how?", "Comment vas-tu ?": "how?"}
    words |= {"l'": "the", "'s ami": "friend"}
    translator, _ = fake_translator(lambda text, *_: [words.get(text, "Nothing of it.")], lacking="phrases")
    assert translator.translate(text).text == expected


def test_a_source_that_its_terms_make_too_long_is_not_sent() -> None:
    translator, engine = fake_translator(lambda *_: ["nothing of it"], lacking="phrases", max_length=13)
    term = Term("vache", "bovine " * 19)
    assert is_used(term, translator.translate("La vache.", glossary=Glossary([term])).text)
    assert max(len(ids) for call in engine.calls for ids in call.ids) <= 13


def test_a_term_that_could_not_be_used_is_told() -> None:
    translator, _ = fake_translator(lambda *_: ["See www.vache.example now."], lacking="phrases that must appear")
    glossary = Glossary([Term("vache", "bovine")])
    warnings = translator.translate("Voir www.vache.example ici.", glossary=glossary).warnings
    assert warnings == ("'vache' did not become 'bovine', as the glossary says",)


def test_a_glossary_is_honoured_without_the_other_guards() -> None:
    glossary = Glossary([Term("vache", "bovine")])
    translator, _ = fake_translator(
        by_way({"another hypothesis": ["The cow sleeps.", "The bovine sleeps."]}, "The cow.")
    )
    assert translator.translate("La vache dort.", glossary=glossary, guards=False).text == "The bovine sleeps."
