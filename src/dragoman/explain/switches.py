"""Heads switched off, and what that costs.

A head that is off adds nothing: its columns of W_O are zero. The model that is given stays as it is; what is returned
shares every tensor with it but the W_O that were changed, so it costs next to nothing and no other thread sees it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

import torch
from torch import nn

from dragoman.errors import ConfigError
from dragoman.explain.derived import Attention, attentions_of, heads_of
from dragoman.explain.effects import Effects, HeadEffect
from dragoman.explain.forced import forced_log_probs
from dragoman.explain.request import HeadName, parse_head
from dragoman.model.build import TranslationModel

ModelT = TypeVar("ModelT", bound=nn.Module)


def switched_off(model: ModelT, off: Iterable[str]) -> ModelT:
    """A model with these heads off; the model itself if there are none."""
    heads = [parse_head(name) for name in off]
    if not heads:
        return model
    check_heads(model, heads)
    changed = _own_copy(model, {head.attention_name for head in heads})
    attentions = {attention.name: attention for attention in attentions_of(changed)}
    for head in heads:
        _columns(attentions[head.attention_name], head.head).zero_()
    return changed


def check_heads(model: nn.Module, heads: Sequence[HeadName]) -> None:
    """Refuse heads that the model does not have."""
    known = set(map(str, heads_of(model)))
    for head in heads:
        if str(head) not in known:
            counts = {attention.name: attention.module.num_heads for attention in attentions_of(model)}
            if not counts:
                raise ConfigError("this model has no heads to switch off: it is no Transformer")
            layers = sum(name.startswith(f"{head.part}.") and name.endswith(head.attention) for name in counts)
            raise ConfigError(
                f"there is no head {head}: the {head.part} has {layers} layers of {max(counts.values())} heads, "
                f"counted from 0"
            )


def measure_effects(model: TranslationModel, source_ids: Sequence[int], target_ids: Sequence[int]) -> Effects:
    """Each head in turn switched off, and the finished translation gone through again: all measured, none estimated."""
    assert isinstance(model, nn.Module)
    source_1S, target_1T = torch.tensor([list(source_ids)]), torch.tensor([list(target_ids)])
    before = float(forced_log_probs(model, source_1S, target_1T).sum())
    own = _own_copy(model, {attention.name for attention in attentions_of(model)})
    attentions = {attention.name: attention for attention in attentions_of(own)}
    found = []
    for head in heads_of(model):
        with _off(attentions[head.attention_name], head.head):
            after = float(forced_log_probs(own, source_1S, target_1T).sum())
        found.append(HeadEffect(head.kind, head.layer, head.head, str(head), before - after))
    return Effects(before, tuple(found))


def _own_copy(model: ModelT, names: set[str]) -> ModelT:
    """The model again, with W_O of the named attentions its own and every other tensor shared."""
    changed = {id(one.module.w_o.weight) for one in attentions_of(model) if one.name in names}
    tensors = chain(model.parameters(), model.buffers())
    shared = {id(tensor): tensor for tensor in tensors if id(tensor) not in changed}
    # What deepcopy finds in its memo it takes for copied already.
    return copy.deepcopy(model, dict(shared))


@contextmanager
def _off(attention: Attention, head: int) -> Iterator[None]:
    columns = _columns(attention, head)
    kept = columns.clone()
    columns.zero_()
    try:
        yield
    finally:
        columns.copy_(kept)


def _columns(attention: Attention, head: int) -> torch.Tensor:
    """The columns of W_O that take this head's output: a view."""
    weight_DE = attention.module.w_o.weight.detach()
    width = weight_DE.shape[1] // attention.module.num_heads
    return weight_DE[:, head * width : (head + 1) * width]
