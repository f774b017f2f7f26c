"""One teacher-forced pass over a finished translation, everything written down.

The decoder reads the begin piece and the target shifted by one, so that its row t writes piece t. Only what the model
itself notes is assumed to be there; what follows from it is `derived`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.model.build import TranslationModel
from dragoman.model.record import Record

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Forced:
    """What a pass wrote down, without the batch's axis, and the logits (T, V) of each target piece."""

    tensors: Tensors
    logits_TV: Tensor

    @property
    def log_probs_TV(self) -> Tensor:
        return self.logits_TV.float().log_softmax(-1)


def force(model: TranslationModel, source_ids: Sequence[int], target_ids: Sequence[int]) -> Forced:
    """The pass; `source_ids` with tag and end, `target_ids` with the end if there is one."""
    record = Record()
    source_1S, target_1T = torch.tensor([list(source_ids)]), decoder_input([target_ids], model.config)
    with torch.inference_mode():
        hidden_1TD = model.hidden(source_1S, target_1T, record)
        logits_TV = model.logits(hidden_1TD)[0]
    tensors = {name: _without_batch(name, tensor) for name, tensor in record.tensors.items()}
    tensors["decoder.output"] = hidden_1TD[0]
    tensors["logits"] = logits_TV
    return Forced(tensors, logits_TV)


def forced_log_probs(model: TranslationModel, source_BS: Tensor, target_BT: Tensor) -> Tensor:
    """log p of each piece of padded targets, given what comes before it: (B, T). Nothing is written down."""
    with torch.inference_mode():
        logits_BTV = model.logits(model.hidden(source_BS, decoder_input(target_BT.tolist(), model.config)))
        log_probs_BTV = logits_BTV.float().log_softmax(-1)
        return log_probs_BTV.gather(-1, target_BT[..., None])[..., 0]


def decoder_input(targets: Sequence[Sequence[int]], config: ModelConfig) -> Tensor:
    """What the decoder reads: the begin piece, then the targets without their last piece."""
    return torch.tensor([[config.begin_id, *list(target)[:-1]] for target in targets])


def padded(rows: Sequence[Sequence[int]], padding_id: int) -> Tensor:
    """Rows of ids filled up to the longest: (B, S)."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[padding_id] * (longest - len(row))] for row in rows])


def _without_batch(name: str, tensor: Tensor) -> Tensor:
    """Everything that is noted has a batch axis but the table of positions."""
    return tensor if name.endswith(".position") else tensor[0]
