"""The examples whose sources are most like a sentence's."""

import itertools
import math
import random

import pytest

from dragoman.search.examples import Examples

END = 2


def has(ids):
    return {*ids[:-1], *itertools.pairwise(ids[:-1])}


def weight(things, sources):
    """The specification: what is rare weighs more."""
    return sum(math.log((1 + len(sources)) / max(1, sum(one in has(ids) for ids in sources))) for one in things)


def plain_rank(source, other, sources):
    """The specification: pieces and neighbours that both have, unless the other is long."""
    mean = sum(map(len, sources)) / len(sources)
    return weight(has(source) & has(other), sources) / (2 + len(other) / mean)


def drawn(count, seed):
    draw = random.Random(seed)
    return [[*draw.choices(range(3, 40), k=draw.randint(1, 9)), END] for _ in range(count)]


def places(examples, source, num):
    return examples.nearest(source, num).places.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_are_those_that_share_most(seed):
    sources, (source, *_) = drawn(57, seed), drawn(1, seed + 100)
    wanted = sorted(range(57), key=lambda place: -plain_rank(source, sources[place], sources))
    found = places(Examples(sources, sources), source, 7)
    ranks = [plain_rank(source, sources[place], sources) for place in found]
    assert ranks == pytest.approx([plain_rank(source, sources[place], sources) for place in wanted[:7]])


@pytest.mark.parametrize("seed", range(5))
def test_likeness_is_what_both_have_of_what_either_has(seed):
    sources, (source, *_) = drawn(57, seed), drawn(1, seed + 100)
    found = Examples(sources, sources).nearest(source, 11)
    plain = [
        weight(has(source) & has(sources[place]), sources) / weight(has(source) | has(sources[place]), sources)
        for place in found.places
    ]
    assert found.likeness.tolist() == pytest.approx(plain, rel=1e-5)


def test_a_source_is_quite_like_itself():
    sources = drawn(57, 1)
    examples = Examples(sources, sources)
    assert all(examples.nearest(source, 1).likeness[0] == pytest.approx(1) for source in sources if len(source) > 4)


def test_a_source_that_is_there_comes_first():
    sources = drawn(57, 1)
    examples = Examples(sources, sources)
    assert [places(examples, source, 3)[0] for source in sources if len(source) > 4] == [
        place for place, source in enumerate(sources) if len(source) > 4
    ]


def test_what_is_like_none_has_none():
    examples = Examples([[5, 6, END], [7, END]], [[8, END], [9, END]])
    assert places(examples, [10, 11, END], 5) == []
    assert places(examples, [6, END], 5) == [0]
    assert places(Examples([], []), [5, END], 5) == []


def test_what_most_sources_have_makes_nothing_alike():
    sources = [[5, 100 + place % 900, END] for place in range(2000)]
    examples = Examples(sources, sources)
    assert places(examples, [5, END], 5) == []
    assert sorted(places(examples, [5, 117, END], 5)) == [17, 917, 1817]
