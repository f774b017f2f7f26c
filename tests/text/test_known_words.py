"""The words that a model has met, and the names that it has not."""

import random
import string

import pytest

from dragoman.errors import DataError
from dragoman.text.known_words import KnownWords, Name

PAIRS = [
    *[("Où habite Tom ?", "Where does Tom live?")] * 25,
    *[("J'aime Londres, dit Tom.", "I like London, says Tom.")] * 25,
    *[("Vive Paris !", "Long live Paris!")] * 19,
]


def made_up(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices(string.ascii_lowercase, k=draw.randint(5, 13))) for _ in range(count)]


def test_what_was_met_is_known_whatever_its_case() -> None:
    known = KnownWords.collect(PAIRS)
    assert all(word in known for word in ("tom", "TOM", "Où", "OÙ", "habite", "like", "London"))
    assert "Thandiwe" not in known


def test_a_word_of_one_or_two_sentences_is_not_known() -> None:
    known = KnownWords.collect(
        [("Genève, Genève !", "Geneva"), ("Genève", "geneva"), ("Lyon", "GENEVA, Lyon"), ("", "Lyon")]
    )
    assert [word in known for word in ("Genève", "Geneva", "Lyon")] == [False, True, True]


def test_no_word_that_was_met_is_lost_and_few_others_pass_for_known() -> None:
    met, others = made_up(3001, 1), made_up(20_011, 2)
    known = KnownWords.collect((" ".join(met), "") for _ in range(3))
    assert all(word in known for word in met)
    passed = sum(word in known for word in set(others) - set(met))
    assert passed < 0.002 * len(others)


def test_what_stands_in_is_a_name_that_pairs_copy_often() -> None:
    # London is written otherwise in French, Paris is not often enough.
    assert KnownWords.collect(PAIRS).stand_ins == ("Tom",)
    mixed = [*PAIRS, *[("Tom dort.", "Thomas sleeps.")] * 9]
    assert KnownWords.collect(mixed).stand_ins == ()
    assert KnownWords.collect((target, source) for source, target in mixed).stand_ins == ()


def test_nothing_can_be_collected() -> None:
    known = KnownWords.collect([])
    assert "Tom" not in known
    assert KnownWords.from_bytes(known.to_bytes()).unknown_names("Tom") == ()


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("Où habite Oyelaran ?", [Name("Oyelaran", 10)]),
        ("Oyelaran habite où ?", [Name("Oyelaran", 0, certain=False)]),
        ("« Oyelaran » dit Tom", [Name("Oyelaran", 2, certain=False)]),
        ("Tom dit : « Coupe le ! »", [Name("Coupe", 12, certain=False)]),
        ("- Coupe-le !", [Name("Coupe", 2, certain=False)]),
        ("J'aime Tom. Arvid, non.", [Name("Arvid", 12, certain=False)]),
        ("L'Oréal, Arvid", [Name("Oréal", 2), Name("Arvid", 9)]),
        ("Où habite Zoe\u0308lle ?", []),
        ("Thandiwe Oyelaran habite où ?", [Name("Thandiwe Oyelaran", 0)]),
        ("Où habite Tom-Arvid ?", [Name("Arvid", 14)]),
        ("J'aime Arvid, Arvid !", [Name("Arvid", 7), Name("Arvid", 14)]),
        ("où habite oyelaran ?", []),
        ("Où habite Tom ?", []),
        ("J'habite où, X ?", []),
        ("", []),
    ],
)
def test_a_name_is_a_word_with_a_capital_that_was_never_met(sentence: str, names: list[Name]) -> None:
    found = KnownWords.collect(PAIRS).unknown_names(sentence)
    assert [(name.text, name.start, name.certain) for name in found] == [
        (name.text, name.start, name.certain) for name in names
    ]
    assert all(sentence[name.start : name.end] == name.text for name in found)


def test_without_anything_to_stand_in_no_name_is_looked_for() -> None:
    assert KnownWords.collect([("Vive Paris !", "Long live Paris!")]).unknown_names("Où habite Oyelaran ?") == ()


def test_a_model_that_was_trained_on_more_knows_both() -> None:
    first, second = KnownWords.collect(PAIRS), KnownWords.collect([("Guten Morgen, Ada!", "Good morning, Ada!")] * 21)
    both = KnownWords.from_bytes((first | second).to_bytes())
    assert both == first | second
    assert all(word in both for word in ("habite", "Morgen"))
    assert both.stand_ins == ("Tom", "Ada")
    assert "Thandiwe" not in both
    assert both | first == both
    assert first | KnownWords.collect((target, source) for source, target in PAIRS) == first


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"stand_ins": [], "filters": ["*"]}', b'{"filters": 7}'])
def test_a_damaged_file_is_told(data: bytes) -> None:
    with pytest.raises(DataError, match=r"words\.json cannot be understood"):
        KnownWords.from_bytes(data)


def test_what_stands_in_is_hardly_ever_in_small_letters() -> None:
    pairs = [("la commission Tom", "the commission Tom")] * 5 + [("La Commission, Tom", "The Commission, Tom")] * 25
    assert KnownWords.collect(pairs).stand_ins == ("Tom",)
    assert KnownWords.collect(pairs[5:]).stand_ins == ("Commission", "Tom")


def test_lexicons_are_kept_and_added_to() -> None:
    first = KnownWords(lexicons={"fr-en": {"chien": ("dog",), "eau": ("water",)}})
    second = KnownWords(lexicons={"fr-en": {"chien": ("hound", "dog")}, "en-fr": {"dog": ("chien",)}})
    both = KnownWords.from_bytes((first | second).to_bytes())
    assert both.lexicons == {"fr-en": {"chien": ("hound", "dog"), "eau": ("water",)}, "en-fr": {"dog": ("chien",)}}
    assert KnownWords.from_bytes(b'{"stand_ins": [], "filters": []}').lexicons == {}


@pytest.mark.parametrize("lexicons", ["[]", '{"fr-en": ["chien"]}', '{"fr-en": {"chien": 1}}'])
def test_a_lexicon_that_is_none_is_refused(lexicons: str) -> None:
    with pytest.raises(DataError, match=r"words\.json cannot be understood"):
        KnownWords.from_bytes(f'{{"stand_ins": [], "filters": [], "lexicons": {lexicons}}}'.encode())


def test_contractions_are_kept_and_added_to() -> None:
    first = KnownWords(contractions={"en": {"dont": "don't"}, "de": {}})
    second = KnownWords(contractions={"en": {"im": "i'm"}, "fr": {"jai": "j'ai"}})
    both = KnownWords.from_bytes((first | second).to_bytes())
    assert both.contractions == {"en": {"dont": "don't", "im": "i'm"}, "de": {}, "fr": {"jai": "j'ai"}}
    assert KnownWords.from_bytes(b'{"stand_ins": [], "filters": []}').contractions == {}
    with pytest.raises(DataError, match=r"words\.json cannot be understood"):
        KnownWords.from_bytes(b'{"stand_ins": [], "filters": [], "contractions": {"en": ["don\'t"]}}')
