"""Label-smoothed cross-entropy (section 5.4), on real positions only, without keeping every logit.

    loss = -sum_v q(v) log p(v),  q = (1 - smoothing) * one-hot(target) + smoothing / V

summed over pieces; the caller divides by the step's number of target pieces, across micro-batches and ranks alike.

R-Drop (Liang et al.) makes two passes with different dropout, and asks what they say of a piece, p and q, to agree:

    loss = (loss of p + loss of q) / 2 + r_drop * (KL(p || q) + KL(q || p)) / 4

Distillation has q go a share of the way to what teachers think, in the mean:

    q = (1 - share) * q + share * mean of the teachers' p
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK_CELLS = 2**22
"""Logits that are held at once: 16 MB in float32, which a large cache holds and any vocabulary fits."""


def smoothed_loss(logits_NV: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
    """The specification: the summed loss of logits that are all there."""
    log_probability_NV = logits_NV.float().log_softmax(dim=-1)
    right = -log_probability_NV.gather(1, target_N[:, None]).sum()
    anywhere = -log_probability_NV.mean(dim=-1).sum()
    return (1 - smoothing) * right + smoothing * anywhere


def agreeing_loss(logits_PNV: Tensor, target_N: Tensor, smoothing: float, r_drop: float) -> Tensor:
    """The specification of R-Drop, for the logits of two passes (P)."""
    one_NV, other_NV = logits_PNV.float().log_softmax(dim=-1).unbind()
    divergences = ((one_NV.exp() - other_NV.exp()) * (one_NV - other_NV)).sum()
    both = smoothed_loss(logits_PNV.flatten(0, 1), target_N.repeat(2), smoothing)
    return both / 2 + r_drop * divergences / 4


def taught_loss(logits_NV: Tensor, target_N: Tensor, smoothing: float, taught_NV: Tensor, share_N: Tensor) -> Tensor:
    """The specification of distillation: of the teachers' probabilities `taught_NV` each row has a share of its own."""
    log_probability_NV = logits_NV.float().log_softmax(dim=-1)
    target_NV = torch.full_like(log_probability_NV, smoothing / logits_NV.shape[1])
    target_NV.scatter_add_(1, target_N[:, None], target_NV.new_full((len(target_N), 1), 1 - smoothing))
    return -(target_NV.lerp(taught_NV, share_N[:, None]) * log_probability_NV).sum()


@dataclass(frozen=True)
class Lesson:
    """What teachers have to say of the rows: of each its hidden vectors and output layer, in the student's pieces."""

    hidden: Sequence[Tensor]
    weight: Sequence[Tensor]
    bias: Sequence[Tensor]
    share_N: Tensor

    def probability(self, chunk: slice) -> Tensor:
        """The mean of the teachers' probabilities (N, V) for some rows."""
        each = [
            F.linear(hidden_ND[chunk], weight_VD, bias_V).float().softmax(dim=-1)
            for hidden_ND, weight_VD, bias_V in zip(self.hidden, self.weight, self.bias, strict=True)
        ]
        return sum(each[1:], each[0]).div_(len(each))


@dataclass(frozen=True)
class Loss:
    """Summed over the batch's real target pieces: what is trained on, and the plain cross-entropy (for perplexity)."""

    smoothed: Tensor
    plain: Tensor


def chunked_loss(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    r_drop: float = 0.0,
    lesson: Lesson | None = None,
) -> Loss:
    """`smoothed_loss(hidden W^T + b)`, a few rows at a time; gradients are made on the way, so no logits are kept.

    With `r_drop`, `hidden_ND` has all rows of the one pass and then all of the other, and it is `agreeing_loss`; with
    a `lesson` it is `taught_loss`. There is no such thing as both.
    """
    assert not (r_drop and lesson)
    bias = weight_VD.new_zeros(0) if bias_V is None else bias_V
    wanted = torch.is_grad_enabled()  # inside the function it never is
    smoothed, plain = _ChunkedLoss.apply(hidden_ND, weight_VD, bias, target_N, smoothing, r_drop, lesson, wanted)  # type: ignore[no-untyped-call]
    return Loss(smoothed, plain)


@dataclass(frozen=True)
class _Judged:
    """The loss of some rows, and its gradient by their logits."""

    smoothed: Tensor
    plain: Tensor
    gradient_NV: Tensor


def _judge(logits_NV: Tensor, target_N: Tensor, smoothing: float, wanted: bool) -> _Judged:
    """The gradient of a softmax's cross-entropy is p - q, known as soon as the loss is; it takes the logits' place."""
    target_N1 = target_N[:, None]
    right_logit_N1 = logits_NV.gather(1, target_N1)
    mean_logit_N1 = logits_NV.mean(dim=-1, keepdim=True)
    highest_N1 = logits_NV.amax(dim=-1, keepdim=True)
    probability_NV = torch.softmax(logits_NV, dim=-1, out=logits_NV)
    log_sum_N1 = highest_N1 - probability_NV.amax(dim=-1, keepdim=True).log()
    plain = (log_sum_N1 - right_logit_N1).sum()
    smoothed = (1 - smoothing) * plain + smoothing * (log_sum_N1 - mean_logit_N1).sum()
    if wanted:
        probability_NV.sub_(smoothing / logits_NV.shape[1])
        probability_NV.scatter_add_(
            1, target_N1, target_N1.new_full((), smoothing - 1, dtype=torch.float32).expand_as(target_N1)
        )
    return _Judged(smoothed, plain, probability_NV)


