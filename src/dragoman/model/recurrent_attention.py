"""What a recurrent decoder sees of the source while it writes a piece: its context c_i.

    additive    e_ij = v . tanh(W s_(i-1) + U h_j), c_i the mix of annotations h_j      Bahdanau, Cho and Bengio, 3.1
    dot         q = W_Q s_(i-1), k_j = W_K h_j, e_ij = q . k_j, c_i the mix of W_V h_j   the lecture notes' linear form
    none        c_i is the same vector for all i: what attention was invented to mend    Cho et al. 2014

The first two are `attention`, the Transformer's function, with another score.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.attention import AdditiveScore, Attended, attention, dot_product
from dragoman.model.recurrent_encoder import Annotations


@dataclass(frozen=True)
class SourceMemory:
    """A source's keys (B, S, A) and values (B, S, C), computed once, and where it is padded (B, 1, S)."""

    key_BSA: Tensor
    value_BSC: Tensor
    mask_B1S: Tensor

    def select(self, rows_B: Tensor) -> SourceMemory:
        return SourceMemory(*(part.index_select(0, rows_B) for part in (self.key_BSA, self.value_BSC, self.mask_B1S)))


class AdditiveAttention(nn.Module):
    """The alignment model: d_k is its inner width; values are the annotations themselves."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.d_k is not None
        self.score = AdditiveScore(config.d_ff, 2 * config.d_ff, config.d_k)
        self.d_context = 2 * config.d_ff

    def remember(self, annotations: Annotations) -> SourceMemory:
        h_BSJ = annotations.h_BSJ
        return SourceMemory(self.score.project_key(h_BSJ), h_BSJ, annotations.mask_BS[:, None])

    def scores(self, state_BU: Tensor, memory: SourceMemory) -> Tensor:
        """How well the state matches each source piece: (B, 1, S)."""
        scores_B1S: Tensor = self.score(state_BU[:, None], memory.key_BSA)
        return scores_B1S

    def forward(self, state_BU: Tensor, memory: SourceMemory) -> Attended:
        """The context (B, 1, C) that the state asks for, and the weights (B, 1, S) that mixed it."""
        return attention(state_BU[:, None], memory.key_BSA, memory.value_BSC, memory.mask_B1S, self.score)


class DotAttention(nn.Module):
    """W_Q, W_K and W_V, and no division by sqrt(d_k): the notes' form before the Transformer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.d_k is not None
        assert config.d_v is not None
        self.w_q = nn.Linear(config.d_ff, config.d_k, bias=False)
        self.w_k = nn.Linear(2 * config.d_ff, config.d_k, bias=False)
        self.w_v = nn.Linear(2 * config.d_ff, config.d_v, bias=False)
        for linear in (self.w_q, self.w_k, self.w_v):
            nn.init.xavier_uniform_(linear.weight)
        self.d_context = config.d_v

    def remember(self, annotations: Annotations) -> SourceMemory:
        h_BSJ = annotations.h_BSJ
        return SourceMemory(self.w_k(h_BSJ), self.w_v(h_BSJ), annotations.mask_BS[:, None])

    def scores(self, state_BU: Tensor, memory: SourceMemory) -> Tensor:
        """q . k_j: (B, 1, S)."""
        return dot_product(self.w_q(state_BU)[:, None], memory.key_BSA)

    def forward(self, state_BU: Tensor, memory: SourceMemory) -> Attended:
        query_B1A = self.w_q(state_BU)[:, None]
        return attention(query_B1A, memory.key_BSA, memory.value_BSC, memory.mask_B1S, dot_product)


class FixedContext(nn.Module):
    """No attention: a source is one vector, the last words of both networks, whatever the state asks for."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.d_context = 2 * config.d_ff

    def remember(self, annotations: Annotations) -> SourceMemory:
        summary_BJ = torch.cat((annotations.last_forward_BU, annotations.first_backward_BU), dim=-1)
        nothing_B10 = summary_BJ.new_zeros(len(summary_BJ), 1, 0)
        return SourceMemory(nothing_B10, summary_BJ[:, None], annotations.mask_BS[:, None, :1])


Look = AdditiveAttention | DotAttention | FixedContext


def make_look(config: ModelConfig) -> Look:
    """The way of looking at the source that the config names."""
    kinds: dict[str, type[Look]] = {"additive": AdditiveAttention, "dot": DotAttention, "none": FixedContext}
    return kinds[config.recurrent_attention](config)
