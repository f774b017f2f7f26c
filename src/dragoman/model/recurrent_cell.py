"""Gated units: how a recurrent network gets from one state to the next.

    GRU (Cho et al. 2014)     r = sigma(x_r + h_r), z = sigma(x_z + h_z), n = tanh(x_n + r * h_n)
                              s' = (1 - z) * n + z * s
    LSTM (Hochreiter and      i = sigma(x_i + h_i), f = sigma(x_f + h_f), g = tanh(x_g + h_g), o = sigma(x_o + h_o)
    Schmidhuber 1997)         c' = f * c + i * g,   s' = o * tanh(c')

x are the gates' shares of the input, h those of the state before. As in torch, whose kernels the encoder runs on, the
GRU's reset gate comes after its product with the state; Bahdanau, Cho and Bengio print it before. Which of n and s the
gate z lets through is a matter of its sign.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Carry = tuple[Tensor, ...]
"""What goes from a step to the next: the state (B, U) first; an LSTM's memory after it."""


def gru_step(input_BG: Tensor, hidden_BG: Tensor, carry: Carry) -> Carry:
    """One step of a GRU; the gates lie in the order r, z, n."""
    (state_BU,) = carry
    units = state_BU.shape[-1]
    gates = torch.sigmoid(input_BG[..., : 2 * units] + hidden_BG[..., : 2 * units])
    reset_BU, keep_BU = gates.chunk(2, dim=-1)
    new_BU = torch.tanh(input_BG[..., 2 * units :] + reset_BU * hidden_BG[..., 2 * units :])
    return (new_BU + keep_BU * (state_BU - new_BU),)


def lstm_step(input_BG: Tensor, hidden_BG: Tensor, carry: Carry) -> Carry:
    """One step of an LSTM; the gates lie in the order i, f, g, o."""
    _, memory_BU = carry
    enter_BU, keep_BU, new_BU, show_BU = (input_BG + hidden_BG).chunk(4, dim=-1)
    memory_BU = torch.sigmoid(keep_BU) * memory_BU + torch.sigmoid(enter_BU) * torch.tanh(new_BU)
    return torch.sigmoid(show_BU) * torch.tanh(memory_BU), memory_BU


@dataclass(frozen=True)
class Cell:
    """A kind of unit: a step of it, the gates that a step takes, the tensors it carries, and torch's fast network."""

    step: Callable[[Tensor, Tensor, Carry], Carry]
    num_gates: int
    num_carried: int
    network: type[nn.GRU] | type[nn.LSTM]

    def begin(self, state_BU: Tensor) -> Carry:
        """What is carried into the first step: the state, and an empty memory where there is one."""
        return (state_BU, *(torch.zeros_like(state_BU) for _ in range(self.num_carried - 1)))


CELLS = {"gru": Cell(gru_step, 3, 1, nn.GRU), "lstm": Cell(lstm_step, 4, 2, nn.LSTM)}


def orthogonal_gates(weight_GU: Tensor) -> None:
    """Start each gate's share of the state as a rotation, so that a long chain of steps neither grows nor fades."""
    for gate_UU in weight_GU.split(weight_GU.shape[1]):
        nn.init.orthogonal_(gate_UU)
