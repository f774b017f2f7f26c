"""A deeper encoder for a model that has learned: new layers at its end, which change nothing until they are trained.

A layer adds W_O(...) and W_2(...) to what goes through it, where norms come before the sublayers. Where those matrices
are zero it is not there, and their gradients are not zero.
"""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.model.encoder import EncoderBlock
from dragoman.model.transformer import Transformer


def grown(config: ModelConfig, encoder_layers: int) -> ModelConfig:
    """The shape with so many encoder layers."""
    if encoder_layers < config.encoder_layers:
        raise ConfigError(
            f"model.encoder_layers is {encoder_layers}, the model that --init names has {config.encoder_layers}: "
            f"it can get more, not fewer"
        )
    if config.architecture != "transformer" or config.norm_order != "pre":
        raise ConfigError(
            "model.encoder_layers beside --init adds layers to a Transformer with its norms before the sublayers, "
            "and the model that --init names is none: leave it out"
        )
    return replace(config, encoder_layers=encoder_layers)


def take_over(model: Transformer, state: Mapping[str, Tensor]) -> None:
    """Put the weights of a model that may be shallower into this one, whose further layers then add nothing."""
    model.load_state_dict({**model.state_dict(), **state})
    num_layers = len({name.split(".")[2] for name in state if name.startswith("encoder.blocks.")})
    for block in list(model.encoder.blocks)[num_layers:]:
        assert isinstance(block, EncoderBlock)
        nn.init.zeros_(block.self_attention.w_o.weight)
        nn.init.zeros_(block.feed_forward.w_2.weight)
