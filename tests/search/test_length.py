import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.search.length import best_attainable, length_penalty, max_lengths


def test_the_penalty_is_the_papers():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(19, 0.5) == 2


def test_without_alpha_length_does_not_count():
    assert length_penalty(3, 0.0) == length_penalty(17, 0.0) == 1


def test_a_tensor_of_lengths_gives_a_tensor():
    torch.testing.assert_close(length_penalty(torch.tensor([1.0, 7.0]), 1.0), torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize(("most", "expected"), [(None, [16, 18]), (17, [16, 17])])
def test_a_translation_may_be_longer_than_its_source(most, expected):
    assert max_lengths([3, 5], 13, most) == expected


@given(
    st.lists(st.floats(-5, 0), min_size=1, max_size=7),
    st.lists(st.floats(-5, 0), min_size=1, max_size=7),
    st.integers(0, 5),
    st.floats(-2, 2),
)
def test_no_open_hypothesis_ends_better_than_its_bound(written, future, spare, alpha):
    limit = len(written) + len(future) - 1 + spare
    score = sum([*written, *future]) / length_penalty(len(written) + len(future), alpha)
    assert score <= best_attainable(sum(written), len(written), limit, alpha) + 1e-9


@pytest.mark.parametrize("alpha", [-0.7, 0.0, 0.6])
def test_the_bound_is_reached_by_certain_pieces(alpha):
    ends = [-3.0 / length_penalty(length + 1, alpha) for length in range(2, 14)]
    assert best_attainable(-3.0, 2, 13, alpha) == max(ends)
