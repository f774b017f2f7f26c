"""Multi-head attention (section 3.2.2): MultiHead(Q, K, V) = Concat(head_1 ... head_h) W_O.

h, d_k and d_v are free of each other and of d_model, as rows A and B of Table 3 need. W_Q, W_K and W_V are the rows of
one matrix, so that self-attention takes one product, and a source's keys and values another.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.attention import attention, fused_attention, scaled_dot_product
from dragoman.model.mask import causal_mask
from dragoman.model.record import Record


@dataclass(frozen=True)
class KeyValue:
    """Keys and values, split into heads: what a cache keeps. It goes in and comes out; nothing is kept in a module."""

    key_BHKC: Tensor
    value_BHKC: Tensor

    def append(self, new: KeyValue) -> KeyValue:
        """These positions, then the new ones."""
        return KeyValue(
            torch.cat((self.key_BHKC, new.key_BHKC), dim=2), torch.cat((self.value_BHKC, new.value_BHKC), dim=2)
        )

    def select(self, rows_B: Tensor) -> KeyValue:
        """The batch's rows in another order, repeated or left out."""
        return KeyValue(self.key_BHKC.index_select(0, rows_B), self.value_BHKC.index_select(0, rows_B))


def split_heads(x_BTE: Tensor, num_heads: int) -> Tensor:
    """(B, T, H * C) -> (B, H, T, C)."""
    batch, length, width = x_BTE.shape
    return x_BTE.view(batch, length, num_heads, width // num_heads).transpose(1, 2)


def join_heads(x_BHTC: Tensor) -> Tensor:
    """(B, H, T, C) -> (B, T, H * C): the paper's Concat."""
    return x_BHTC.transpose(1, 2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """h attention heads side by side, and W_O that mixes them."""

    def __init__(
        self, d_model: int, num_heads: int, d_k: int, d_v: int, bias: bool = False, weight_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.widths = (num_heads * d_k, num_heads * d_k, num_heads * d_v)
        self.weight_dropout = weight_dropout
        self.w_qkv = nn.Parameter(torch.empty(sum(self.widths), d_model))
        self.b_qkv = nn.Parameter(torch.zeros(sum(self.widths))) if bias else None
        self.w_o = nn.Linear(num_heads * d_v, d_model, bias=bias)
        for w_ED in self.w_qkv.split(self.widths):
            nn.init.xavier_uniform_(w_ED)
        nn.init.xavier_uniform_(self.w_o.weight)
        if bias:
            nn.init.zeros_(self.w_o.bias)

    def project(self, x_BTD: Tensor) -> tuple[Tensor, KeyValue]:
        """Queries, and keys with values, of the same positions: self-attention's one product."""
        query, key, value = F.linear(x_BTD, self.w_qkv, self.b_qkv).split(self.widths, dim=-1)
        return split_heads(query, self.num_heads), self._split(key, value)

    def project_query(self, x_BQD: Tensor) -> Tensor:
        """Queries alone: (B, Q, D) -> (B, H, Q, C)."""
        rows = self.widths[0]
        bias = None if self.b_qkv is None else self.b_qkv[:rows]
        return split_heads(F.linear(x_BQD, self.w_qkv[:rows], bias), self.num_heads)

    def project_memory(self, memory_BSD: Tensor) -> KeyValue:
        """Keys and values of what is attended to: once per source, however many steps are decoded."""
        rows = self.widths[0]
        bias = None if self.b_qkv is None else self.b_qkv[rows:]
        key, value = F.linear(memory_BSD, self.w_qkv[rows:], bias).split(self.widths[1:], dim=-1)
        return self._split(key, value)

    def attend(
        self,
        query_BHQC: Tensor,
        memory: KeyValue,
        mask: Tensor | None = None,
        causal: bool = False,
        record: Record | None = None,
    ) -> Tensor:
        """Each head's attention, joined, times W_O: (B, H, Q, C) -> (B, Q, D). Give a mask, or `causal`, not both."""
        key, value = memory.key_BHKC, memory.value_BHKC
        if record is None:
            rate = self.weight_dropout if self.training else 0.0
            output_BQD: Tensor = self.w_o(join_heads(fused_attention(query_BHQC, key, value, mask, causal, rate)))
            return output_BQD
        if causal:
            mask = causal_mask(query_BHQC.shape[-2], key.shape[-2], query_BHQC.device)
        attended = attention(query_BHQC, key, value, mask)
        output_BQD = self.w_o(join_heads(attended.values))
        record.note("query", query_BHQC)
        record.note("key", key)
        record.note("value", value)
        record.note("scores", scaled_dot_product(query_BHQC, key))
        record.note("weights", attended.weights)
        record.note("mixed", attended.values)
        record.note("output", output_BQD)
        return output_BQD

    def _split(self, key_BKE: Tensor, value_BKE: Tensor) -> KeyValue:
        return KeyValue(split_heads(key_BKE, self.num_heads), split_heads(value_BKE, self.num_heads))
