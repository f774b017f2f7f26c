"""What stands in the translations of sources alike."""

import pytest

from dragoman.search import phrases
from dragoman.search.examples import Examples
from dragoman.search.phrases import phrases_alike, support

BEGIN, END = 1, 2
SOURCES = [[5, 6, 7, END], [5, 6, 8, END], [9, 10, END]]
TARGETS = [[25, 26, 27, END], [25, 26, 28, END], [29, END]]


def test_what_was_written_for_the_same_source_is_worth_most():
    worth = phrases_alike(SOURCES[0], Examples(SOURCES, TARGETS), BEGIN)
    assert worth[25, 26, 27] == pytest.approx(phrases.WEIGHT)
    assert 0 < worth[25, 26, 28] < phrases.WEIGHT
    assert (29, END) not in worth


def test_a_phrase_of_several_examples_is_worth_as_in_the_one_most_alike():
    examples = Examples(SOURCES, TARGETS)
    assert phrases_alike(SOURCES[0], examples, BEGIN)[25, 26] == pytest.approx(phrases.WEIGHT)
    assert phrases_alike(SOURCES[1], examples, BEGIN)[25, 26] == pytest.approx(phrases.WEIGHT)


def test_begin_and_end_are_part_of_phrases():
    worth = phrases_alike(SOURCES[0], Examples(SOURCES, TARGETS), BEGIN)
    assert {phrase for phrase in worth if worth[phrase] > phrases.WEIGHT * 0.999} == {
        (BEGIN, 25), (25, 26), (26, 27), (27, END), (BEGIN, 25, 26), (25, 26, 27), (26, 27, END),
        (BEGIN, 25, 26, 27), (25, 26, 27, END),
    }  # fmt: skip


def test_a_translation_is_worth_the_sum_of_its_phrases():
    worth = {(BEGIN, 25): 0.5, (25, 26, 27): 0.25, (27, END): 2.0, (26, 25): 8.0}
    assert support([BEGIN, 25, 26, 27, END], worth) == 2.75
    assert support([BEGIN, 25, 26, 27], worth) == 0.75  # one that did not come to its end
    assert support([BEGIN, END], worth) == 0


def test_a_source_that_is_like_none_has_no_phrases():
    assert phrases_alike([40, 41, END], Examples(SOURCES, TARGETS), BEGIN) == {}
    assert phrases_alike([40, 41, END], Examples([], []), BEGIN) == {}
