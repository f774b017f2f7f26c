"""What is minimised: one module around a model, so that DDP and FSDP see one forward pass from ids to loss."""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.train.loss import Loss, chunked_loss, smoothed_loss


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
    ) -> None:
        super().__init__()
        self.model = model
        self.padding_id = padding_id
        self.smoothing = smoothing
        self.r_drop = r_drop
        self.precision = precision

    def forward(self, source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> Loss:
        with torch.autocast(source_BS.device.type, self.precision, enabled=self.precision != torch.float32):
            if self.r_drop and self.training:
                return self._agreeing(source_BS, target_in_BT, target_out_BT)
            hidden_ND, target_N = self._real(source_BS, target_in_BT, target_out_BT)
        model: Trainable = self.model  # type: ignore[assignment]
        return chunked_loss(hidden_ND.float(), model.output_weight_VD, model.output_bias_V, target_N, self.smoothing)

    def _real(self, source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden vectors and targets of the real positions: padding costs no logits."""
        model: Trainable = self.model  # type: ignore[assignment]
        hidden_BTD = model.hidden(source_BS, target_in_BT)
        index_N = (target_out_BT != self.padding_id).flatten().nonzero().squeeze(1)
        return hidden_BTD.flatten(0, 1).index_select(0, index_N), target_out_BT.flatten().index_select(0, index_N)

    def _agreeing(self, source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> Loss:
        """R-Drop (Liang et al.): two passes with different dropout, and what keeps their distributions together."""
        model: Trainable = self.model  # type: ignore[assignment]
        twice = (tensor.repeat(2, 1) for tensor in (source_BS, target_in_BT, target_out_BT))
        hidden_ND, target_N = self._real(*twice)
        logits_NV = F.linear(hidden_ND, model.output_weight_VD, model.output_bias_V).float()
        loss = smoothed_loss(logits_NV, target_N, self.smoothing) / 2
        plain = smoothed_loss(logits_NV.detach(), target_N, 0.0) / 2
        one_NV, other_NV = logits_NV.log_softmax(dim=-1).chunk(2)
        both_ways = ((one_NV.exp() - other_NV.exp()) * (one_NV - other_NV)).sum() / 2
        return Loss(loss + self.r_drop * both_ways / 2, plain)
