"""Label-smoothed cross-entropy (section 5.4), on real positions only, without keeping every logit.

    loss = -sum_v q(v) log p(v),  q = (1 - smoothing) * one-hot(target) + smoothing / V

summed over pieces; the caller divides by the step's number of target pieces, across micro-batches and ranks alike.
"""

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


@dataclass(frozen=True)
class Loss:
    """Summed over the batch's real target pieces: what is trained on, and the plain cross-entropy (for perplexity)."""

    smoothed: Tensor
    plain: Tensor


def chunked_loss(
    hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, target_N: Tensor, smoothing: float
) -> Loss:
    """`smoothed_loss(hidden W^T + b)`, a few rows at a time; gradients are made on the way, so no logits are kept."""
    bias = weight_VD.new_zeros(0) if bias_V is None else bias_V
    wanted = torch.is_grad_enabled()  # inside the function it never is
    smoothed, plain = _ChunkedLoss.apply(hidden_ND, weight_VD, bias, target_N, smoothing, wanted)  # type: ignore[no-untyped-call]
    return Loss(smoothed, plain)


class _ChunkedLoss(torch.autograd.Function):
    """The gradient of a softmax's cross-entropy is p - q, known as soon as the loss is: both in one pass."""

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, target_N: Tensor, smoothing: float, wanted: bool
    ) -> tuple[Tensor, Tensor]:
        num_pieces = weight_VD.shape[0]
        rows = max(1, CHUNK_CELLS // num_pieces)
        training = wanted and any(ctx.needs_input_grad)
        smoothed, plain = hidden_ND.new_zeros((), dtype=torch.float32), hidden_ND.new_zeros((), dtype=torch.float32)
        hidden_gradient_ND = torch.empty_like(hidden_ND) if training else None
        weight_gradient_VD = torch.zeros_like(weight_VD) if training else None
        bias_gradient_V = torch.zeros_like(bias_V)
        for start in range(0, hidden_ND.shape[0], rows):
            chunk = slice(start, start + rows)
            logits_NV = F.linear(hidden_ND[chunk], weight_VD, bias_V if bias_V.numel() else None).float()
            target_N1 = target_N[chunk, None]
            right_logit_N1 = logits_NV.gather(1, target_N1)
            mean_logit_N1 = logits_NV.mean(dim=-1, keepdim=True)
            highest_N1 = logits_NV.amax(dim=-1, keepdim=True)
            probability_NV = torch.softmax(logits_NV, dim=-1, out=logits_NV)
            log_sum_N1 = highest_N1 - probability_NV.amax(dim=-1, keepdim=True).log()
            right = (log_sum_N1 - right_logit_N1).sum()
            plain += right
            smoothed += (1 - smoothing) * right + smoothing * (log_sum_N1 - mean_logit_N1).sum()
            if hidden_gradient_ND is None or weight_gradient_VD is None:
                continue
            gradient_NV = probability_NV.sub_(smoothing / num_pieces)
            gradient_NV.scatter_add_(
                1, target_N1, target_N1.new_full((), smoothing - 1, dtype=torch.float32).expand_as(target_N1)
            )
            gradient_NV = gradient_NV.to(hidden_ND.dtype)
            torch.mm(gradient_NV, weight_VD, out=hidden_gradient_ND[chunk])
            weight_gradient_VD.addmm_(gradient_NV.T, hidden_ND[chunk])
            if bias_V.numel():
                bias_gradient_V += gradient_NV.sum(dim=0)
        ctx.save_for_backward(hidden_gradient_ND, weight_gradient_VD, bias_gradient_V)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden_gradient_ND, weight_gradient_VD, bias_gradient_V = ctx.saved_tensors
        scale = gradients[0]
        return hidden_gradient_ND * scale, weight_gradient_VD * scale, bias_gradient_V * scale, None, None, None
