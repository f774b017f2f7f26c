"""Residual connection, dropout and normalisation around a sub-layer (section 3.1).

post-norm, as printed:   LayerNorm(x + Dropout(Sublayer(x)))
pre-norm, an option:     x + Dropout(Sublayer(LayerNorm(x)))
"""

from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.dropout import Dropout
from dragoman.model.record import Record


def make_norm(config: ModelConfig) -> nn.Module:
    """LayerNorm, or RMSNorm, over d_model."""
    return nn.LayerNorm(config.d_model) if config.norm == "layer" else nn.RMSNorm(config.d_model)


class Residual(nn.Module):
    """What surrounds every sub-layer: `x = residual.after(x, sublayer(residual.before(x)))`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = make_norm(config)
        self.pre_norm = config.norm_order == "pre"
        self.dropout = Dropout(config.dropout)

    def before(self, x: Tensor) -> Tensor:
        """The sub-layer's input."""
        return self.norm(x) if self.pre_norm else x

    def after(self, x: Tensor, y: Tensor, record: Record | None = None) -> Tensor:
        """x as it went in and y = Sublayer(before(x)) -> what goes on to the next sub-layer."""
        summed = x + self.dropout(y)
        output: Tensor = summed if self.pre_norm else self.norm(summed)
        if record is not None:
            record.note("sum", summed)
            record.note("output", output)
        return output
