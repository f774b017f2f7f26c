"""Attention (section 3.2.1): `attention` is the specification, `fused_attention` the fast path that agrees with it.

The lecture notes' forms are one call each:

    attention(X, X, X, score=dot_product)       softmax(X X^T) X, self-attention without any weights
    attention_layer(X, X_prime, W_Q, W_K, W_V)  Attn(X, X'): X' asks, X answers
    attention_layer(X, X, W_Q, W_K, W_V)        Attn(X, X): self-attention
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.mask import causal_mask

Score = Callable[[Tensor, Tensor], Tensor]
"""(..., Q, C) and (..., K, C) -> how well each query matches each key (..., Q, K)."""


@dataclass(frozen=True)
class Attended:
    """What attention returns: the mixed values (..., Q, C) and the weights that mixed them (..., Q, K)."""

    values: Tensor
    weights: Tensor


def dot_product(query_QC: Tensor, key_KC: Tensor) -> Tensor:
    """Q K^T, the lecture notes' first form."""
    scores_QK: Tensor = torch.einsum("...QC,...KC->...QK", query_QC, key_KC)
    return scores_QK


def scaled_dot_product(query_QC: Tensor, key_KC: Tensor) -> Tensor:
    """Q K^T / sqrt(d_k): the division keeps the softmax out of its flat regions when d_k is large."""
    return dot_product(query_QC, key_KC) / math.sqrt(query_QC.shape[-1])


def additive(query_QA: Tensor, key_KA: Tensor, v_A: Tensor) -> Tensor:
    """v . tanh(q + k), for queries and keys that went through W and U (Bahdanau, Cho and Bengio)."""
    return torch.tanh(query_QA.unsqueeze(-2) + key_KA.unsqueeze(-3)) @ v_A


class AdditiveScore(nn.Module):
    """v . tanh(W q + U k) with its weights; `project_key` apart, so that a source's keys are projected once."""

    def __init__(self, d_query: int, d_key: int, d_alignment: int) -> None:
        super().__init__()
        self.w = nn.Linear(d_query, d_alignment)
        self.u = nn.Linear(d_key, d_alignment, bias=False)
        self.v = nn.Parameter(torch.empty(d_alignment))
        nn.init.normal_(self.v, std=d_alignment**-0.5)

    def project_key(self, key: Tensor) -> Tensor:
        """U k: (..., K, C) -> (..., K, A)."""
        projected: Tensor = self.u(key)
        return projected

    def forward(self, query: Tensor, projected_key_KA: Tensor) -> Tensor:
        return additive(self.w(query), projected_key_KA, self.v)


def masked_softmax(scores_QK: Tensor, mask_QK: Tensor | None = None) -> Tensor:
    """softmax over the keys that may be looked at. A row that may look nowhere has all weights 0, and no NaN."""
    if mask_QK is None:
        return scores_QK.softmax(dim=-1)
    lowest = torch.finfo(scores_QK.dtype).min
    return scores_QK.masked_fill(~mask_QK, lowest).softmax(dim=-1).masked_fill(~mask_QK, 0.0)


def attention(
    query_QC: Tensor,
    key_KC: Tensor,
    value_KC: Tensor,
    mask_QK: Tensor | None = None,
    score: Score = scaled_dot_product,
) -> Attended:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, or with another score.

    Any axes may stand before the last two; keys and values may differ in width; the mask must broadcast to the weights.
    """
    weights_QK = masked_softmax(score(query_QC, key_KC), mask_QK)
    return Attended(torch.einsum("...QK,...KC->...QC", weights_QK, value_KC), weights_QK)


def attention_layer(x_KD: Tensor, x_prime_QD: Tensor, w_q_DC: Tensor, w_k_DC: Tensor, w_v_DC: Tensor) -> Attended:
    """The notes' layer Attn(X, X'): queries X' W_Q, keys X W_K, values X W_V."""
    return attention(x_prime_QD @ w_q_DC, x_KD @ w_k_DC, x_KD @ w_v_DC)


def fused_attention(
    query_BHQC: Tensor,
    key_BHKC: Tensor,
    value_BHKC: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """`attention(...).values` in one kernel, for when nobody asks for the weights.

    `causal` says that the mask is the causal one, which the kernel then never builds; queries are the last positions.
    """
    num_queries, num_keys = query_BHQC.shape[-2], key_BHKC.shape[-2]
    if causal and num_queries != num_keys:  # the kernel's own causal mask counts from the first key
        mask, causal = causal_mask(num_queries, num_keys, query_BHQC.device), False
    if query_BHQC.device.type == "cpu" and query_BHQC.dtype in (torch.bfloat16, torch.float16):
        # For short rows the kernel's backward pass took twenty times as long in bfloat16 as in float32, with AMX.
        with torch.autocast("cpu", enabled=False):
            whole = (query_BHQC.float(), key_BHKC.float(), value_BHKC.float())
            return F.scaled_dot_product_attention(*whole, mask, dropout, causal).to(query_BHQC.dtype)
    return F.scaled_dot_product_attention(query_BHQC, key_BHKC, value_BHKC, mask, dropout, causal)
