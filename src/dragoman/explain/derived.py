"""What follows from a pass: the inputs of sub-layers, the lengths of values, parameters by head.

All of it is for a model that is built of the paper's blocks; of another kind of model nothing is derived.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.explain.forced import Tensors
from dragoman.explain.request import HeadName
from dragoman.explain.trace import Shapes
from dragoman.model.multi_head import MultiHeadAttention
from dragoman.model.residual import Residual
from dragoman.model.transformer import Transformer

SHOWN_POSITIONS = 64
"""At least so many rows of the table of positions, and those of the whole sentence."""


@dataclass(frozen=True)
class Attention:
    """An attention of the model: its name in the record, what it is made of, and the residual around it."""

    name: str
    module: MultiHeadAttention
    residual: Residual


def blocks_of(model: object) -> Iterator[tuple[str, nn.Module]]:
    """The blocks, by their names in the record, in the order that a pass goes through them."""
    for part in ("encoder", "decoder"):
        stack = getattr(getattr(model, part, None), "blocks", ())
        for index, block in enumerate(stack):
            yield f"{part}.{index}", block


def attentions_of(model: object) -> Iterator[Attention]:
    """Every attention, encoder first."""
    for name, block in blocks_of(model):
        for kind in ("self_attention", "cross_attention"):
            module = getattr(block, kind, None)
            if isinstance(module, MultiHeadAttention):
                yield Attention(f"{name}.{kind}", module, getattr(block, f"{kind}_residual"))


def heads_of(model: object) -> Iterator[HeadName]:
    """Every head of the model."""
    for attention in attentions_of(model):
        part, layer, kind = attention.name.split(".")
        for head in range(attention.module.num_heads):
            yield HeadName(part, int(layer), kind, head)


def derive(model: nn.Module, tensors: Tensors) -> Tensors:
    """What the pass did not note but follows from what it did, by name."""
    found: Tensors = {}
    for side in ("source", "target"):
        if f"{side}.pieces" in tensors and f"{side}.position" in tensors:
            found[f"{side}.embedded"] = tensors[f"{side}.pieces"] + tensors[f"{side}.position"]
    with torch.inference_mode():
        for part, side in (("encoder", "source"), ("decoder", "target")):
            x_TD = found.get(f"{side}.embedded")
            for name, block in blocks_of(model):
                if x_TD is not None and name.startswith(f"{part}."):
                    x_TD = _through(name, block, x_TD, tensors, found)
            if x_TD is not None and part == "encoder" and isinstance(model, Transformer):
                found["encoder.output"] = model.encoder.norm(x_TD)
        for attention in attentions_of(model):
            value_HKC = tensors[f"{attention.name}.value"]
            found[f"{attention.name}.value_norm"] = _apart(value_HKC, attention.module).norm(dim=-1)
    if isinstance(model, Transformer) and model.source_embedding.position is not None:
        num_rows = max(SHOWN_POSITIONS, len(tensors["source.pieces"]))
        found["position.table"] = model.source_embedding.position.table_TD[:num_rows].detach()
    return found


def _through(name: str, block: nn.Module, x_TD: Tensor, tensors: Tensors, found: Tensors) -> Tensor:
    """Note each sub-layer's input, before and after its residual's norm; -> the block's output."""
    for kind in ("self_attention", "cross_attention", "feed_forward"):
        residual = getattr(block, f"{kind}_residual", None)
        if not isinstance(residual, Residual):
            continue
        found[f"{name}.{kind}_residual.input"] = x_TD
        found[f"{name}.{kind}.input"] = residual.before(x_TD)
        if kind == "feed_forward":
            found[f"{name}.{kind}.output"] = block.feed_forward(found[f"{name}.{kind}.input"])  # type: ignore[operator]
        x_TD = tensors[f"{name}.{kind}_residual.output"]
    return x_TD


def _apart(x_HTC: Tensor, attention: MultiHeadAttention) -> Tensor:
    """Each head's part of x W_O: (H, T, C) -> (H, T, D); their sum, and the bias, is W_O's output."""
    return torch.einsum("HTC,HDC->HTD", x_HTC, w_o_by_head(attention))


def w_o_by_head(attention: MultiHeadAttention) -> Tensor:
    """(H, D, C): W_O acts on the heads side by side."""
    w_o_DE = attention.w_o.weight.detach()
    return w_o_DE.view(w_o_DE.shape[0], attention.num_heads, -1).transpose(0, 1)


@dataclass(frozen=True)
class Later:
    """A tensor that is made when somebody asks for it; its shape is known before."""

    shape: tuple[int, ...]
    make: Callable[[], Tensor]


def on_demand(model: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, Later]:
    """What may be asked for besides, by name: parameters by head, and each head's part of its layer's output."""
    found: dict[str, Later] = {}
    for attention in attentions_of(model):
        module, name = attention.module, attention.name
        for place, letter in enumerate("qkv"):
            found[f"{name}.w_{letter}"] = _slice_by_head(module, module.w_qkv, place)
            if module.b_qkv is not None:
                found[f"{name}.b_{letter}"] = _slice_by_head(module, module.b_qkv, place)
        found[f"{name}.w_o"] = _view(w_o_by_head(module))
        if module.w_o.bias is not None:
            found[f"{name}.b_o"] = _view(module.w_o.bias)
        mixed_HTC = tensors[f"{name}.mixed"]
        shape = (*mixed_HTC.shape[:2], module.w_o.weight.shape[0])
        found[f"{name}.contribution"] = Later(shape, functools.partial(_apart, mixed_HTC, module))
    for name, block in blocks_of(model):
        for parameter_name, parameter in block.named_parameters():
            if ".norm." in parameter_name:
                found[f"{name}.{parameter_name}"] = _view(parameter)
    return found


def shapes_on_demand(model: nn.Module, tensors: Mapping[str, Tensor]) -> Shapes:
    """Names and shapes of `on_demand`."""
    return {name: later.shape for name, later in on_demand(model, tensors).items()}


def _slice_by_head(module: MultiHeadAttention, stacked: Tensor, place: int) -> Later:
    rows = stacked.detach().split(module.widths)[place]
    return _view(rows.view(module.num_heads, rows.shape[0] // module.num_heads, *rows.shape[1:]))


def _view(tensor: Tensor) -> Later:
    """Of what is there already."""
    return Later(tuple(tensor.shape), tensor.detach)
