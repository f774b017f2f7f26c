"""Our weights as CTranslate2 lays them out: its specification of a Transformer, filled from numpy arrays.

Every `ModelConfig` can be expressed. CTranslate2 knows one width of a head; where d_k and d_v differ, the narrower is
filled up with zeros, which changes neither the scores nor the mixed values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.config import ModelConfig
from dragoman.engine.alignment import alignment_layer
from dragoman.engine.without_torch import import_specs

Array = NDArray[np.float32]
NEVER = -1e9  # a logit that no softmax gives a share
_ABSENT = "__optional"  # CTranslate2's word for it
_LARGEST_WEIGHT = 64
_LEAST_WEIGHT = 1e-30  # rows of less are zero: their scale would not be a number


def make_spec(
    config: ModelConfig,
    weights: Mapping[str, NDArray[Any]],
    vocabulary: Sequence[str],
    quantised: bool = False,
    source_vocabulary: Sequence[str] = (),
) -> Any:
    """The specification of the model, checked and ready to be saved; its matrices in 8 bits if they are `quantised`.

    `vocabulary` has a text for every id, each one different; so has `source_vocabulary`, if the source side has ids of
    its own.
    """
    specs = import_specs()
    arrays = {name: np.asarray(array, dtype=np.float32) for name, array in weights.items()}
    gated = config.activation == "swiglu"
    activations = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH", "swiglu": "SWISH"}
    shared = {
        "num_heads": config.num_heads,
        "pre_norm": config.norm_order == "pre",
        "activation": specs.Activation[activations[config.activation]],
        "ffn_glu": gated,
        "rms_norm": config.norm == "rms",
        "head_dim": max(_widths(config)),
    }
    encoder = specs.TransformerEncoderSpec(config.encoder_layers, **shared)
    decoder = specs.TransformerDecoderSpec(
        config.decoder_layers,
        alignment_layer=alignment_layer(config),
        alignment_heads=config.num_heads,
        **shared,
    )
    target_pieces = arrays["target_embedding.pieces.weight"]
    source_pieces = target_pieces if config.share_embeddings else arrays["source_embedding.pieces.weight"]
    encoder.embeddings[0].weight = source_pieces
    decoder.embeddings.weight = target_pieces
    _set_linear(decoder.projection, target_pieces, _output_bias(config, arrays))
    for side, stack in (("source", encoder), ("target", decoder)):
        stack.position_encodings.encodings = _positions(config, arrays, side)
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        if config.norm_order == "pre":
            _set_norm(stack.layer_norm, arrays, f"{name}.norm")
        for number, layer in enumerate(stack.layer):
            _set_layer(layer, config, arrays, f"{name}.blocks.{number}")
    spec = specs.TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(list(source_vocabulary or vocabulary))
    spec.register_target_vocabulary(list(vocabulary))
    spec.config.unk_token = vocabulary[config.padding_id]
    spec.config.bos_token = spec.config.decoder_start_token = vocabulary[config.begin_id]
    spec.config.eos_token = vocabulary[config.end_id]
    spec.config.layer_norm_epsilon = norm_epsilon(config)
    if quantised:
        _quantise_all(spec)
    spec.validate()
    shared_pieces = [decoder.projection, *(encoder.embeddings if config.share_embeddings else ())]
    for layer in shared_pieces:
        # A name instead of an array means that one; its scale goes with it.
        layer.weight, layer.weight_scale = "decoder/embeddings/weight", _ABSENT
    return spec


def quantise(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Whole numbers, and what each row was multiplied by to get them.

    They go up to 64, not 127: CPUs without VNNI instructions add two products of an activation (up to 255) and a weight
    in 16 bits, and what does not fit is cut off. With larger weights that spoils the scores far more than rounding.
    """
    largest = np.abs(weight).max(axis=1)
    scale = np.divide(_LARGEST_WEIGHT, largest, out=np.ones_like(largest), where=largest > _LEAST_WEIGHT)
    return np.rint(weight * scale[:, None]).astype(np.int8), scale


def _quantise_all(layer: Any) -> None:
    """Quantise every matrix of a layer and the layers in it."""
    for name, part in list(vars(layer).items()):
        if name.startswith("_"):
            continue
        for inner in part if isinstance(part, list) else [part]:
            if hasattr(inner, "weight_scale"):
                inner.weight, inner.weight_scale = quantise(inner.weight)
            elif hasattr(inner, "validate"):
                _quantise_all(inner)


def norm_epsilon(config: ModelConfig) -> float:
    """What torch's LayerNorm and RMSNorm add to the variance when they are not told."""
    return 1e-5 if config.norm == "layer" else float(np.finfo(np.float32).eps)


