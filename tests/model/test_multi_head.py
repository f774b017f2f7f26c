"""Multi-head attention: heads side by side, W_O, and a cache that goes in and comes out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.model.attention import attention
from dragoman.model.mask import causal_mask
from dragoman.model.multi_head import KeyValue, MultiHeadAttention, join_heads, split_heads
from dragoman.model.record import Record

BATCH, LENGTH, SOURCE, D_MODEL, HEADS, D_K, D_V = 2, 11, 13, 17, 3, 5, 7


def make(bias: bool = False, weight_dropout: float = 0.0) -> MultiHeadAttention:
    heads = MultiHeadAttention(D_MODEL, HEADS, D_K, D_V, bias, weight_dropout)
    if bias:  # zero at first, which would hide a bias that is left out
        for bias_parameter in (heads.b_qkv, heads.w_o.bias):
            torch.nn.init.normal_(bias_parameter)
    return heads


def self_attend(heads: MultiHeadAttention, x_BTD: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    query, memory = heads.project(x_BTD)
    return heads.attend(query, memory, mask, causal)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 7), st.integers(1, 5))
def test_joining_heads_undoes_splitting_them(batch: int, length: int, num_heads: int, channels: int) -> None:
    x_BTE = torch.arange(batch * length * num_heads * channels).view(batch, length, -1)
    split_BHTC = split_heads(x_BTE, num_heads)
    assert split_BHTC.shape == (batch, num_heads, length, channels)
    assert torch.equal(join_heads(split_BHTC), x_BTE)


def test_a_head_takes_neighbouring_channels() -> None:
    x_BTE = torch.arange(HEADS * D_K)[None, None]
    assert split_heads(x_BTE, HEADS)[0, 1, 0].tolist() == list(range(D_K, 2 * D_K))


@pytest.mark.parametrize("bias", [False, True])
def test_each_head_is_the_function_on_its_own_weights_and_w_o_mixes_them(bias: bool) -> None:
    heads, x_TD = make(bias), torch.randn(LENGTH, D_MODEL)
    w_q, w_k, w_v = heads.w_qkv.split([HEADS * D_K, HEADS * D_K, HEADS * D_V])
    biases = heads.b_qkv if heads.b_qkv is not None else torch.zeros(len(heads.w_qkv))
    b_q, b_k, b_v = biases.split([HEADS * D_K, HEADS * D_K, HEADS * D_V])
    outputs = []
    for head in range(HEADS):
        narrow, wide = slice(head * D_K, (head + 1) * D_K), slice(head * D_V, (head + 1) * D_V)
        query, key = x_TD @ w_q[narrow].T + b_q[narrow], x_TD @ w_k[narrow].T + b_k[narrow]
        outputs.append(attention(query, key, x_TD @ w_v[wide].T + b_v[wide]).values)
    wanted_TD = torch.cat(outputs, dim=1) @ heads.w_o.weight.T + (heads.w_o.bias if bias else 0)
    torch.testing.assert_close(self_attend(heads, x_TD[None])[0], wanted_TD)


def test_heads_and_their_widths_are_free_of_the_model() -> None:
    heads = make()
    assert sum(parameter.numel() for parameter in heads.parameters()) == D_MODEL * HEADS * (2 * D_K + 2 * D_V)
    assert self_attend(heads, torch.randn(BATCH, LENGTH, D_MODEL)).shape == (BATCH, LENGTH, D_MODEL)


def test_there_is_no_bias_unless_asked_and_it_starts_at_zero() -> None:
    assert {name for name, _ in make().named_parameters()} == {"w_qkv", "w_o.weight"}
    fresh = MultiHeadAttention(D_MODEL, HEADS, D_K, D_V, bias=True)
    assert not fresh.b_qkv.any()
    assert not fresh.w_o.bias.any()


@pytest.mark.parametrize("bias", [False, True])
def test_projecting_queries_and_memory_apart_equals_projecting_together(bias: bool) -> None:
    heads, x_BTD = make(bias), torch.randn(BATCH, LENGTH, D_MODEL)
    query, together = heads.project(x_BTD)
    apart = heads.project_memory(x_BTD)
    torch.testing.assert_close(heads.project_query(x_BTD), query)
    torch.testing.assert_close(apart.key_BHKC, together.key_BHKC)
    torch.testing.assert_close(apart.value_BHKC, together.value_BHKC)


def test_attention_over_a_source_of_another_length() -> None:
    heads, x_BTD, source_BSD = make(), torch.randn(BATCH, LENGTH, D_MODEL), torch.randn(BATCH, SOURCE, D_MODEL)
    memory = heads.project_memory(source_BSD)
    assert memory.key_BHKC.shape == (BATCH, HEADS, SOURCE, D_K)
    assert memory.value_BHKC.shape == (BATCH, HEADS, SOURCE, D_V)
    assert heads.attend(heads.project_query(x_BTD), memory).shape == (BATCH, LENGTH, D_MODEL)


MASKS = {
    "none": (None, False),
    "padding": (torch.arange(LENGTH)[None, None, None] < torch.tensor([7, 11])[:, None, None, None], False),
    "one row blind": (torch.arange(LENGTH)[None, None, None] < torch.tensor([0, 11])[:, None, None, None], False),
    "causal": (None, True),
}


@pytest.mark.parametrize("kind", MASKS)
def test_the_path_that_records_equals_the_fast_path(kind: str) -> None:
    mask, causal = MASKS[kind]
    heads, x_BTD = make(bias=True), torch.randn(BATCH, LENGTH, D_MODEL)
    results = []
    for record in (None, Record()):
        heads.zero_grad()
        leaf_BTD = x_BTD.clone().requires_grad_()
        query, memory = heads.project(leaf_BTD)
        output_BTD = heads.attend(query, memory, mask, causal, record)
        output_BTD.square().sum().backward()
        results.append([output_BTD, leaf_BTD.grad, *(parameter.grad.clone() for parameter in heads.parameters())])
    for fast, plain in zip(*results, strict=True):
        assert fast.isfinite().all()
        torch.testing.assert_close(fast, plain, atol=1e-4, rtol=1e-4)


def test_a_record_holds_every_number_of_the_attention() -> None:
    heads, record = make(), Record()
    query, memory = heads.project(torch.randn(BATCH, LENGTH, D_MODEL))
    output_BTD = heads.attend(query, memory, causal=True, record=record.within("self"))
    shapes = {name.removeprefix("self."): tuple(tensor.shape) for name, tensor in record.tensors.items()}
    assert shapes == {
        "query": (BATCH, HEADS, LENGTH, D_K),
        "key": (BATCH, HEADS, LENGTH, D_K),
        "value": (BATCH, HEADS, LENGTH, D_V),
        "scores": (BATCH, HEADS, LENGTH, LENGTH),
        "weights": (BATCH, HEADS, LENGTH, LENGTH),
        "mixed": (BATCH, HEADS, LENGTH, D_V),
        "output": (BATCH, LENGTH, D_MODEL),
    }
    assert not record.tensors["self.weights"].triu(1).any()
    assert torch.equal(record.tensors["self.output"], output_BTD)
    assert not any(tensor.requires_grad for tensor in record.tensors.values())


def test_attending_leaves_nothing_in_the_module() -> None:
    heads = make()
    before = set(vars(heads)) | set(dict(heads.named_buffers()))
    query, memory = heads.project(torch.randn(BATCH, LENGTH, D_MODEL))
    heads.attend(query, memory, record=Record())
    assert set(vars(heads)) | set(dict(heads.named_buffers())) == before


def test_a_cache_extended_piece_by_piece_equals_the_whole() -> None:
    heads, x_BTD = make(), torch.randn(BATCH, LENGTH, D_MODEL)
    whole_BTD = self_attend(heads, x_BTD, causal=True)
    past: KeyValue | None = None
    for position in range(LENGTH):
        query, present = heads.project(x_BTD[:, position : position + 1])
        past = present if past is None else past.append(present)
        one_BD = heads.attend(query, past, causal=True)[:, 0]
        torch.testing.assert_close(one_BD, whole_BTD[:, position])


def test_several_queries_over_a_cache_are_the_last_positions() -> None:
    heads, x_BTD = make(), torch.randn(BATCH, LENGTH, D_MODEL)
    _, past = heads.project(x_BTD[:, :7])
    query, new = heads.project(x_BTD[:, 7:])
    for record in (None, Record()):
        torch.testing.assert_close(
            heads.attend(query, past.append(new), causal=True, record=record),
            self_attend(heads, x_BTD, causal=True)[:, 7:],
        )


def test_a_cache_grows_at_its_end_and_the_old_one_stays_as_it_was() -> None:
    old = KeyValue(torch.zeros(BATCH, HEADS, 5, D_K), torch.zeros(BATCH, HEADS, 5, D_V))
    grown = old.append(KeyValue(torch.ones(BATCH, HEADS, 2, D_K), torch.ones(BATCH, HEADS, 2, D_V)))
    assert grown.key_BHKC[0, 0, :, 0].tolist() == grown.value_BHKC[0, 0, :, 0].tolist() == [0] * 5 + [1] * 2
    assert old.key_BHKC.shape[2] == 5


def test_selecting_rows_reorders_repeats_and_leaves_out() -> None:
    cache = KeyValue(torch.randn(5, HEADS, LENGTH, D_K), torch.randn(5, HEADS, LENGTH, D_V))
    picked = cache.select(torch.tensor([3, 0, 3]))
    for row, source_row in enumerate([3, 0, 3]):
        assert torch.equal(picked.key_BHKC[row], cache.key_BHKC[source_row])
        assert torch.equal(picked.value_BHKC[row], cache.value_BHKC[source_row])


def test_a_causal_mask_and_the_causal_flag_are_one() -> None:
    heads, x_BTD = make(), torch.randn(BATCH, LENGTH, D_MODEL)
    torch.testing.assert_close(
        self_attend(heads, x_BTD, mask=causal_mask(LENGTH)), self_attend(heads, x_BTD, causal=True)
    )


def test_dropout_on_the_weights_acts_in_training_only() -> None:
    heads, x_BTD = make(weight_dropout=0.5), torch.randn(BATCH, LENGTH, D_MODEL)
    assert not torch.allclose(self_attend(heads, x_BTD), self_attend(heads, x_BTD))
    heads.eval()
    plain = make()
    plain.load_state_dict(heads.state_dict())
    assert torch.equal(self_attend(heads, x_BTD), self_attend(plain, x_BTD))
