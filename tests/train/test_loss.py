"""Label-smoothed cross-entropy: the specification, and the chunked path that must agree."""

import math
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.train import loss as loss_module
from dragoman.train.loss import Lesson, Loss, agreeing_loss, chunked_loss, smoothed_loss, taught_loss

ROWS, D_MODEL, VOCABULARY = 13, 7, 17
with_and_without_bias = pytest.mark.parametrize("bias", [False, True])
every_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
every_chunk = pytest.mark.parametrize("rows", [1, 2, 5, 13, 1000])


def case(bias: bool, dtype: torch.dtype = torch.float32) -> tuple[list[Tensor], Tensor]:
    """Hidden states, weight and, if asked, bias; and targets: the same whenever it is called."""
    generator = torch.Generator().manual_seed(3)
    tensors = [torch.randn(ROWS, D_MODEL, generator=generator), torch.randn(VOCABULARY, D_MODEL, generator=generator)]
    if bias:
        tensors.append(torch.randn(VOCABULARY, generator=generator))
    leaves = [tensor.to(dtype).requires_grad_() for tensor in tensors]
    return leaves, torch.randint(VOCABULARY, (ROWS,), generator=generator)


def chunked(leaves: list[Tensor], target_N: Tensor, smoothing: float) -> Loss:
    hidden_ND, weight_VD, *bias_V = leaves
    return chunked_loss(hidden_ND, weight_VD, bias_V[0] if bias_V else None, target_N, smoothing)


@pytest.fixture
def in_chunks(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(loss_module, "CHUNK_CELLS", rows * VOCABULARY + 1)


def test_label_smoothing_on_a_known_distribution() -> None:
    # p = (1/2, 1/4, 1/8, 1/8), smoothing 0.2: q = (0.85, 0.05, 0.05, 0.05), so 0.85 + 0.1 + 0.15 + 0.15 bits.
    logits_NV = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    assert smoothed_loss(logits_NV, torch.tensor([0]), 0.2).item() == pytest.approx(1.25 * math.log(2))


def test_equal_logits_cost_the_logarithm_of_the_vocabulary_whatever_the_smoothing() -> None:
    for smoothing in (0.0, 0.1, 0.5):
        cost = smoothed_loss(torch.zeros(3, VOCABULARY), torch.tensor([2, 3, 5]), smoothing)
        assert cost.item() == pytest.approx(3 * math.log(VOCABULARY))


@every_smoothing
def test_the_specification_is_torchs_cross_entropy(smoothing: float) -> None:
    logits_NV, target_N = torch.randn(ROWS, VOCABULARY), torch.randint(VOCABULARY, (ROWS,))
    wanted = F.cross_entropy(logits_NV, target_N, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(smoothed_loss(logits_NV, target_N, smoothing), wanted)


@every_chunk
@every_smoothing
@with_and_without_bias
@pytest.mark.usefixtures("in_chunks")
def test_in_chunks_of_any_size_value_and_gradients_are_those_of_the_whole(
    bias: bool, smoothing: float, rows: int
) -> None:
    ours, target_N = case(bias)
    theirs, _ = case(bias)
    in_parts = chunked(ours, target_N, smoothing).smoothed
    logits_NV = F.linear(*theirs)
    torch.testing.assert_close(in_parts, smoothed_loss(logits_NV, target_N, smoothing))
    wanted = F.cross_entropy(logits_NV, target_N, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(in_parts, wanted)
    (3 * in_parts).backward()  # any factor, as a step's number of pieces is one
    (3 * wanted).backward()
    for our_leaf, their_leaf in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our_leaf.grad, their_leaf.grad, atol=1e-5, rtol=1e-5)


@every_chunk
@every_smoothing
@with_and_without_bias
@pytest.mark.usefixtures("in_chunks")
def test_in_chunks_of_any_size_two_passes_agree_as_the_whole_does(bias: bool, smoothing: float, rows: int) -> None:
    pairs = 6  # rows of either pass; the last of the case's is left out
    ours, target_N = case(bias)
    theirs, _ = case(bias)
    in_parts = chunked_loss(
        ours[0][: 2 * pairs], ours[1], ours[2] if bias else None, target_N[:pairs], smoothing, r_drop=2.5
    )
    logits_PNV = F.linear(*theirs)[: 2 * pairs].unflatten(0, (2, pairs))
    wanted = agreeing_loss(logits_PNV, target_N[:pairs], smoothing, r_drop=2.5)
    torch.testing.assert_close(in_parts.smoothed, wanted)
    plain = F.cross_entropy(logits_PNV.flatten(0, 1), target_N[:pairs].repeat(2), reduction="sum") / 2
    torch.testing.assert_close(in_parts.plain, plain)
    (3 * in_parts.smoothed).backward()
    (3 * wanted).backward()
    for our_leaf, their_leaf in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our_leaf.grad, their_leaf.grad, atol=1e-5, rtol=1e-5)


def make_lesson(num_teachers: int) -> Lesson:
    """What teachers of width 5 say of the case's rows; of every third they say nothing."""
    generator = torch.Generator().manual_seed(11)

    def drawn(*shape: int) -> list[Tensor]:
        return [torch.randn(shape, generator=generator) for _ in range(num_teachers)]

    share_N = torch.tensor([0.0 if row % 3 == 0 else 0.7 for row in range(ROWS)])
    return Lesson(drawn(ROWS, 5), drawn(VOCABULARY, 5), drawn(VOCABULARY), share_N)


@pytest.mark.parametrize("num_teachers", [1, 2])
@every_chunk
@every_smoothing
@with_and_without_bias
@pytest.mark.usefixtures("in_chunks")
def test_in_chunks_of_any_size_teachers_are_heard_as_by_the_whole(
    bias: bool, smoothing: float, rows: int, num_teachers: int
) -> None:
    lesson = make_lesson(num_teachers)
    ours, target_N = case(bias)
    theirs, _ = case(bias)
    in_parts = chunked_loss(ours[0], ours[1], ours[2] if bias else None, target_N, smoothing, lesson=lesson)
    logits_NV, taught_NV = F.linear(*theirs), lesson.probability(slice(None))
    wanted = taught_loss(logits_NV, target_N, smoothing, taught_NV, lesson.share_N)
    torch.testing.assert_close(in_parts.smoothed, wanted)
    torch.testing.assert_close(in_parts.plain, F.cross_entropy(logits_NV, target_N, reduction="sum"))
    (3 * in_parts.smoothed).backward()
    (3 * wanted).backward()
    for our_leaf, their_leaf in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our_leaf.grad, their_leaf.grad, atol=1e-5, rtol=1e-5)


