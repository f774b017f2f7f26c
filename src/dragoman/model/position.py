"""Positions (section 3.5): PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(pos / base^(2i/d))."""

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig


def sinusoid(length: int, d_model: int, base: float = 10_000.0, interleaved: bool = True) -> Tensor:
    """The table of positions (length, d_model): each pair of columns turns at its own pace.

    `interleaved` is the paper's layout, sine and cosine side by side; the other has all sines, then all cosines.
    """
    position_T = torch.arange(length, dtype=torch.float64)
    pace_C = base ** -(torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle_TC = torch.outer(position_T, pace_C)
    if interleaved:
        return torch.stack((angle_TC.sin(), angle_TC.cos()), dim=-1).flatten(-2).float()
    return torch.cat((angle_TC.sin(), angle_TC.cos()), dim=-1).float()


class Position(nn.Module):
    """The vectors of the positions from `start` on, for `length` pieces: (T, D)."""

    table_TD: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.position == "learned":
            self.table_TD = nn.Parameter(torch.empty(config.max_length, config.d_model))
            nn.init.normal_(self.table_TD, std=config.d_model**-0.5)
        else:
            interleaved = config.position == "sinusoid"
            table_TD = sinusoid(config.max_length, config.d_model, config.position_base, interleaved)
            self.register_buffer("table_TD", table_TD, persistent=False)

    def forward(self, length: int, start: int = 0) -> Tensor:
        return self.table_TD[start : start + length]
