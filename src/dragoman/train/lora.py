"""Low-rank adapters for fine-tuning (Hu et al.): W + (B A) * 2 with W frozen, and A, B of a small rank learned.

An adapter is a parametrization of the weight, so no layer knows of it; merging is reading the weight.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

SCALE = 2.0


class LowRank(nn.Module):
    """W -> W + B A * SCALE; B starts at zero, so training starts from the model as it was."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        height, width = weight.shape
        self.a = nn.Parameter(torch.empty(rank, width))
        self.b = nn.Parameter(torch.zeros(height, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, weight: Tensor) -> Tensor:
        return torch.addmm(weight, self.b, self.a, alpha=SCALE)


def adapt(model: nn.Module, rank: int) -> None:
    """Freeze every weight, and put an adapter on each matrix of the attention and feed-forward layers."""
    model.requires_grad_(False)
    for name, module in list(model.named_modules()):
        if "embedding" in name:
            continue
        for weight_name, weight in list(module.named_parameters(recurse=False)):
            if weight.ndim == 2:
                parametrize.register_parametrization(module, weight_name, LowRank(weight, rank))


def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """The state of the model with its adapters worked in; the plain state when it has none."""
    state = {name: value for name, value in model.state_dict().items() if "parametrizations" not in name.split(".")}
    with torch.no_grad():
        for path, module in model.named_modules():
            if parametrize.is_parametrized(module):
                for name in module.parametrizations:
                    state[f"{path}.{name}".removeprefix(".")] = getattr(module, name)
    return state
