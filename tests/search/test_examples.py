"""The examples whose sources are most like a sentence's."""

import itertools
import math
import random

import pytest

from dragoman.search.examples import Examples

END = 2


def plain_likeness(source, other, sources):
    """The specification: pieces and neighbours that both have, the rare ones weighing more."""

    def has(ids):
        return {*ids[:-1], *itertools.pairwise(ids[:-1])}

    mean = sum(map(len, sources)) / len(sources)
    total = sum(
        math.log((1 + len(sources)) / sum(one in has(ids) for ids in sources)) for one in has(source) & has(other)
    )
    return total / (2 + len(other) / mean)


def drawn(count, seed):
    draw = random.Random(seed)
    return [[*draw.choices(range(3, 40), k=draw.randint(1, 9)), END] for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_are_those_that_share_most(seed):
    sources, (source, *_) = drawn(57, seed), drawn(1, seed + 100)
    wanted = sorted(range(57), key=lambda place: -plain_likeness(source, sources[place], sources))
    found = Examples(sources, sources).nearest(source, 7).tolist()
    likeness = [plain_likeness(source, sources[place], sources) for place in found]
    assert likeness == pytest.approx([plain_likeness(source, sources[place], sources) for place in wanted[:7]])


def test_a_source_that_is_there_comes_first():
    sources = drawn(57, 1)
    examples = Examples(sources, sources)
    assert [examples.nearest(source, 3)[0] for source in sources if len(source) > 4] == [
        place for place, source in enumerate(sources) if len(source) > 4
    ]


def test_what_is_like_none_has_none():
    examples = Examples([[5, 6, END], [7, END]], [[8, END], [9, END]])
    assert examples.nearest([10, 11, END], 5).tolist() == []
    assert examples.nearest([6, END], 5).tolist() == [0]
    assert Examples([], []).nearest([5, END], 5).tolist() == []


def test_what_most_sources_have_makes_nothing_alike():
    sources = [[5, 100 + place % 900, END] for place in range(2000)]
    examples = Examples(sources, sources)
    assert examples.nearest([5, END], 5).tolist() == []
    assert sorted(examples.nearest([5, 117, END], 5).tolist()) == [17, 917, 1817]
