"""The encoder (section 3.1, the left of Figure 1): N blocks of self-attention and feed-forward."""

from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.feed_forward import FeedForward
from dragoman.model.multi_head import MultiHeadAttention
from dragoman.model.record import Record, within
from dragoman.model.residual import Residual, make_norm


def make_attention(config: ModelConfig) -> MultiHeadAttention:
    """A multi-head attention of the model's shape."""
    assert config.d_k is not None
    assert config.d_v is not None
    return MultiHeadAttention(
        config.d_model, config.num_heads, config.d_k, config.d_v, config.attention_bias, config.attention_dropout
    )


def make_feed_forward(config: ModelConfig) -> FeedForward:
    """A feed-forward network of the model's shape."""
    return FeedForward(config.d_model, config.d_ff, config.activation, config.activation_dropout)


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward, each with its residual: (B, S, D) -> (B, S, D)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = make_attention(config)
        self.self_attention_residual = Residual(config)
        self.feed_forward = make_feed_forward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x_BSD: Tensor, mask: Tensor | None = None, record: Record | None = None) -> Tensor:
        residual = self.self_attention_residual
        query, memory = self.self_attention.project(residual.before(x_BSD))
        y_BSD = self.self_attention.attend(query, memory, mask, record=within(record, "self_attention"))
        x_BSD = residual.after(x_BSD, y_BSD, within(record, "self_attention_residual"))

        residual = self.feed_forward_residual
        y_BSD = self.feed_forward(residual.before(x_BSD))
        return residual.after(x_BSD, y_BSD, within(record, "feed_forward_residual"))


class Encoder(nn.Module):
    """The stack; with pre-norm, one more norm at its end."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.encoder_layers))
        self.norm = make_norm(config) if config.norm_order == "pre" else nn.Identity()

    def forward(self, x_BSD: Tensor, mask: Tensor | None = None, record: Record | None = None) -> Tensor:
        for index, block in enumerate(self.blocks):
            x_BSD = block(x_BSD, mask, within(record, index))
        output_BSD: Tensor = self.norm(x_BSD)
        return output_BSD
