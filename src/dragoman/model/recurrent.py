"""The RNN translator (Bahdanau, Cho and Bengio 2015), where attention came from, on the Transformer's rails.

    source ids -> embedding -> bidirectional encoder -> annotations -> decoder -> maxout readout -> logits

A `ModelConfig` of architecture "recurrent" has other meanings for some sizes: d_model is the width of the embeddings,
d_ff the units of each recurrent network, d_k the width of the alignment (d_v, of the linear form's values). With
share_embeddings one matrix serves source, target and output, and the readout is d_model wide; without it each has its
own, as printed, and the readout is half as wide as the state.

    recurrent_cell         GRU and LSTM, a step each
    recurrent_encoder      reads forward and backward                            3.2
    recurrent_attention    additive, the notes' linear form, or a fixed context  3.1
    recurrent_decoder      writes, and its state                                 3.1, A.2.2
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.dropout import Dropout
from dragoman.model.embedding import Embedding, check_ids, make_pieces
from dragoman.model.record import Record, within
from dragoman.model.recurrent_decoder import RecurrentDecoder, RecurrentState
from dragoman.model.recurrent_encoder import Annotations, BidirectionalEncoder


@dataclass(frozen=True)
class RecurrentStep:
    """The next piece's logits (B, V), the readouts that they are made of, and the state to go on from."""

    logits_BV: Tensor
    hidden_BD: Tensor
    state: RecurrentState


class RecurrentTranslator(nn.Module):
    """Encoder, decoder, and the matrices at both ends."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        shared, d_model = config.share_embeddings, config.d_model
        target_pieces = make_pieces(config.vocab_size, d_model)
        source_pieces = target_pieces if shared else make_pieces(config.num_source_pieces, d_model)
        self.source_embedding = Embedding(config, source_pieces, "source")
        self.encoder = BidirectionalEncoder(config)
        self.annotation_dropout = Dropout(config.dropout)
        self.target_embedding = Embedding(config, target_pieces, "target")
        self.decoder = RecurrentDecoder(config)
        self.readout_dropout = Dropout(config.dropout)
        self.output_embedding = None if shared else make_pieces(config.vocab_size, config.d_readout)
        self.output_bias_V = nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits (B, T, V) of the piece after each position of a target that begins with the begin piece."""
        return self.logits(self.hidden(source_BS, target_BT))

    def hidden(self, source_BS: Tensor, target_BT: Tensor, record: Record | None = None) -> Tensor:
        """The readout (B, T, L), which the output matrix turns into logits."""
        check_ids(target_BT, "target")
        return self._write(target_BT, self.encode(source_BS, record), record)[0]

    def encode(self, source_BS: Tensor, record: Record | None = None) -> RecurrentState:
        """Read the source: the state before anything is written."""
        check_ids(source_BS, "source")
        embedded_BSD = self.source_embedding(source_BS, record=within(record, "source"))
        annotations: Annotations = self.encoder(embedded_BSD, source_BS != self.config.padding_id)
        if record is not None:
            record.note("encoder.annotations", annotations.h_BSJ)
        return self.decoder.start(Annotations(self.annotation_dropout(annotations.h_BSJ), annotations.mask_BS))

    def step(self, last_B: Tensor, state: RecurrentState) -> RecurrentStep:
        """Write one piece: what may follow `last_B` (the begin piece at first)."""
        hidden_B1L, after = self._write(last_B[:, None], state)
        return RecurrentStep(self.logits(hidden_B1L[:, 0]), hidden_B1L[:, 0], after)

    def logits(self, hidden_L: Tensor) -> Tensor:
        """(..., L) -> (..., V)."""
        return F.linear(hidden_L, self.output_weight_VD, self.output_bias_V)

    @property
    def output_weight_VD(self) -> Tensor:
        """The matrix that turns readouts into logits: the target embedding's, if that is shared, or its own."""
        pieces = self.target_embedding.pieces if self.output_embedding is None else self.output_embedding
        return pieces.weight

    def num_parameters(self, body: bool = False) -> int:
        """Parameters, each counted once; of the body alone, without embeddings and output, if asked."""
        parts = (self.encoder, self.decoder) if body else (self,)
        return sum(parameter.numel() for part in parts for parameter in part.parameters())

    def _write(
        self, target_BT: Tensor, state: RecurrentState, record: Record | None = None
    ) -> tuple[Tensor, RecurrentState]:
        embedded_BTD = self.target_embedding(target_BT, state.length, within(record, "target"))
        decoded = self.decoder(embedded_BTD, state, within(record, "decoder"))
        return self.readout_dropout(decoded.hidden_BTL), decoded.state
