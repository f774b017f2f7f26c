"""Masks: boolean, and True means "may look"."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.mask import causal_mask, padding_mask

lengths = st.integers(min_value=1, max_value=17)


@given(lengths, lengths)
def test_a_query_sees_the_keys_up_to_its_own_position(num_queries: int, num_more: int) -> None:
    num_keys = num_queries + num_more
    mask_QK = causal_mask(num_queries, num_keys)
    for query in range(num_queries):
        own_position = num_keys - num_queries + query
        assert mask_QK[query].tolist() == [key <= own_position for key in range(num_keys)]


@given(lengths)
def test_without_a_number_of_keys_there_is_one_for_each_query(length: int) -> None:
    assert torch.equal(causal_mask(length), causal_mask(length, length))
    assert causal_mask(length).diagonal().all()


@given(lengths, lengths)
def test_a_cached_query_sees_what_it_would_see_without_a_cache(num_queries: int, num_cached: int) -> None:
    whole_QK = causal_mask(num_cached + num_queries)
    assert torch.equal(causal_mask(num_queries, num_cached + num_queries), whole_QK[num_cached:])


@given(st.lists(st.lists(st.integers(0, 4), min_size=7, max_size=7), min_size=1, max_size=5), st.integers(0, 4))
def test_every_query_sees_the_real_pieces_and_no_padding(ids: list[list[int]], padding_id: int) -> None:
    mask_B11S = padding_mask(torch.tensor(ids), padding_id)
    assert mask_B11S.shape == (len(ids), 1, 1, 7)
    assert mask_B11S[:, 0, 0].tolist() == [[piece != padding_id for piece in row] for row in ids]


def test_masks_are_boolean_and_meet_by_and() -> None:
    padding_B11S = padding_mask(torch.tensor([[5, 6, 0], [5, 6, 7]]), padding_id=0)
    both_B1QK = padding_B11S & causal_mask(3)
    assert padding_B11S.dtype == causal_mask(3).dtype == torch.bool
    assert both_B1QK[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert torch.equal(both_B1QK[1, 0], causal_mask(3))
