"""Signs of a broken translation: what is accused, and above all what is not."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman.text.suspect
from dragoman.text.suspect import is_copy, is_empty, is_loop, odd_ratio, suspicions

words = st.text(alphabet="abcdefg", min_size=1, max_size=7)


@pytest.mark.parametrize(
    "text",
    [
        "the the the the",
        "A man in a man in a man in a hat.",
        "He said, he said, HE SAID",
        "I know that you know that you know that you know it",
        "我们去我们去我们去我们去我们去我们去",
        "lalalalalalalalalalala",
    ],
)
def test_repeating_is_a_loop(text: str) -> None:
    assert is_loop(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is very, very, very good.",
        "The dog and the cat and the bird and the fish saw the sea.",
        "Hahahaha!",
        "Nooooooo!",
        "............................",
        "It costs 1000000000000000000000 euros.",
        "Was wir wissen, wissen wir; was wir nicht wissen, wissen wir nicht.",
        "Donaudampfschifffahrtsgesellschaft",
    ],
)
def test_emphasis_rhythm_and_long_words_are_no_loop(text: str) -> None:
    assert not is_loop(text)


@given(st.lists(words, min_size=2, max_size=11), st.integers(3, 7), st.lists(words, max_size=5))
def test_any_phrase_three_times_in_a_row_is_a_loop_wherever_it_begins(
    phrase: list[str], times: int, before: list[str]
) -> None:
    assert is_loop(" ".join(before + phrase * times))


@given(st.lists(words, unique=True, max_size=29))
def test_words_that_all_differ_are_no_loop(different: list[str]) -> None:
    assert not is_loop(" ".join(different))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Le chat dort ici.", "le chat dort ici"),
        ("LE CHAT DORT ICI !", "Le chat dort ici !"),
        ("Il faut que nous partions tout de suite avec Tom", "Il faut que nous partions tout de suite with Tom"),
        ("Er wohnt in der alten Stadt.", "Er wohnt in der alten Stadt."),
        ("我昨天买了一本新书。", "我昨天买了一本新书"),
    ],
)
def test_a_source_that_comes_back_is_a_copy(source: str, target: str) -> None:
    assert is_copy(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Taxi !", "Taxi!"),
        ("Tom, Marie, Jean et Alice.", "Tom, Marie, Jean and Alice."),
        ("https://example.org/a/b 1234", "https://example.org/a/b 1234"),
        ("Tom habite Boston", "Tom habite Boston"),
        ("Je suis étudiant dans une grande ville.", "I am a student in a big city."),
        ("北京大学", "北京大学"),
        ("", ""),
    ],
)
def test_names_numbers_and_single_words_are_no_copies(source: str, target: str) -> None:
    assert not is_copy(source, target)


@pytest.mark.parametrize(
    ("source", "target", "odd"),
    [
        ("Oui.", "Yes, I do.", False),
        ("Oui.", "Yes, and then I told him that he should go home.", True),
        ("Il faut que nous partions tout de suite, sinon nous serons en retard.", "We.", True),
        ("我是一个学生，我住在北京。", "I am a student and I live in Beijing.", False),
        ("Я живу в Москве.", "I live in Moscow.", False),
        ("", "", False),
    ],
)
def test_the_ratio_of_lengths_is_odd_only_when_far_off(source: str, target: str, odd: bool) -> None:
    assert odd_ratio(source, target) == odd


@given(st.text(max_size=53), st.text(max_size=53))
def test_the_ratio_does_not_depend_on_which_side_is_which(source: str, target: str) -> None:
    assert odd_ratio(source, target) == odd_ratio(target, source)
    assert not odd_ratio(source, source)


@pytest.mark.parametrize(("text", "empty"), [("", True), (" \t\u3000", True), (".", False)])
def test_white_space_alone_is_empty(text: str, empty: bool) -> None:
    assert is_empty(text) == empty


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("Le chat dort.", "The cat sleeps.", ()),
        ("Le chat dort.", "  ", ("empty",)),
        ("", "", ()),
        ("Le chat dort.", "the the the the the", ("loop",)),
        ("Non, non, non, non !", "No, no, no, no!", ()),
        ("Le chat dort.", "The cat " * 19, ("loop", "ratio")),
        ("Le petit chat dort ici.", "le petit chat dort ici.", ("copy",)),
    ],
)
def test_every_sign_is_named_and_a_looping_source_excuses_a_loop(source: str, target: str, found: tuple[str]) -> None:
    assert suspicions(source, target) == found


def test_the_examples_in_the_docstrings_hold() -> None:
    result = doctest.testmod(dragoman.text.suspect)
    assert result.attempted
    assert not result.failed
