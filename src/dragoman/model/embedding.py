"""Embeddings and softmax (section 3.4): pieces to vectors and back, through one matrix."""

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import DragomanError, LengthError
from dragoman.model.dropout import Dropout
from dragoman.model.position import Position
from dragoman.model.record import Record


class Embedding(nn.Module):
    """Dropout(Embedding(ids) * sqrt(d_model) + position): ids (B, T) -> (B, T, D). `side` is for messages."""

    def __init__(self, config: ModelConfig, pieces: nn.Embedding, side: str) -> None:
        super().__init__()
        self.pieces = pieces
        # A recurrent network knows where it is.
        self.position = Position(config) if config.architecture == "transformer" else None
        self.dropout = Dropout(config.dropout)
        self.scale = config.d_model**0.5
        self.max_length = config.max_length
        self.side = side

    def forward(self, ids_BT: Tensor, start: int = 0, record: Record | None = None) -> Tensor:
        check_length(start + ids_BT.shape[1], self.max_length, self.side)
        pieces_BTD = self.pieces(ids_BT) * self.scale
        if record is not None:
            record.note("pieces", pieces_BTD)
        placed_BTD = pieces_BTD
        if self.position is not None:
            position_TD = self.position(ids_BT.shape[1], start)
            placed_BTD = pieces_BTD + position_TD
            if record is not None:
                record.note("position", position_TD)
        embedded_BTD: Tensor = self.dropout(placed_BTD)
        return embedded_BTD


def check_length(length: int, max_length: int, side: str) -> None:
    """Refuse what the model was not made for."""
    if length > max_length:
        raise LengthError(
            f"{side} has {length} pieces, the model takes at most {max_length}: "
            f"split the text or train with a larger max_length"
        )


def make_pieces(num_pieces: int, d_model: int) -> nn.Embedding:
    """The matrix (V, D); times sqrt(d_model) its rows have unit variance, as output weights they are small."""
    pieces = nn.Embedding(num_pieces, d_model)
    nn.init.normal_(pieces.weight, std=d_model**-0.5)
    return pieces


def logits(hidden_D: Tensor, pieces: nn.Embedding, bias_V: Tensor | None = None) -> Tensor:
    """How much each piece is called for: (..., D) -> (..., V), by the same matrix that embeds."""
    return F.linear(hidden_D, pieces.weight, bias_V)


def check_ids(ids_BS: Tensor, side: str) -> None:
    """Refuse what is not a batch of ids."""
    if ids_BS.dim() != 2 or ids_BS.is_floating_point():
        raise DragomanError(
            f"{side} ids have shape {tuple(ids_BS.shape)} and type {ids_BS.dtype}, "
            f"expected whole numbers of shape (batch, length)"
        )