@every_smoothing
def test_a_share_of_nothing_is_the_loss_without_teachers_and_of_all_is_theirs_alone(smoothing: float) -> None:
    (hidden_ND, weight_VD), target_N = case(bias=False)
    logits_NV, taught_NV = hidden_ND @ weight_VD.T, make_lesson(1).probability(slice(None))
    nothing, all_of_it = (
        taught_loss(logits_NV, target_N, smoothing, taught_NV, torch.full((ROWS,), share)) for share in (0.0, 1.0)
    )
    torch.testing.assert_close(nothing, smoothed_loss(logits_NV, target_N, smoothing))
    torch.testing.assert_close(all_of_it, F.cross_entropy(logits_NV, taught_NV, reduction="sum"))


@every_smoothing
def test_the_plain_loss_is_the_unsmoothed_one(smoothing: float) -> None:
    leaves, target_N = case(bias=True)
    plain = chunked(leaves, target_N, smoothing).plain
    torch.testing.assert_close(plain, F.cross_entropy(F.linear(*leaves), target_N, reduction="sum"))
    assert not plain.requires_grad


@with_and_without_bias
def test_two_halves_sum_to_the_whole_in_value_and_gradient(bias: bool) -> None:
    whole_leaves, target_N = case(bias)
    half_leaves, _ = case(bias)
    whole = chunked(whole_leaves, target_N, 0.1)
    hidden_ND, *weights = half_leaves
    halves = [chunked([hidden_ND[part], *weights], target_N[part], 0.1) for part in (slice(0, 5), slice(5, None))]
    torch.testing.assert_close(halves[0].smoothed + halves[1].smoothed, whole.smoothed)
    torch.testing.assert_close(halves[0].plain + halves[1].plain, whole.plain)
    whole.smoothed.backward()
    (halves[0].smoothed + halves[1].smoothed).backward()
    for one, other in zip(whole_leaves, half_leaves, strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-5)


def test_without_gradients_the_value_is_the_same() -> None:
    leaves, target_N = case(bias=True)
    trained = chunked(leaves, target_N, 0.1)
    with torch.no_grad():
        watched = chunked(leaves, target_N, 0.1)
    torch.testing.assert_close(watched.smoothed, trained.smoothed.detach())
    torch.testing.assert_close(watched.plain, trained.plain)
    assert not watched.smoothed.requires_grad


def test_without_gradients_none_are_made() -> None:
    leaves, target_N = case(bias=True)
    with torch.no_grad(), mock.patch.object(torch.Tensor, "scatter_add_", side_effect=AssertionError("a gradient")):
        chunked(leaves, target_N, 0.1)


def test_no_rows_cost_nothing() -> None:
    leaves, _ = case(bias=True)
    nothing = chunked([leaves[0][:0], *leaves[1:]], torch.empty(0, dtype=torch.int64), 0.1)
    nothing.smoothed.backward()
    assert nothing.smoothed.item() == nothing.plain.item() == 0
    assert not leaves[1].grad.any()


def test_large_logits_stay_finite() -> None:
    leaves, target_N = case(bias=False)
    loss = chunked([leaves[0] * 1e4, leaves[1]], target_N, 0.1)
    loss.smoothed.backward()
    assert loss.smoothed.isfinite()
    assert leaves[0].grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_in_single_and_stays_close(dtype: torch.dtype) -> None:
    leaves, target_N = case(bias=True, dtype=dtype)
    exact, _ = case(bias=True)
    loss, wanted = chunked(leaves, target_N, 0.1), chunked(exact, target_N, 0.1)
    assert loss.smoothed.dtype == torch.float32
    torch.testing.assert_close(loss.smoothed, wanted.smoothed, atol=0.3, rtol=0.03)
    loss.smoothed.backward()
    wanted.smoothed.backward()
    for half, single in zip(leaves, exact, strict=True):
        assert half.grad.dtype == dtype
        torch.testing.assert_close(half.grad.float(), single.grad, atol=0.1, rtol=0.1)
