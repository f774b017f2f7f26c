"""Weights by transformers' names for Marian, and by ours; numpy alone.

Theirs has W_Q, W_K and W_V apart, ours has them as the rows of one matrix. Their embeddings may be used as they are
(`scale_embedding` false), ours are multiplied by sqrt(d_model): then the matrix is divided by it, and the last
LayerNorm of the decoder, whose output meets the matrix again, is multiplied.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import expected_shapes
from dragoman.bundle.weights import check_shapes
from dragoman.config import ModelConfig
from dragoman.errors import BundleError

Array = NDArray[np.float32]
Arrays = Mapping[str, Array]

BANNED = -10_000.0
"""A logit that no softmax gives a share, and that half precision can hold."""

_SOURCE, _TARGET = "source_embedding.pieces.weight", "target_embedding.pieces.weight"
_SHARED, _LOGITS, _BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
_ENCODER_PIECES, _DECODER_PIECES = (f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder"))
_POSITIONS = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
_ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
_PROJECTIONS = ("q_proj", "k_proj", "v_proj")


def from_marian(
    theirs: Arrays, config: ModelConfig, *, scale_embedding: bool, banned: tuple[int, ...], where: str
) -> dict[str, Array]:
    """Our weights, after checking every name and shape of theirs."""
    _check(theirs, config, where)
    target, source = _pieces(theirs, config, where)
    ours: dict[str, Array] = {}
    for stack, attentions in (("encoder", ("self_attention",)), ("decoder", tuple(_ATTENTIONS))):
        for number in range(config.encoder_layers if stack == "encoder" else config.decoder_layers):
            for our_name, their_name in _renamed(stack, number, attentions):
                ours[our_name] = theirs[their_name]
            for attention in attentions:
                part, their_part = _part(stack, number, attention)
                for our_name, kind in (("w_qkv", "weight"), ("b_qkv", "bias")):
                    rows = [theirs[f"{their_part}.{projection}.{kind}"] for projection in _PROJECTIONS]
                    ours[f"{part}.{our_name}"] = np.concatenate(rows)
    if not scale_embedding:
        scale = np.float32(config.d_model**0.5)
        target, source = target / scale, source / scale
        last = f"decoder.blocks.{config.decoder_layers - 1}.feed_forward_residual.norm"
        ours |= {f"{last}.{kind}": ours[f"{last}.{kind}"] * scale for kind in ("weight", "bias")}
    ours[_TARGET] = target
    if not config.share_embeddings:
        ours[_SOURCE] = source
    bias_V = theirs[_BIAS][0].copy() if _BIAS in theirs else np.zeros(config.vocab_size, dtype=np.float32)
    bias_V[list(banned)] = BANNED
    ours["output_bias_V"] = bias_V
    check_shapes({name: array.shape for name, array in ours.items()}, config, where)
    return ours


def to_marian(ours: Arrays, config: ModelConfig) -> dict[str, Array]:
    """Their weights, for a model that Marian can express: embeddings are scaled, positions are in halves."""
    shapes = expected_shapes(replace(config, attention_bias=True, output_bias=True))
    full = {name: ours[name] if name in ours else np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    if config.position == "sinusoid":
        full = _in_halves(full, config)
    return {name: np.ascontiguousarray(array) for name, array in _taken_apart(full, config).items()}


def _taken_apart(full: Arrays, config: ModelConfig) -> dict[str, Array]:
    """Every weight under their name."""
    theirs: dict[str, Array] = {}
    for stack, attentions in (("encoder", ("self_attention",)), ("decoder", tuple(_ATTENTIONS))):
        for number in range(config.encoder_layers if stack == "encoder" else config.decoder_layers):
            for our_name, their_name in _renamed(stack, number, attentions):
                theirs[their_name] = full[our_name]
            for attention in attentions:
                part, their_part = _part(stack, number, attention)
                for our_name, kind in (("w_qkv", "weight"), ("b_qkv", "bias")):
                    rows = np.split(full[f"{part}.{our_name}"], 3)
                    theirs |= {
                        f"{their_part}.{projection}.{kind}": row
                        for projection, row in zip(_PROJECTIONS, rows, strict=True)
                    }
    if config.share_embeddings:
        theirs[_SHARED] = full[_TARGET]
    else:
        theirs[_ENCODER_PIECES], theirs[_DECODER_PIECES] = full[_SOURCE], full[_TARGET]
    theirs[_BIAS] = full["output_bias_V"][None, :]
    return theirs


def _in_halves(full: Arrays, config: ModelConfig) -> dict[str, Array]:
    """The same model with the channels between its layers in another order: sines first, then cosines.

    Nothing but the positions knows which channel is which, so every weight that reads or writes them is reordered.
    """
    order_D = np.concatenate((np.arange(0, config.d_model, 2), np.arange(1, config.d_model, 2)))
    reordered = dict(full)
    for name, array in full.items():
        if name.endswith(("pieces.weight", "w_qkv", "w_1.weight")):
            reordered[name] = array[:, order_D]
        elif name.endswith(("w_o.weight", "w_o.bias", "w_2.weight", "w_2.bias")) or ".norm." in name:
            reordered[name] = array[order_D]
    return reordered


def _part(stack: str, number: int, attention: str) -> tuple[str, str]:
    return f"{stack}.blocks.{number}.{attention}", f"model.{stack}.layers.{number}.{_ATTENTIONS[attention]}"


def _renamed(stack: str, number: int, attentions: tuple[str, ...]) -> list[tuple[str, str]]:
    """(ours, theirs) of the weights that are the same in both."""
    pairs = []
    for attention in attentions:
        part, their_part = _part(stack, number, attention)
        pairs += [(f"{part}.w_o", f"{their_part}.out_proj"), (f"{part}_residual.norm", f"{their_part}_layer_norm")]
    block, layer = f"{stack}.blocks.{number}.feed_forward", f"model.{stack}.layers.{number}"
    pairs += [(f"{block}.w_1", f"{layer}.fc1"), (f"{block}.w_2", f"{layer}.fc2")]
    pairs.append((f"{block}_residual.norm", f"{layer}.final_layer_norm"))
    return [(f"{one}.{kind}", f"{other}.{kind}") for one, other in pairs for kind in ("weight", "bias")]


def _check(theirs: Arrays, config: ModelConfig, where: str) -> None:
    """Refuse weights that are missing, of another shape, or that a Marian model does not have."""
    zeros = {name: np.broadcast_to(np.float32(0), shape) for name, shape in expected_shapes(config).items()}
    expected = {name: array.shape for name, array in _taken_apart(zeros, config).items()}
    pieces = {_SHARED, _LOGITS, _ENCODER_PIECES, _DECODER_PIECES}
    for name in theirs:
        if name not in expected and name not in pieces and name not in _POSITIONS:
            raise BundleError(f"{where} has the weight {name[:80]!r}, which a Marian model of its config does not have")
    for name, shape in expected.items():
        if name in pieces or (name == _BIAS and name not in theirs):
            continue
        if name not in theirs:
            raise BundleError(f"{where} lacks the weight {name!r}, which its config calls for: copy the model again")
        if theirs[name].shape != shape:
            raise BundleError(
                f"{where} has {name!r} of shape {theirs[name].shape}, its config calls for {shape}: "
                f"these two files are not of one model"
            )


def _pieces(theirs: Arrays, config: ModelConfig, where: str) -> tuple[Array, Array]:
    """The target's and the source's matrix; a file has a matrix that is used several times under any of its names."""
    sides = {"target": (_DECODER_PIECES, _LOGITS), "source": (_ENCODER_PIECES,)}
    if config.share_embeddings:
        sides = dict.fromkeys(sides, (_SHARED, _ENCODER_PIECES, _DECODER_PIECES, _LOGITS))
    found = {}
    for side, names in sides.items():
        there = [name for name in names if name in theirs]
        if not there:
            raise BundleError(
                f"{where} lacks the weight {names[0]!r}, which its config calls for: copy the model again"
            )
        shape = (config.vocab_size if side == "target" else config.num_source_pieces, config.d_model)
        for name in there:
            if theirs[name].shape != shape:
                raise BundleError(
                    f"{where} has {name!r} of shape {theirs[name].shape}, its config calls for {shape}: "
                    f"these two files are not of one model"
                )
            if not np.array_equal(theirs[name], theirs[there[0]]):
                raise BundleError(
                    f"{where} has one matrix in {there[0]!r} and another in {name!r}: ours are one and the same"
                )
        found[side] = theirs[there[0]]
    return found["target"], found["source"]