def _judge_agreeing(logits_NV: Tensor, target_N: Tensor, smoothing: float, r_drop: float, wanted: bool) -> _Judged:
    """Rows of the one pass, then the same of the other. p's part of KL(p || q) + KL(q || p) has the gradient
    p (log p / q - KL(p || q)) + p - q, and q's the same the other way round.
    """
    log_probability_NV = logits_NV.log_softmax(dim=-1)
    ratio_NV = torch.sub(*log_probability_NV.chunk(2))
    one_NV, other_NV = log_probability_NV.exp_().chunk(2)
    one_N1, other_N1 = ((p_NV * ratio_NV).sum(dim=-1, keepdim=True) for p_NV in (one_NV, other_NV))
    judged = _judge(logits_NV, target_N.repeat(2), smoothing, wanted)
    if wanted:
        one_gradient_NV, other_gradient_NV = judged.gradient_NV.div_(2).chunk(2)
        one_gradient_NV.add_((ratio_NV + (1 - one_N1)).mul_(one_NV).sub_(other_NV), alpha=r_drop / 4)
        other_gradient_NV.add_((ratio_NV - (1 + other_N1)).mul_(other_NV).add_(one_NV), alpha=-r_drop / 4)
    divergences = (one_N1 - other_N1).sum()
    return _Judged(judged.smoothed / 2 + r_drop / 4 * divergences, judged.plain / 2, judged.gradient_NV)


def _judge_taught(
    logits_NV: Tensor, target_N: Tensor, smoothing: float, taught_NV: Tensor, share_N1: Tensor, wanted: bool
) -> _Judged:
    """What the target lacks of the teachers' is added to loss and gradient: the softmax' sum is the same for both."""
    target_N1, num_pieces = target_N[:, None], logits_NV.shape[1]
    expected_N1 = (1 - smoothing) * logits_NV.gather(1, target_N1) + smoothing * logits_NV.mean(dim=-1, keepdim=True)
    more_N1 = expected_N1 - (taught_NV * logits_NV).sum(dim=-1, keepdim=True)
    judged = _judge(logits_NV, target_N, smoothing, wanted)
    if wanted:
        judged.gradient_NV.addcmul_(taught_NV, share_N1, value=-1).add_(share_N1, alpha=smoothing / num_pieces)
        judged.gradient_NV.scatter_add_(1, target_N1, share_N1 * (1 - smoothing))
    return _Judged(judged.smoothed + (share_N1 * more_N1).sum(), judged.plain, judged.gradient_NV)


class _ChunkedLoss(torch.autograd.Function):
    """Loss and gradients in one pass over the rows."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor,
        target_N: Tensor,
        smoothing: float,
        r_drop: float,
        lesson: Lesson | None,
        wanted: bool,
    ) -> tuple[Tensor, Tensor]:
        passes = 2 if r_drop else 1
        hidden_PND = hidden_ND.unflatten(0, (passes, -1)) if len(hidden_ND) else hidden_ND.expand(passes, -1, -1)
        # Of two passes there is more to hold beside the logits, so half as many of them.
        rows = max(1, CHUNK_CELLS // (passes * passes * weight_VD.shape[0]))
        training = wanted and any(ctx.needs_input_grad)
        smoothed, plain = hidden_ND.new_zeros((), dtype=torch.float32), hidden_ND.new_zeros((), dtype=torch.float32)
        hidden_gradient_PND = torch.empty_like(hidden_PND) if training else None
        weight_gradient_VD = torch.zeros_like(weight_VD) if training else None
        bias_gradient_V = torch.zeros_like(bias_V)
        # Products are taken in the precision of the hidden vectors, sums in that of the weights.
        low_VD = weight_VD.to(hidden_ND.dtype)
        low_bias_V = bias_V.to(hidden_ND.dtype) if bias_V.numel() else None
        for start in range(0, hidden_PND.shape[1], rows):
            chunk = slice(start, start + rows)
            rows_ND = hidden_PND[:, chunk].flatten(0, 1)
            logits_NV = F.linear(rows_ND, low_VD, low_bias_V).float()
            if r_drop:
                judged = _judge_agreeing(logits_NV, target_N[chunk], smoothing, r_drop, training)
            elif lesson:
                taught_NV, share_N1 = lesson.probability(chunk), lesson.share_N[chunk, None]
                judged = _judge_taught(logits_NV, target_N[chunk], smoothing, taught_NV, share_N1, training)
            else:
                judged = _judge(logits_NV, target_N[chunk], smoothing, training)
            smoothed += judged.smoothed
            plain += judged.plain
            if hidden_gradient_PND is None or weight_gradient_VD is None:
                continue
            gradient_NV = judged.gradient_NV.to(hidden_ND.dtype)
            hidden_gradient_PND[:, chunk] = torch.mm(gradient_NV, low_VD).unflatten(0, (passes, -1))
            if hidden_ND.dtype == weight_VD.dtype:
                weight_gradient_VD.addmm_(gradient_NV.T, rows_ND)
            else:
                weight_gradient_VD += torch.mm(gradient_NV.T, rows_ND)
            if bias_V.numel():
                bias_gradient_V += gradient_NV.sum(dim=0)
        hidden_gradient_ND = None if hidden_gradient_PND is None else hidden_gradient_PND.view_as(hidden_ND)
        ctx.save_for_backward(hidden_gradient_ND, weight_gradient_VD, bias_gradient_V)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden_gradient_ND, weight_gradient_VD, bias_gradient_V = ctx.saved_tensors
        scale = gradients[0]
        scaled = (gradient * scale for gradient in (hidden_gradient_ND, weight_gradient_VD, bias_gradient_V))
        return *scaled, None, None, None, None, None
