"""The behavioural suite tells a translator that holds from one that does not."""

import re
import unicodedata

import pytest

from dragoman.errors import ConfigError
from dragoman.evaluate.behaviour import Behaviour, agreement, run_suite


def careless(texts: list[str]) -> list[str]:
    """Reads only tidy French."""
    return [text if text.endswith((".", "?")) and not text.isupper() else "?" for text in texts]


def by_kind(found: list[Behaviour]) -> dict[str, Behaviour]:
    return {behaviour.kind: behaviour for behaviour in found}


def careful(texts: list[str]) -> list[str]:
    """The words alone, whatever their case and accents."""
    bare = [unicodedata.normalize("NFD", text.lower()).replace("’", "").replace("'", "") for text in texts]
    return [" ".join(re.findall(r"\w+", re.sub("[\u0300-\u036f]", "", text))) for text in bare]


def test_a_translator_that_minds_nothing_holds() -> None:
    found = by_kind(run_suite(careful, "fr", "de"))
    assert set(found) == {
        "missing full stop",
        "all capitals",
        "all small letters",
        "no accents",
        "typographic apostrophes",
        "no apostrophes",
        "several sentences",
        "unseen number",
        "unseen name",
    }
    assert {kind for kind, behaviour in found.items() if behaviour.held < len(behaviour.trials)} == {"unseen name"}
    assert len(found["all capitals"].trials) == 20
    assert [trial.text for trial in found["no apostrophes"].trials][:2] == [
        "Je voudrais un café, sil vous plaît.",
        "Lécole est fermée aujourdhui.",
    ]
    assert len(found["unseen number"].trials) == 15
    assert found["unseen name"].held == 0


def test_a_translator_without_a_word_holds_nothing() -> None:
    found = run_suite(lambda texts: ["…"] * len(texts), "fr", "en")
    assert [behaviour.kind for behaviour in found if behaviour.held] == []


def test_no_text_is_translated_twice() -> None:
    asked: list[str] = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return texts

    run_suite(translate, "fr", "en")
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(("source", "target"), [("fr", "en"), ("en", "fr")])
def test_a_translator_that_always_says_the_same_is_found_out(source: str, target: str) -> None:
    found = by_kind(run_suite(lambda texts: ["The black cat is sleeping."] * len(texts), source, target))
    assert found["all capitals"].held == len(found["all capitals"].trials)  # it heeds nothing, capitals neither
    assert found["tidy sentence"].held <= 1


def test_translations_are_held_against_references() -> None:
    english = {"Il fait très froid cette nuit.": "It is very cold tonight.", "Mon père travaille à l'hôpital.": "No."}
    found = by_kind(run_suite(lambda texts: [english.get(text, "") for text in texts], "fr", "en"))["tidy sentence"]
    held = [trial for trial in found.trials if trial.held]
    assert [(trial.text, trial.expected) for trial in held] == [
        ("Il fait très froid cette nuit.", "It's very cold tonight.")
    ]


def test_a_translator_that_reads_only_tidy_text_does_not() -> None:
    found = by_kind(run_suite(careless, "fr", "en"))
    assert found["all capitals"].held == found["missing full stop"].held == found["single word"].held == 0
    assert found["unseen name"].held == len(found["unseen name"].trials)
    summary = found["all capitals"].summary()
    assert summary["tried"] == 20
    assert summary["failures"][0] == {
        "text": "LE BUREAU DE POSTE EST PRÈS DE LA BANQUE.",
        "translation": "?",
        "expected": "Le bureau de poste est près de la banque.",
    }


def test_single_words_may_have_an_article_but_not_a_sentence() -> None:
    def answer(texts: list[str]) -> list[str]:
        return [{"chien": "A dog.", "maison": "This is my house.", "eau": "Water"}.get(text, "") for text in texts]

    words = by_kind(run_suite(answer, "fr", "en"))["single word"]
    assert [trial.text for trial in words.trials if trial.held] == ["chien", "eau"]


def test_a_number_may_be_written_with_separators() -> None:
    def grouped(texts: list[str]) -> list[str]:
        return [re.sub(r"\d+", lambda found: f"{int(found[0]):,}", text) for text in texts]

    numbers = by_kind(run_suite(grouped, "fr", "en"))["unseen number"]
    assert numbers.held == len(numbers.trials)


def test_a_number_with_a_digit_too_many_is_another_number() -> None:
    def longer(texts: list[str]) -> list[str]:
        return [re.sub(r"(\d+)", r"\g<1>0", text) for text in texts]

    assert by_kind(run_suite(longer, "fr", "en"))["unseen number"].held == 0


def test_a_name_with_a_letter_too_many_is_another_name() -> None:
    def longer(texts: list[str]) -> list[str]:
        return [re.sub(r"(\w+)", r"\1a", text) for text in texts]

    assert by_kind(run_suite(longer, "fr", "en"))["unseen name"].held == 0


def test_texts_that_would_run_into_one_another_are_not_joined() -> None:
    found = by_kind(run_suite(careful, "xh", "en", ["Molo", "Unjani?", "Wethu", "Enkosi."]))
    assert [trial.text for trial in found["several sentences"].trials] == ["Unjani? Enkosi."]


def test_other_languages_need_sentences() -> None:
    with pytest.raises(ConfigError, match="there are no sentences in xh to try: the suite has fr, en; give --test"):
        run_suite(careless, "xh", "en")
    found = run_suite(careless, "xh", "en", ["Molo wethu.", "Unjani namhlanje?"])
    assert {len(behaviour.trials) for behaviour in found} == {1, 2}


def test_agreement_is_of_words_whatever_their_case_and_order() -> None:
    assert agreement("The dog, sleeps!", "sleeps the DOG") == 1.0
    assert agreement("", "…") == 0.0
    assert agreement("one two three", "one two four") == pytest.approx(2 / 3)
