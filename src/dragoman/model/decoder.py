"""The decoder (section 3.1, the right of Figure 1): N blocks of masked self-attention, attention over the encoder's
output, and feed-forward; and the cache that lets it write one piece at a time without reading what it wrote again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.encoder import make_attention, make_feed_forward
from dragoman.model.multi_head import KeyValue
from dragoman.model.record import Record, within
from dragoman.model.residual import Residual, make_norm


@dataclass(frozen=True)
class Memory:
    """What the decoder asks of a source: each block's keys and values of it, computed once, and where it is padded."""

    blocks: tuple[KeyValue, ...]
    mask_B11S: Tensor

    def select(self, rows_B: Tensor) -> Memory:
        return Memory(tuple(block.select(rows_B) for block in self.blocks), self.mask_B11S.index_select(0, rows_B))


@dataclass(frozen=True)
class Decoded:
    """The decoder's output (B, T, D), and each block's keys and values of the target so far."""

    hidden_BTD: Tensor
    cache: tuple[KeyValue, ...]


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each with its residual."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = make_attention(config)
        self.self_attention_residual = Residual(config)
        self.cross_attention = make_attention(config)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = make_feed_forward(config)
        self.feed_forward_residual = Residual(config)

    def remember(self, encoded_BSD: Tensor) -> KeyValue:
        """The source's keys and values for this block's cross-attention."""
        return self.cross_attention.project_memory(encoded_BSD)

    def forward(
        self,
        x_BTD: Tensor,
        memory: KeyValue,
        memory_mask: Tensor | None = None,
        past: KeyValue | None = None,
        record: Record | None = None,
    ) -> tuple[Tensor, KeyValue]:
        """-> the block's output (B, T, D), and `past` with these positions appended."""
        residual = self.self_attention_residual
        query, present = self.self_attention.project(residual.before(x_BTD))
        present = present if past is None else past.append(present)
        # Padding needs no mask here: it comes last, and nothing real may look at what comes later.
        y_BTD = self.self_attention.attend(query, present, causal=True, record=within(record, "self_attention"))
        x_BTD = residual.after(x_BTD, y_BTD, within(record, "self_attention_residual"))

        residual = self.cross_attention_residual
        query = self.cross_attention.project_query(residual.before(x_BTD))
        y_BTD = self.cross_attention.attend(query, memory, memory_mask, record=within(record, "cross_attention"))
        x_BTD = residual.after(x_BTD, y_BTD, within(record, "cross_attention_residual"))

        residual = self.feed_forward_residual
        y_BTD = self.feed_forward(residual.before(x_BTD))
        return residual.after(x_BTD, y_BTD, within(record, "feed_forward_residual")), present


class Decoder(nn.Module):
    """The stack; with pre-norm, one more norm at its end."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        self.norm = make_norm(config) if config.norm_order == "pre" else nn.Identity()

    def remember(self, encoded_BSD: Tensor, mask_B11S: Tensor) -> Memory:
        """The source as each block will attend to it."""
        blocks = (cast(DecoderBlock, block) for block in self.blocks)
        return Memory(tuple(block.remember(encoded_BSD) for block in blocks), mask_B11S)

    def forward(
        self,
        x_BTD: Tensor,
        memory: Memory,
        past: tuple[KeyValue, ...] = (),
        record: Record | None = None,
    ) -> Decoded:
        cache = []
        for index, block in enumerate(self.blocks):
            block_past = past[index] if past else None
            x_BTD, present = block(x_BTD, memory.blocks[index], memory.mask_B11S, block_past, within(record, index))
            cache.append(present)
        return Decoded(self.norm(x_BTD), tuple(cache))
