"""The decoder of Bahdanau, Cho and Bengio (sections 3.1 and A.2.2): writes a piece a step.

    c_i = the context that s_(i-1) asks for
    s_i = cell(W E y_(i-1) + C c_i, s_(i-1))                               the context enters every gate
    t_i = maxout(U_o s_i + V_o E y_(i-1) + C_o c_i)                        the larger of each two neighbours

and t_i, the output's hidden vector, meets the output matrix. The appendix prints s_(i-1) in the last line; we take s_i,
which the model's definition conditions on. Only what depends on the state before is in the loop over steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.attention import Attended
from dragoman.model.record import Record
from dragoman.model.recurrent_attention import FixedContext, SourceMemory, make_look
from dragoman.model.recurrent_cell import CELLS, Carry, orthogonal_gates
from dragoman.model.recurrent_encoder import Annotations


@dataclass(frozen=True)
class RecurrentState:
    """Where decoding stands: the source as the decoder sees it, what the cell carries, and the pieces written."""

    memory: SourceMemory
    carry: Carry
    length: int = 0

    def select(self, rows_B: Tensor) -> RecurrentState:
        """The batch's rows in another order, repeated or left out."""
        carry = tuple(part.index_select(0, rows_B) for part in self.carry)
        return RecurrentState(self.memory.select(rows_B), carry, self.length)


@dataclass(frozen=True)
class RecurrentDecoded:
    """The readout (B, T, L), and the state after the last piece."""

    hidden_BTL: Tensor
    state: RecurrentState


@dataclass(frozen=True)
class _Written:
    """What the loop over steps leaves: the states, the contexts that went into them, what is carried on."""

    state_BTU: Tensor
    context_BTC: Tensor
    carry: Carry


def maxout(x_BTM: Tensor) -> Tensor:
    """The larger of each two neighbours: (..., 2L) -> (..., L)."""
    return torch.maximum(x_BTM[..., 0::2], x_BTM[..., 1::2])


class RecurrentDecoder(nn.Module):
    """One layer of `d_ff` units, its look at the source, and its readout of `d_readout`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        units = config.d_ff
        self.cell = CELLS[config.recurrent_cell]
        self.cross_attention = make_look(config)
        d_context, width = self.cross_attention.d_context, self.cell.num_gates * units
        self.w_start = nn.Linear(units, units)
        self.w_input = nn.Linear(config.d_model, width)
        self.w_context = nn.Linear(d_context, width, bias=False)
        self.w_state = nn.Linear(units, width)
        self.w_readout = nn.Linear(units + config.d_model + d_context, 2 * config.d_readout)
        for linear in (self.w_start, self.w_input, self.w_context, self.w_readout):
            nn.init.xavier_uniform_(linear.weight)
        orthogonal_gates(self.w_state.weight.data)
        for linear in (self.w_start, self.w_input, self.w_state, self.w_readout):
            nn.init.zeros_(linear.bias)

    def start(self, annotations: Annotations) -> RecurrentState:
        """Before anything is written: s_0 = tanh(W_s h_1), h_1 the backward network's."""
        first_BU = torch.tanh(self.w_start(annotations.first_backward_BU))
        return RecurrentState(self.cross_attention.remember(annotations), self.cell.begin(first_BU))

    def forward(self, embedded_BTD: Tensor, state: RecurrentState, record: Record | None = None) -> RecurrentDecoded:
        """Read the pieces that were written, one after the other."""
        input_BTG = self.w_input(embedded_BTD)
        looked = self._write(input_BTG, state, record)
        hidden_BTL = maxout(self.w_readout(torch.cat((looked.state_BTU, embedded_BTD, looked.context_BTC), dim=-1)))
        if record is not None:
            record.within(0).note("state", looked.state_BTU)
            record.within(0).note("readout", hidden_BTL)
        after = RecurrentState(state.memory, looked.carry, state.length + embedded_BTD.shape[1])
        return RecurrentDecoded(hidden_BTL, after)

    def _write(self, input_BTG: Tensor, state: RecurrentState, record: Record | None) -> _Written:
        """The loop over steps; looks are recorded as those of a Transformer with one decoder block and one head."""
        memory, carry, look = state.memory, state.carry, self.cross_attention
        if isinstance(look, FixedContext):
            return self._write_blindly(input_BTG, memory.value_BSC, carry)
        states, contexts, weights, scores = [], [], [], []
        for input_BG in input_BTG.unbind(1):
            before_BU = carry[0]
            attended: Attended = look(before_BU, memory)
            gates_BG = input_BG + self.w_context(attended.values[:, 0])
            carry = self.cell.step(gates_BG, self.w_state(before_BU), carry)
            states.append(carry[0])
            contexts.append(attended.values)
            if record is not None:
                weights.append(attended.weights)
                scores.append(look.scores(before_BU, memory))
        context_BTC = torch.cat(contexts, dim=1)
        if record is not None:
            looks = record.within(0).within("cross_attention")
            looks.note("key", memory.key_BSA[:, None])
            looks.note("value", memory.value_BSC[:, None])
            looks.note("scores", torch.cat(scores, dim=1)[:, None])
            looks.note("weights", torch.cat(weights, dim=1)[:, None])
            looks.note("mixed", context_BTC[:, None])
        return _Written(torch.stack(states, dim=1), context_BTC, carry)

    def _write_blindly(self, input_BTG: Tensor, context_B1C: Tensor, carry: Carry) -> _Written:
        """A context that never changes meets its matrix once."""
        states = []
        for gates_BG in (input_BTG + self.w_context(context_B1C)).unbind(1):
            carry = self.cell.step(gates_BG, self.w_state(carry[0]), carry)
            states.append(carry[0])
        return _Written(torch.stack(states, dim=1), context_B1C.expand(-1, len(states), -1), carry)
