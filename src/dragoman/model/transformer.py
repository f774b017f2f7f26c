"""The Transformer (Figure 1): source ids and target ids in, one distribution over pieces per target position out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.decoder import Decoder, Memory
from dragoman.model.embedding import Embedding, check_ids, logits, make_pieces
from dragoman.model.encoder import Encoder
from dragoman.model.mask import padding_mask
from dragoman.model.multi_head import KeyValue
from dragoman.model.record import Record, within


@dataclass(frozen=True)
class State:
    """Where decoding stands: the source as the decoder sees it, and the keys and values of what was written."""

    memory: Memory
    cache: tuple[KeyValue, ...] = ()
    length: int = 0

    def select(self, rows_B: Tensor) -> State:
        """The batch's rows in another order, repeated or left out: how a beam is reordered and a sentence leaves."""
        return State(self.memory.select(rows_B), tuple(block.select(rows_B) for block in self.cache), self.length)


@dataclass(frozen=True)
class Step:
    """The next piece's logits (B, V), the vectors that they are made of, and the state to go on from."""

    logits_BV: Tensor
    hidden_BD: Tensor
    state: State


class Transformer(nn.Module):
    """Encoder, decoder, and the matrix they share with the output."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        shared, d_model = config.share_embeddings, config.d_model
        target_pieces = make_pieces(config.vocab_size, d_model)
        source_pieces = target_pieces if shared else make_pieces(config.num_source_pieces, d_model)
        self.source_embedding = Embedding(config, source_pieces, "source")
        self.encoder = Encoder(config)
        self.target_embedding = Embedding(config, target_pieces, "target")
        self.decoder = Decoder(config)
        self.output_bias_V = nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits (B, T, V) of the piece after each position of a target that begins with the begin piece."""
        return self.logits(self.hidden(source_BS, target_BT))

    def hidden(self, source_BS: Tensor, target_BT: Tensor, record: Record | None = None) -> Tensor:
        """The decoder's output (B, T, D); the loss takes logits of its real positions only."""
        check_ids(target_BT, "target")
        memory = self.encode(source_BS, record).memory
        embedded_BTD = self.target_embedding(target_BT, record=within(record, "target"))
        return self.decoder(embedded_BTD, memory, record=within(record, "decoder")).hidden_BTD  # type: ignore[no-any-return]

    def encode(self, source_BS: Tensor, record: Record | None = None) -> State:
        """Read the source: the state before anything is written."""
        check_ids(source_BS, "source")
        mask_B11S = padding_mask(source_BS, self.config.padding_id)
        embedded_BSD = self.source_embedding(source_BS, record=within(record, "source"))
        encoded_BSD = self.encoder(embedded_BSD, mask_B11S, within(record, "encoder"))
        return State(self.decoder.remember(encoded_BSD, mask_B11S))

    def step(self, last_B: Tensor, state: State) -> Step:
        """Write one piece: what may follow `last_B` (the begin piece at first)."""
        embedded_B1D = self.target_embedding(last_B[:, None], start=state.length)
        decoded = self.decoder(embedded_B1D, state.memory, state.cache)
        hidden_BD = decoded.hidden_BTD[:, 0]
        return Step(self.logits(hidden_BD), hidden_BD, State(state.memory, decoded.cache, state.length + 1))

    def logits(self, hidden_D: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return logits(hidden_D, self.target_embedding.pieces, self.output_bias_V)

    @property
    def output_weight_VD(self) -> Tensor:
        """The matrix that turns hidden vectors into logits: the target embedding's."""
        return self.target_embedding.pieces.weight

    def num_parameters(self, body: bool = False) -> int:
        """Parameters, each counted once; of the body alone, without embeddings, positions and output, if asked."""
        parts = (self.encoder, self.decoder) if body else (self,)
        return sum(parameter.numel() for part in parts for parameter in part.parameters())
