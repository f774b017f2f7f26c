"""What is minimised: one module around a model, so that DDP and FSDP see one forward pass from ids to loss."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from dragoman.train.loss import Loss, chunked_loss
from dragoman.train.teacher import Teacher, lesson


class Trainable(Protocol):
    """What a model must have to be trained; the Transformer has it, and so can anything that predicts pieces."""

    def hidden(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """(B, S), (B, T) -> (B, T, D): what the output matrix turns into logits."""

    @property
    def output_weight_VD(self) -> Tensor: ...

    @property
    def output_bias_V(self) -> Tensor | None: ...


class Objective(nn.Module):
    """Source, target in (begin first) and target out (end last) -> the summed loss over real target pieces."""

    def __init__(
        self,
        model: nn.Module,
        padding_id: int,
        smoothing: float,
        r_drop: float = 0.0,
        precision: torch.dtype = torch.float32,
        teachers: Sequence[Teacher] = (),
        distillation: float = 0.0,
    ) -> None:
        super().__init__()
        self.model = model
        self.padding_id = padding_id
        self.smoothing = smoothing
        self.r_drop = r_drop
        self.precision = precision
        self.teachers = teachers  # no modules, so nobody trains, shards or synchronises them
        self.distillation = distillation

    def forward(self, source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> Loss:
        model: Trainable = self.model  # type: ignore[assignment]
        r_drop = self.r_drop if self.training else 0.0
        # Padding costs no logits: hidden vectors and targets of the real positions alone.
        real_N = (target_out_BT != self.padding_id).flatten().nonzero().squeeze(1)
        target_N = target_out_BT.flatten().index_select(0, real_N)
        if r_drop:  # the batch twice: each half has its own dropout
            source_BS, target_in_BT = source_BS.repeat(2, 1), target_in_BT.repeat(2, 1)
            real_N = torch.cat((real_N, real_N + target_out_BT.numel()))
        with torch.autocast(source_BS.device.type, self.precision, enabled=self.precision != torch.float32):
            hidden_ND = model.hidden(source_BS, target_in_BT).flatten(0, 1).index_select(0, real_N).to(self.precision)
            taught = lesson(self.teachers if self.training else (), source_BS, target_in_BT, real_N, self.distillation)
        return chunked_loss(
            hidden_ND, model.output_weight_VD, model.output_bias_V, target_N, self.smoothing, r_drop, taught
        )
