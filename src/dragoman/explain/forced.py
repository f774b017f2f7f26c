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
MOST_LOGITS = 1 << 24
"""Logits that are held at once where a batch may have as many rows as a sentence has words."""


@dataclass(frozen=True)
class Forced:
    """What a pass wrote down, without the batch's axis, and the logits (T, V) of each target piece."""

    tensors: Tensors
    logits_TV: Tensor

    @property
    def log_probs_TV(self) -> Tensor:
        return self.logits_TV.float().log_softmax(-1)

    def log_probs_of(self, target_ids: Sequence[int]) -> list[float]:
        """log p of each piece of the translation, given what comes before it."""
        found: list[float] = self.log_probs_TV.gather(-1, torch.tensor(target_ids)[:, None])[:, 0].tolist()
        return found


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
    """log p of each piece of padded targets, given what comes before it: (B, T). Nothing is written down.

    A few rows at a time: all logits of a long sentence without each of its words are gigabytes.
    """
    num_rows = max(1, MOST_LOGITS // (target_BT.shape[1] * model.config.vocab_size))
    batches = zip(source_BS.split(num_rows), target_BT.split(num_rows), strict=True)
    with torch.inference_mode():
        return torch.cat([_log_probs(model, *batch) for batch in batches])


def _log_probs(model: TranslationModel, source_BS: Tensor, target_BT: Tensor) -> Tensor:
    logits_BTV = model.logits(model.hidden(source_BS, decoder_input(target_BT.tolist(), model.config)))
    return logits_BTV.float().log_softmax(-1).gather(-1, target_BT[..., None])[..., 0]


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