def sinusoid(config: ModelConfig) -> Array:
    """The table of positions (max_length, d_model), as `dragoman.model.position` computes it."""
    half = np.arange(0, config.d_model, 2, dtype=np.float64) / config.d_model
    angle_TC = np.outer(np.arange(config.max_length, dtype=np.float64), config.position_base**-half)
    if config.position == "sinusoid":
        table_TD = np.stack((np.sin(angle_TC), np.cos(angle_TC)), axis=-1).reshape(config.max_length, -1)
    else:
        table_TD = np.concatenate((np.sin(angle_TC), np.cos(angle_TC)), axis=-1)
    return table_TD.astype(np.float32)


def _positions(config: ModelConfig, arrays: Mapping[str, Array], side: str) -> Array:
    if config.position == "learned":
        return arrays[f"{side}_embedding.position.table_TD"]
    return sinusoid(config)


def _output_bias(config: ModelConfig, arrays: Mapping[str, Array]) -> Array:
    """The model's bias, and a ban on what a translation never contains: padding and begin."""
    bias_V = arrays["output_bias_V"].copy() if config.output_bias else np.zeros(config.vocab_size, dtype=np.float32)
    bias_V[list({config.padding_id, config.begin_id} - {config.end_id})] = NEVER
    return bias_V


def _set_layer(layer: Any, config: ModelConfig, arrays: Mapping[str, Array], name: str) -> None:
    query, memory, output = _attention(config, arrays, f"{name}.self_attention")
    attention = layer.self_attention
    _set_linear(attention.linear[0], np.concatenate((query[0], memory[0])), np.concatenate((query[1], memory[1])))
    _set_linear(attention.linear[1], *output)
    _set_norm(attention.layer_norm, arrays, f"{name}.self_attention_residual.norm")
    if hasattr(layer, "attention"):
        parts = _attention(config, arrays, f"{name}.cross_attention")
        for linear, part in zip(layer.attention.linear, parts, strict=True):
            _set_linear(linear, *part)
        _set_norm(layer.attention.layer_norm, arrays, f"{name}.cross_attention_residual.norm")
    inner, first = f"{name}.feed_forward", layer.ffn.linear_0
    if config.activation == "swiglu":  # CTranslate2 applies the activation to linear_0
        d_ff = arrays[f"{inner}.w_gate.weight"].shape[0]
        _set_linear(layer.ffn.linear_0, arrays[f"{inner}.w_gate.weight"], np.zeros(d_ff, dtype=np.float32))
        first = layer.ffn.linear_0_noact
    _set_linear(first, arrays[f"{inner}.w_1.weight"], arrays[f"{inner}.w_1.bias"])
    _set_linear(layer.ffn.linear_1, arrays[f"{inner}.w_2.weight"], arrays[f"{inner}.w_2.bias"])
    _set_norm(layer.ffn.layer_norm, arrays, f"{inner}_residual.norm")


def _attention(config: ModelConfig, arrays: Mapping[str, Array], name: str) -> list[tuple[Array, Array]]:
    """(weight, bias) of the queries, of keys and values together, and of the output; heads of one width."""
    heads, (d_k, d_v) = config.num_heads, _widths(config)
    width = max(d_k, d_v)
    w_qkv = arrays[f"{name}.w_qkv"]
    b_qkv = arrays.get(f"{name}.b_qkv", np.zeros(len(w_qkv), dtype=np.float32))
    w_o = arrays[f"{name}.w_o.weight"]
    b_o = arrays.get(f"{name}.w_o.bias", np.zeros(len(w_o), dtype=np.float32))
    cuts = (heads * d_k, 2 * heads * d_k)
    query, key, value = (
        (_widen(weight, heads, width), _widen(bias, heads, width))
        for weight, bias in zip(np.split(w_qkv, cuts), np.split(b_qkv, cuts), strict=True)
    )
    # CTranslate2 divides the scores by sqrt(width), the model by sqrt(d_k).
    scale = np.float32((width / d_k) ** 0.5)
    query = (query[0] * scale, query[1] * scale)
    memory = (np.concatenate((key[0], value[0])), np.concatenate((key[1], value[1])))
    return [query, memory, (_widen(w_o.T, heads, width).T, b_o)]


def _widen(array: Array, heads: int, width: int) -> Array:
    """Each head's rows, filled up with zeros: (heads * narrow, ...) -> (heads * width, ...)."""
    split = array.reshape(heads, -1, *array.shape[1:])
    fill = [(0, 0), (0, width - split.shape[1]), *((0, 0) for _ in array.shape[1:])]
    return np.pad(split, fill).reshape(heads * width, *array.shape[1:])


def _widths(config: ModelConfig) -> tuple[int, int]:
    assert config.d_k is not None
    assert config.d_v is not None
    return config.d_k, config.d_v


def _set_linear(linear: Any, weight: Array, bias: Array) -> None:
    linear.weight = np.ascontiguousarray(weight)
    if bias.any():
        linear.bias = bias


def _set_norm(norm: Any, arrays: Mapping[str, Array], name: str) -> None:
    norm.gamma = arrays[f"{name}.weight"]
    if f"{name}.bias" in arrays:
        norm.beta = arrays[f"{name}.bias"]
