"""What must not get lost on the way: addresses, placeholders, numbers; terms of a glossary; and word alignments."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.translator.alignment import links_of, word_matrix
from dragoman.translator.carry import (
    find_carried,
    has_nothing_to_translate,
    missing_numbers,
    missing_verbatims,
)
from dragoman.translator.glossary import Glossary, Term, is_used
from dragoman.translator.translation import Link


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Voir https://a.example/x?y=1, merci.", ["https://a.example/x?y=1"]),
        ("(www.example.org) et ada@mail.example.org!", ["www.example.org", "ada@mail.example.org"]),
        (
            "Vois https://a.example/b_(c)), puis (https://a.example/[1]).",
            ["https://a.example/b_(c)", "https://a.example/[1]"],
        ),
        ("Bonjour {name}, {0} et {{ user }} ou ${HOME}", ["{name}", "{0}", "{{ user }}", "${HOME}"]),
        ("%s a %(n)d points, %5.2f et %1$s", ["%s", "%(n)d", "%5.2f", "%1$s"]),
        ("100 % des gens, 50% de plus", []),
        ("Un { espace } et {}", ["{}"]),
        ("Rien à voir.", []),
    ],
)
def test_addresses_and_placeholders_are_found(text: str, found: list[str]) -> None:
    verbatims = find_carried(text).verbatims
    assert [one.text for one in verbatims] == found
    assert all(text[one.start : one.end] == one.text for one in verbatims)


def test_each_must_be_there_as_often_as_in_the_source() -> None:
    carried = find_carried("{a} ou {a} ou {b}")
    assert [one.text for one in missing_verbatims(carried, "{a} or {a} or {b}")] == []
    assert [one.text for one in missing_verbatims(carried, "{a} or {b}")] == ["{a}"]
    assert [one.text for one in missing_verbatims(carried, "{A} or")] == ["{a}", "{a}", "{b}"]


@pytest.mark.parametrize(
    ("source", "target", "missing"),
    [
        ("en 1987", "in 1987", ()),
        ("en 1987", "in 1978", ("1987",)),
        ("en 1987", "long ago", ("1987",)),
        ("1 234,50 €", "€1,234.50", ()),
        ("12'345 et 3,5", "12,345 and 3.5", ()),
        ("il a 3 chats", "he has three cats", ()),
        ("il a 3 chats", "he has 4 cats", ("3",)),
        ("30 minutes", "thirty minutes", ()),
        ("à 14h30 et 15:45", "at 2:30 and quarter to four", ()),
        ("um 21.15 Uhr, um 9 Uhr", "at 9.15 p.m., at 9", ()),
        ("am 31.10.2013", "on 31/10/2013", ()),
        ("am 31.10.2013", "on 31/10/2014", ("2013",)),
        ("007 et 42", "7 and 42", ()),
        ("42 et 42", "42 once", ("42",)),
        ("en 2020 100 gens", "100 people in 2020", ()),
        ("voir {x1} 57", "see {x1}", ("57",)),
        ("12,50 euros", "12.5 euros", ()),
        ("12,50 euros", "1250 euros", ("12,50",)),
        ("2.75 %", "275 %", ("2.75",)),
        ("12,00 euros", "twelve euros", ()),
        ("0,375 litre", "375 litres", ("0,375",)),
        ("0,375 litre", "0.375 litres", ()),
        ("1 234 567,8", "1,234,567.8", ()),
        ("20 000 gens", "2,0000 people", ("20 000",)),
        ("3,417", "3417", ()),
        ("9" * 5_000, "many", ("9" * 5_000,)),
    ],
)
def test_numbers_are_compared_by_their_value(source: str, target: str, missing: tuple[str, ...]) -> None:
    assert missing_numbers(find_carried(source), target) == missing


@given(st.text())
def test_a_text_lacks_nothing_of_itself(text: str) -> None:
    carried = find_carried(text)
    assert missing_verbatims(carried, text) == ()
    assert missing_numbers(carried, text) == ()


@pytest.mark.parametrize(
    ("text", "nothing"), [("{name}: 12", True), ("http://x.example !", True), ("le {name}", False), ("", True)]
)
def test_there_is_nothing_to_translate_without_letters_of_its_own(text: str, nothing: bool) -> None:
    assert has_nothing_to_translate(text) is nothing


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("head", "unit"),
    [("", "A"), ("", "a."), ("a@", "b"), ("a@", ".b"), ("%", "0"), ("%1", "1"), ("%1.", "1"), ("%(", "a"), ("", "%%"),
     ("{", "{a"), ("", "1."), ("1", " 111"), ("", "1:"), ("", "www."), ("a", " ")],
)  # fmt: skip
def test_two_hundred_thousand_letters_are_looked_through_in_no_time(head: str, unit: str) -> None:
    text = head + (unit * 200_000)[:200_000]
    carried = find_carried(text)
    assert all(text[one.start : one.end] == one.text for one in carried.verbatims)
    has_nothing_to_translate(text)


# Glossary


def test_terms_are_found_as_whole_words_in_any_case_the_longest_first() -> None:
    cat, big_cat, dog = Term("chat", "feline"), Term("grand chat", "big cat"), Term("chien", "hound")
    glossary = Glossary([cat, big_cat, dog])
    assert len(glossary) == 3
    assert glossary.find("Le Grand  CHAT et les chats, un chien, un chat, un chat") == (big_cat, dog, cat)
    assert glossary.find("chatte, achat, l'chienne") == ()
    assert Glossary([]).find("chat") == ()


def test_a_term_with_signs_is_taken_letter_by_letter() -> None:
    assert Glossary([Term("C++ (a.b)", "x")]).find("du c++ (a.b), oui") != ()
    assert Glossary([Term("a.b", "x")]).find("acb") == ()


@pytest.mark.parametrize(
    ("target", "used"), [("The Bovine  Animal sleeps", True), ("bovine animals", False), ("abovine animal", False)]
)
def test_a_term_is_used_if_it_stands_there_as_whole_words(target: str, used: bool) -> None:
    assert is_used(Term("vache", "bovine animal"), target) is used


def test_a_term_of_a_script_without_spaces_is_used_within_other_letters() -> None:
    assert is_used(Term("cat", "猫"), "私の猫は")
    assert not is_used(Term("cat", "feline"), "felines")


def test_the_places_of_terms_are_those_of_the_text_as_it_is_written() -> None:
    street, cat = Term("STRASSE  nord", "north street"), Term("chat", "feline")
    text = "Die Straße \tNord, un Chat, achat"
    places = Glossary([street, cat]).places(text)
    assert [(text[one.start : one.end], one.term) for one in places] == [("Straße \tNord", street), ("Chat", cat)]
    assert Glossary([]).places(text) == ()


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        ("Straße", "Die STRASSE."),
        ("straße", "Die Straße."),
        ("図書館", "私は図書館に行く"),
        ("café", "Un cafe\u0301 !"),
    ],
)
def test_a_term_is_found_however_its_letters_are_written(term: str, sentence: str) -> None:
    glossary = Glossary([Term(term, "x")])
    assert glossary.find(sentence) == (Term(term, "x"),)
    assert Glossary([Term("cafe", "x")]).find("Un cafe\u0301.") == ()


def test_a_glossary_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# terms\nchat\tfeline\tnote\n\nchien \t hound\n", encoding="utf-8")
    glossary = Glossary.read(path)
    assert glossary.find("chat chien") == (Term("chat", "feline"), Term("chien", "hound"))


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"chat\tfeline\nchien\n", r"terms\.tsv:2: no term, expected source<TAB>target"),
        (b"\tfeline\n", r"terms\.tsv:1: no term, expected source<TAB>target"),
        (b"# nothing\n", r"terms\.tsv has no terms, expected source<TAB>target a line"),
        (b"ok\tok\ncaf\xe9\tx\n", r"terms\.tsv:2: byte 0xe9 .* is not UTF-8"),
    ],
)
def test_a_glossary_that_is_none_is_refused(tmp_path: Path, contents: bytes, message: str) -> None:
    (tmp_path / "terms.tsv").write_bytes(contents)
    with pytest.raises(DataError, match=message):
        Glossary.read(tmp_path / "terms.tsv")


def test_a_glossary_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.tsv: no such file"):
        Glossary.read(tmp_path / "none.tsv")


# Alignment


def test_a_word_gets_what_its_pieces_get_and_gives_what_they_give_on_average() -> None:
    attention = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.2, 0.2], [0.0, 0.0, 0.6, 0.4]], dtype=np.float32)
    matrix = word_matrix(attention, [[0, 1], [2], [3]], [[0, 1], [2]])
    np.testing.assert_allclose(matrix, [[0.45, 0.25, 0.3], [0.0, 0.6, 0.4]], atol=1e-6)


def test_rows_sum_to_one_even_where_all_attention_was_elsewhere() -> None:
    attention = np.array([[0.1, 0.3], [0.0, 0.0]], dtype=np.float32)
    matrix = word_matrix(attention, [[0], [1]], [[0], [1]])
    np.testing.assert_allclose(matrix, [[0.25, 0.75], [0.0, 0.0]], atol=1e-6)
    assert word_matrix(attention, [], [[0]]).shape == (1, 0)


def test_the_strongest_is_linked_and_every_other_strong_one() -> None:
    matrix = np.array([[0.2, 0.15, 0.15], [0.4, 0.3, 0.3]], dtype=np.float32)
    assert links_of(matrix) == (Link(0, 0, 0.2), Link(0, 1, 0.4), Link(1, 1, 0.3), Link(2, 1, 0.3))
    assert links_of(np.zeros((0, 3), dtype=np.float32)) == ()
