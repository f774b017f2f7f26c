"""The encoder of Bahdanau, Cho and Bengio (section 3.2): two recurrent networks, one reads forward, one backward.

The annotation of a source piece, h_j = [forward h_j; backward h_j], knows the whole sentence and its own place best.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman.config import ModelConfig
from dragoman.model.recurrent_cell import CELLS, orthogonal_gates


@dataclass(frozen=True)
class Annotations:
    """A source as it was read: an annotation a piece (B, S, J), and which pieces are real (B, S)."""

    h_BSJ: Tensor
    mask_BS: Tensor

    @property
    def first_backward_BU(self) -> Tensor:
        """The backward network's last word: its state at the first piece."""
        return self.h_BSJ[:, 0].chunk(2, dim=-1)[1]

    @property
    def last_forward_BU(self) -> Tensor:
        """The forward network's last word: its state at each source's last real piece."""
        last_B = (self.mask_BS.sum(dim=1) - 1).clamp(min=0)
        rows_B = torch.arange(len(last_B), device=last_B.device)
        return self.h_BSJ[rows_B, last_B].chunk(2, dim=-1)[0]


class BidirectionalEncoder(nn.Module):
    """`encoder_layers` bidirectional layers of `d_ff` units each way."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        layers = config.encoder_layers
        self.rnn = CELLS[config.recurrent_cell].network(
            config.d_model,
            config.d_ff,
            num_layers=layers,
            batch_first=True,
            dropout=config.dropout if layers > 1 else 0.0,
            bidirectional=True,
        )
        for name, parameter in self.rnn.named_parameters():
            if name.startswith("weight_hh"):
                orthogonal_gates(parameter.data)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)

    def forward(self, embedded_BSD: Tensor, mask_BS: Tensor) -> Annotations:
        """Read the real pieces, which come first; annotations of padding are zero."""
        # Packed, a source's padding is never read: the backward network starts at its last real piece.
        length_B = mask_BS.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(embedded_BSD, length_B, batch_first=True, enforce_sorted=False)
        read, _ = self.rnn(packed)
        h_BSJ, _ = pad_packed_sequence(read, batch_first=True, total_length=embedded_BSD.shape[1])
        return Annotations(h_BSJ, mask_BS)
