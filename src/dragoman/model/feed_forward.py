"""The position-wise feed-forward network (section 3.3): FFN(x) = max(0, x W_1 + b_1) W_2 + b_2."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.model.dropout import Dropout

# ReLU works in place: what W_1 gave is needed by nobody else, and a buffer less is several percent of a step.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "gelu": F.gelu,
    "swish": F.silu,
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """Two linear maps with a nonlinearity between them, the same at every position.

    SwiGLU, an option, gates the inner layer: (swish(x W_g) * (x W_1 + b_1)) W_2 + b_2.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", inner_dropout: float = 0.0) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_gate = nn.Linear(d_model, d_ff, bias=False) if activation == "swiglu" else None
        self.w_2 = nn.Linear(d_ff, d_model)
        self.inner_dropout = Dropout(inner_dropout)
        for linear in (self.w_1, self.w_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        if self.w_gate is not None:
            nn.init.xavier_uniform_(self.w_gate.weight)

    def forward(self, x_BTD: Tensor) -> Tensor:
        # Positions in one row: a Linear gives a view of what it made for more axes, and the gradient of what is then
        # done in place to a view is copied three times.
        x_ND = x_BTD.flatten(0, -2)
        gated_NF = None if self.w_gate is None else self.w_gate(x_ND)
        inner_NF = self.w_1(x_ND)
        inner_NF = self.activation(inner_NF) if gated_NF is None else self.activation(gated_NF) * inner_NF
        output_BTD: Tensor = self.w_2(self.inner_dropout(inner_NF)).view(*x_BTD.shape[:-1], -1)
        return output_BTD
