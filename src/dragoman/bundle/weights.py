"""The weights of a bundle: their names and shapes, and the way to a torch model and back.

The names are those of the model's `state_dict()`. A matrix that source and target share is stored once, as the
target's; sinusoids are computed, not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.config import ModelConfig
from dragoman.errors import BundleError

if TYPE_CHECKING:
    from torch import Tensor, nn

Weights = dict[str, NDArray[Any]]
Shapes = dict[str, tuple[int, ...]]

_SOURCE, _TARGET = "source_embedding.pieces.weight", "target_embedding.pieces.weight"


def expected_shapes(config: ModelConfig) -> Shapes:
    """The name and shape of every weight that a model of this shape has."""
    shapes: Shapes = {_TARGET: (config.vocab_size, config.d_model)}
    if not config.share_embeddings:
        shapes[_SOURCE] = (config.num_source_pieces, config.d_model)
    if config.output_bias:
        shapes["output_bias_V"] = (config.vocab_size,)
    return shapes | (_recurrent(config) if config.architecture == "recurrent" else _transformer(config))


def _transformer(config: ModelConfig) -> Shapes:
    shapes: Shapes = {}
    if config.position == "learned":
        for side in ("source", "target"):
            shapes[f"{side}_embedding.position.table_TD"] = (config.max_length, config.d_model)
    for number in range(config.encoder_layers):
        shapes |= _block(config, f"encoder.blocks.{number}", ("self_attention",))
    for number in range(config.decoder_layers):
        shapes |= _block(config, f"decoder.blocks.{number}", ("self_attention", "cross_attention"))
    if config.norm_order == "pre":
        shapes |= _norm(config, "encoder.norm") | _norm(config, "decoder.norm")
    return shapes


def check_shapes(shapes: Mapping[str, tuple[int, ...]], config: ModelConfig, where: str) -> None:
    """Refuse weights that a model of this shape cannot take."""
    expected = expected_shapes(config)
    for name, shape in expected.items():
        if name not in shapes:
            raise BundleError(f"{where} lacks the weight {name!r}, which config.json calls for: copy the model again")
        if tuple(shapes[name]) != shape:
            raise BundleError(
                f"{where} has {name!r} of shape {tuple(shapes[name])}, config.json calls for {shape}: "
                f"these two files are not of one model"
            )
    if surplus := sorted(set(shapes) - set(expected)):
        raise BundleError(
            f"{where} has the weight {surplus[0]!r}, which config.json does not call for: "
            f"these two files are not of one model"
        )


def state_to_weights(model: nn.Module) -> Weights:
    """The weights of a torch model, as a bundle stores them."""
    state: dict[str, Tensor] = model.state_dict()
    shared = getattr(model, "config", None) is None or model.config.share_embeddings  # type: ignore[union-attr]
    return {
        name: tensor.detach().cpu().float().numpy()
        for name, tensor in state.items()
        if not (shared and name == _SOURCE)
    }


def weights_to_state(weights: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """What a model's `load_state_dict` takes, in float32, from weights of a bundle."""
    import torch

    state = {name: torch.from_numpy(np.asarray(array, dtype=np.float32)) for name, array in weights.items()}
    return {_SOURCE: state[_TARGET], **state}


def _recurrent(config: ModelConfig) -> Shapes:
    assert config.d_k is not None
    assert config.d_v is not None
    d_model, units, kind = config.d_model, config.d_ff, config.recurrent_attention
    gates = (3 if config.recurrent_cell == "gru" else 4) * units
    shapes: Shapes = {}
    if not config.share_embeddings:
        shapes["output_embedding.weight"] = (config.vocab_size, config.d_readout)
    for number in range(config.encoder_layers):
        for end in (f"l{number}", f"l{number}_reverse"):
            shapes[f"encoder.rnn.weight_ih_{end}"] = (gates, 2 * units if number else d_model)
            shapes[f"encoder.rnn.weight_hh_{end}"] = (gates, units)
            shapes |= {f"encoder.rnn.bias_{side}_{end}": (gates,) for side in ("ih", "hh")}
    look, d_context = "decoder.cross_attention", config.d_v if kind == "dot" else 2 * units
    if kind == "additive":
        shapes |= _linear(f"{look}.score.w", config.d_k, units)
        shapes |= {f"{look}.score.u.weight": (config.d_k, 2 * units), f"{look}.score.v": (config.d_k,)}
    elif kind == "dot":
        shapes |= {f"{look}.w_q.weight": (config.d_k, units), f"{look}.w_k.weight": (config.d_k, 2 * units)}
        shapes[f"{look}.w_v.weight"] = (config.d_v, 2 * units)
    shapes["decoder.w_context.weight"] = (gates, d_context)
    shapes |= _linear("decoder.w_start", units, units) | _linear("decoder.w_state", gates, units)
    shapes |= _linear("decoder.w_input", gates, d_model)
    return shapes | _linear("decoder.w_readout", 2 * config.d_readout, units + d_model + d_context)


def _linear(name: str, height: int, width: int) -> Shapes:
    return {f"{name}.weight": (height, width), f"{name}.bias": (height,)}


def _block(config: ModelConfig, name: str, attentions: tuple[str, ...]) -> Shapes:
    assert config.d_k is not None
    assert config.d_v is not None
    d_model, d_ff, heads = config.d_model, config.d_ff, config.num_heads
    shapes: Shapes = {}
    for attention in attentions:
        part = f"{name}.{attention}"
        width = heads * (2 * config.d_k + config.d_v)
        shapes[f"{part}.w_qkv"] = (width, d_model)
        shapes[f"{part}.w_o.weight"] = (d_model, heads * config.d_v)
        if config.attention_bias:
            shapes[f"{part}.b_qkv"] = (width,)
            shapes[f"{part}.w_o.bias"] = (d_model,)
        shapes |= _norm(config, f"{part}_residual.norm")
    inner = f"{name}.feed_forward"
    shapes |= {f"{inner}.w_1.weight": (d_ff, d_model), f"{inner}.w_1.bias": (d_ff,)}
    shapes |= {f"{inner}.w_2.weight": (d_model, d_ff), f"{inner}.w_2.bias": (d_model,)}
    if config.activation == "swiglu":
        shapes[f"{inner}.w_gate.weight"] = (d_ff, d_model)
    return shapes | _norm(config, f"{inner}_residual.norm")


def _norm(config: ModelConfig, name: str) -> Shapes:
    shapes: Shapes = {f"{name}.weight": (config.d_model,)}
    if config.norm == "layer":
        shapes[f"{name}.bias"] = (config.d_model,)
    return shapes
