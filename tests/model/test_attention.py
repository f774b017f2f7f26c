"""Attention: the specification, the forms of the lecture notes, and the fused kernel that must agree."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dragoman.model.attention import (
    AdditiveScore,
    additive,
    attention,
    attention_layer,
    dot_product,
    fused_attention,
    masked_softmax,
    scaled_dot_product,
)
from dragoman.model.mask import causal_mask

BATCH, HEADS, QUERIES, KEYS, D_K, D_V = 2, 3, 5, 7, 11, 13

Case = tuple[Tensor, Tensor, Tensor, Tensor]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Queries, keys, values of any small shape, and a mask of any of the shapes that broadcast to the weights."""
    batch, heads, queries, num_keys, d_k, d_v = (draw(st.integers(1, 7)) for _ in range(6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    query = torch.randn(batch, heads, queries, d_k, generator=generator) * draw(st.sampled_from([0.1, 1.0, 30.0]))
    key = torch.randn(batch, heads, num_keys, d_k, generator=generator)
    value = torch.randn(batch, heads, num_keys, d_v, generator=generator)
    shape = draw(
        st.sampled_from(
            [(queries, num_keys), (batch, 1, 1, num_keys), (batch, 1, queries, num_keys), (1, heads, queries, num_keys)]
        )
    )
    mask = torch.rand(shape, generator=generator) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    return query, key, value, mask


def random_case(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    query = torch.randn(BATCH, HEADS, QUERIES, D_K, dtype=dtype)
    key = torch.randn(BATCH, HEADS, KEYS, D_K, dtype=dtype)
    value = torch.randn(BATCH, HEADS, KEYS, D_V, dtype=dtype)
    return query.requires_grad_(), key.requires_grad_(), value.requires_grad_()


# The equation


def test_attention_is_the_printed_equation_written_as_matrices() -> None:
    query_QC, key_KC, value_KC = torch.randn(QUERIES, D_K), torch.randn(KEYS, D_K), torch.randn(KEYS, D_V)
    powers_QK = torch.exp(query_QC @ key_KC.T / math.sqrt(D_K))
    weights_QK = powers_QK / powers_QK.sum(dim=1, keepdim=True)
    attended = attention(query_QC, key_KC, value_KC)
    torch.testing.assert_close(attended.weights, weights_QK)
    torch.testing.assert_close(attended.values, weights_QK @ value_KC)


def test_the_worked_example_of_the_notes() -> None:
    query_QC, key_KC = torch.zeros(1, 64), torch.zeros(2, 64)
    query_QC[0, :2] = torch.tensor([8.0, 4.0])
    key_KC[0, :2], key_KC[1, :2] = torch.tensor([12.0, 4.0]), torch.tensor([10.0, 4.0])
    assert dot_product(query_QC, key_KC).tolist() == [[112.0, 96.0]]
    assert scaled_dot_product(query_QC, key_KC).tolist() == [[14.0, 12.0]]
    weights = attention(query_QC, key_KC, key_KC).weights
    assert [round(weight, 2) for weight in weights[0].tolist()] == [0.88, 0.12]


def test_a_query_that_matches_one_key_far_better_takes_its_value() -> None:
    value_KC = torch.tensor([[2.0, 3.0], [5.0, 7.0], [11.0, 13.0]])
    attended = attention(100.0 * torch.eye(3), 100.0 * torch.eye(3), value_KC)
    torch.testing.assert_close(attended.values, value_KC)


def test_axes_before_the_last_two_are_apart() -> None:
    query, key, value = random_case()
    together = attention(query, key, value).values
    for batch in range(BATCH):
        for head in range(HEADS):
            alone = attention(query[batch, head], key[batch, head], value[batch, head]).values
            torch.testing.assert_close(together[batch, head], alone)


# The forms of the lecture notes


def test_self_attention_without_weights_is_softmax_of_x_x_transposed_times_x() -> None:
    x_KD = torch.randn(KEYS, D_K)
    powers_KK = torch.exp(x_KD @ x_KD.T)
    wanted_KD = (powers_KK / powers_KK.sum(dim=1, keepdim=True)) @ x_KD
    torch.testing.assert_close(attention(x_KD, x_KD, x_KD, score=dot_product).values, wanted_KD)


def test_in_attn_x_x_prime_the_second_asks_and_the_first_answers() -> None:
    x_KD, x_prime_QD = torch.randn(KEYS, 17), torch.randn(QUERIES, 17)
    w_q, w_k, w_v = torch.randn(17, D_K), torch.randn(17, D_K), torch.randn(17, D_V)
    attended = attention_layer(x_KD, x_prime_QD, w_q, w_k, w_v)
    weights_QK = torch.softmax((x_prime_QD @ w_q) @ (x_KD @ w_k).T / math.sqrt(D_K), dim=1)
    assert attended.weights.shape == (QUERIES, KEYS)
    torch.testing.assert_close(attended.values, weights_QK @ (x_KD @ w_v), atol=1e-4, rtol=1e-4)


def test_self_attention_is_permutation_equivariant() -> None:
    x_KD, order_K = torch.randn(KEYS, 17), torch.tensor([4, 0, 6, 2, 5, 1, 3])
    weights = [torch.randn(17, D_K) / 17 for _ in range(3)]
    before = attention_layer(x_KD, x_KD, *weights).values[order_K]
    after = attention_layer(x_KD[order_K], x_KD[order_K], *weights).values
    torch.testing.assert_close(before, after)


def test_the_order_of_keys_and_values_does_not_matter() -> None:
    query, key, value = random_case()
    order_K = torch.tensor([4, 0, 6, 2, 5, 1, 3])
    torch.testing.assert_close(
        attention(query, key, value).values, attention(query, key[:, :, order_K], value[:, :, order_K]).values
    )


def test_the_additive_score_against_a_case_worked_by_hand() -> None:
    # v . tanh(q + k) with q = (0, 1), keys (0, -1) and (ln 3, ln 2 - 1): tanh(ln 3) = 0.8 and tanh(ln 2) = 0.6.
    query_QA = torch.tensor([[0.0, 1.0]])
    key_KA = torch.tensor([[0.0, -1.0], [math.log(3), math.log(2) - 1]])
    scores_QK = additive(query_QA, key_KA, v_A=torch.tensor([10.0, -5.0]))
    torch.testing.assert_close(scores_QK, torch.tensor([[0.0, 10 * 0.8 - 5 * 0.6]]))


def test_the_additive_score_projects_queries_and_keys_of_different_widths() -> None:
    score = AdditiveScore(d_query=11, d_key=13, d_alignment=17)
    query, key = torch.randn(BATCH, QUERIES, 11), torch.randn(BATCH, KEYS, 13)
    projected_BKA = score.project_key(key)
    scores_BQK = score(query, projected_BKA)
    assert projected_BKA.shape == (BATCH, KEYS, 17)
    assert scores_BQK.shape == (BATCH, QUERIES, KEYS)
    w_q = score.w.weight @ query[1, 2] + score.w.bias
    one = score.v @ torch.tanh(w_q + score.u.weight @ key[1, 3])
    torch.testing.assert_close(scores_BQK[1, 2, 3], one)


def test_attention_takes_the_additive_score() -> None:
    score = AdditiveScore(d_query=11, d_key=13, d_alignment=17)
    query, key = torch.randn(BATCH, QUERIES, 11), torch.randn(BATCH, KEYS, 13)
    attended = attention(query, score.project_key(key), key, score=score)
    assert attended.values.shape == (BATCH, QUERIES, 13)
    attended.values.sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in score.parameters())


# What holds for any shape

ROUNDING = {"atol": 1e-4, "rtol": 1e-4}
"""Sums of products of numbers around 10, added up in another order."""


@settings(max_examples=50)
@given(cases())
def test_weights_of_a_row_sum_to_one_or_are_all_zero(case: Case) -> None:
    query, key, value, mask = case
    weights = attention(query, key, value, mask).weights
    sees_something = mask.expand_as(weights).any(dim=-1)
    torch.testing.assert_close(weights.sum(dim=-1), sees_something.to(weights.dtype))
    assert (weights >= 0).all()
    assert not weights[~mask.expand_as(weights)].any()


@settings(max_examples=50)
@given(cases())
def test_a_masked_key_has_no_influence(case: Case) -> None:
    query, key, value, mask = case
    hidden_K = ~mask.expand(query.shape[0], query.shape[1], query.shape[2], -1).any(dim=2)
    key_noise, value_noise = torch.full_like(key, 1e4), torch.full_like(value, -1e4)
    other_key = torch.where(hidden_K[..., None], key_noise, key)
    other_value = torch.where(hidden_K[..., None], value_noise, value)
    for attend in (lambda *a: attention(*a).values, fused_attention):
        noisy, plain = attend(query, other_key, other_value, mask), attend(query, key, value, mask)
        torch.testing.assert_close(noisy, plain, **ROUNDING)


@settings(max_examples=50)
@given(cases())
def test_the_mix_stays_between_the_least_and_the_greatest_value(case: Case) -> None:
    query, key, value, _ = case
    mixed = attention(query, key, value).values
    assert (mixed <= value.amax(dim=-2, keepdim=True) + 1e-5).all()
    assert (mixed >= value.amin(dim=-2, keepdim=True) - 1e-5).all()


@settings(max_examples=50)
@given(cases())
def test_the_fused_kernel_agrees_with_the_specification(case: Case) -> None:
    query, key, value, mask = case
    for seen in (None, mask):
        wanted = attention(query, key, value, seen).values
        torch.testing.assert_close(fused_attention(query, key, value, seen), wanted, **ROUNDING)


@settings(max_examples=50)
@given(cases(), st.integers(1, 7))
def test_the_fused_causal_flag_is_the_causal_mask(case: Case, num_queries: int) -> None:
    query, key, value, _ = case
    query = query[:, :, :1].expand(-1, -1, min(num_queries, key.shape[2]), -1)
    mask_QK = causal_mask(query.shape[2], key.shape[2])
    wanted = attention(query, key, value, mask_QK).values
    torch.testing.assert_close(fused_attention(query, key, value, causal=True), wanted, **ROUNDING)


def test_adding_a_constant_to_every_score_changes_no_weight() -> None:
    scores_QK = torch.randn(QUERIES, KEYS)
    torch.testing.assert_close(masked_softmax(scores_QK + 17), masked_softmax(scores_QK))


# Fast path and plain path, gradients included


def values_and_gradients(attend: str, mask: Tensor | None, causal: bool = False) -> list[Tensor]:
    """The mixed values, and the gradients of queries, keys and values, of the same case whenever it is called."""
    torch.manual_seed(7)
    tensors = random_case()
    if attend == "fused":
        values = fused_attention(*tensors, mask, causal)
    else:
        values = attention(*tensors, causal_mask(QUERIES, KEYS) if causal else mask).values
    (values * torch.randn_like(values)).sum().backward()
    return [values, *(tensor.grad for tensor in tensors if tensor.grad is not None)]


@pytest.mark.parametrize("shape", [None, (BATCH, 1, 1, KEYS), (BATCH, 1, QUERIES, KEYS), (QUERIES, KEYS)])
def test_the_fused_kernel_has_the_gradients_of_the_specification(shape: tuple[int, ...] | None) -> None:
    mask = None if shape is None else torch.rand(shape) < 0.6
    for fused, plain in zip(values_and_gradients("fused", mask), values_and_gradients("plain", mask), strict=True):
        torch.testing.assert_close(fused, plain, atol=1e-5, rtol=1e-5)


def test_the_fused_causal_flag_has_the_gradients_of_the_causal_mask() -> None:
    fused, plain = (values_and_gradients(attend, None, causal=True) for attend in ("fused", "plain"))
    for ours, wanted in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("attend", ["fused", "plain"])
def test_a_row_that_may_look_nowhere_is_zero_and_makes_no_nan(attend: str) -> None:
    for shape in ((BATCH, 1, 1, KEYS), (BATCH, 1, QUERIES, KEYS), (QUERIES, KEYS)):
        mask = torch.ones(shape, dtype=torch.bool)
        mask[0] = False
        values, *gradients = values_and_gradients(attend, mask)
        blind = values[:, :, 0] if len(shape) == 2 else values[0]
        assert not blind.any()
        assert values.isfinite().all()
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_a_blind_row_is_zero_and_both_paths_agree(dtype: torch.dtype) -> None:
    query, key, value = random_case(dtype)
    mask = torch.rand(BATCH, 1, QUERIES, KEYS) < 0.6
    mask[0, 0, 3] = False
    plain, fused = attention(query, key, value, mask), fused_attention(query, key, value, mask)
    assert plain.values.dtype == fused.dtype == dtype
    assert not plain.weights[0, :, 3].any()
    assert not fused[0, :, 3].any()
    torch.testing.assert_close(plain.values, fused, atol=0.03, rtol=0.03)


def test_a_score_near_the_lowest_number_still_outweighs_a_masked_one() -> None:
    scores_QK = torch.tensor([[60_000.0, -60_000.0]], dtype=torch.float16)
    weights_QK = masked_softmax(scores_QK, torch.tensor([[False, True]]))
    assert weights_QK.tolist() == [[0.0, 1.0]]


# Shapes that do not fit


def test_a_query_and_a_key_of_different_widths_are_refused() -> None:
    with pytest.raises(RuntimeError, match="size"):
        attention(torch.randn(QUERIES, 11), torch.randn(KEYS, 13), torch.randn(KEYS, D_V))
