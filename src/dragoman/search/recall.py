"""A model that recalls how others were translated: nearest neighbours, asked at every step (Khandelwal et al. 2021).

    source -> the examples whose sources are most like it -> the hidden vector before each piece of their translations
    h -> the k of those vectors that are nearest -> the pieces that followed them, the nearer the likelier

    p(piece) = (1 - share) * model(piece) + share * sum over neighbours with that piece of softmax(-|h - k|^2 / t)
    share = most * max(0, 1 - |h - nearest k|^2 / far)

Nothing is trained. As in Dai et al. (2023), neighbours are looked for among a few dozen examples of each sentence and
not among all, so that a memory needs no vectors on disk: they are made when an example is first recalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from dragoman.search.examples import Examples

NUM_EXAMPLES = 64
NUM_NEIGHBOURS = 16
SHARE = 0.5
FAR = 0.6
TEMPERATURE = 0.04
"""What a memory is worth at most, at which distance it is worth nothing, and t, as shares of the mean |k|^2."""
KEPT_NUMBERS = 2**27
"""Numbers in vectors that are kept for the next sentence, 512 MB of them."""
BATCH_CELLS = 4096


class Recallable(Protocol):
    """A model that can be searched, and tells the vectors that its logits are made of."""

    def encode(self, source_BS: Tensor, /) -> Any: ...

    def step(self, last_B: Tensor, state: Any, /) -> Any: ...

    def hidden(self, source_BS: Tensor, target_BT: Tensor, /) -> Tensor: ...


@dataclass(frozen=True)
class Recollection:
    """What a sentence's examples have: the vector before each piece of their translations, and the piece."""

    vectors_ND: Tensor
    pieces_N: Tensor

    def mixed(self, probabilities_RV: Tensor, hidden_RD: Tensor) -> Tensor:
        """A model's probabilities after these vectors, mixed with what followed the nearest ones."""
        squares_N = self.vectors_ND.square().sum(dim=1)
        distances_RN = torch.cdist(hidden_RD, self.vectors_ND).square() / squares_N.mean()
        nearest_RK, places_RK = distances_RN.topk(min(NUM_NEIGHBOURS, len(squares_N)), dim=1, largest=False)
        share_R1 = SHARE * (1 - nearest_RK[:, :1] / FAR).clamp_min(0)
        weights_RK = share_R1 * torch.softmax(-nearest_RK / TEMPERATURE, dim=1)
        return ((1 - share_R1) * probabilities_RV).scatter_add_(1, self.pieces_N[places_RK], weights_RK)


@dataclass(frozen=True)
class RecallState:
    """Where the model stands, what each sentence's examples have, and which sentence a row is of."""

    state: Any
    recollections: Sequence[Recollection | None]
    sentence_R: Tensor

    def select(self, rows_R: Tensor) -> RecallState:
        return RecallState(self.state.select(rows_R), self.recollections, self.sentence_R[rows_R])


@dataclass(frozen=True)
class RecallStep:
    logits_BV: Tensor
    state: RecallState


class Recall:
    """A model and examples; a sentence that is like none of them is translated as the model would."""

    def __init__(self, model: Recallable, examples: Examples, *, padding_id: int, begin_id: int) -> None:
        self._model = model
        self._examples = examples
        self._padding_id = padding_id
        self._begin_id = begin_id
        self._kept: dict[int, Tensor] = {}

    def encode(self, source_BS: Tensor) -> RecallState:
        sources = [[id for id in row if id != self._padding_id] for row in source_BS.tolist()]
        nearest = [self._examples.nearest(source, NUM_EXAMPLES).places.tolist() for source in sources]
        vectors = self._vectors({place for places in nearest for place in places})
        recollections = [self._recollect(places, vectors) if places else None for places in nearest]
        return RecallState(self._model.encode(source_BS), recollections, torch.arange(len(sources)))

    def step(self, last_B: Tensor, state: RecallState) -> RecallStep:
        step = self._model.step(last_B, state.state)
        mixed_BV = step.logits_BV.softmax(dim=-1)
        for sentence in state.sentence_R.unique().tolist():
            recollection = state.recollections[sentence]
            if recollection is not None:
                rows = state.sentence_R == sentence
                mixed_BV[rows] = recollection.mixed(mixed_BV[rows], step.hidden_BD[rows])
        log_probs_BV = mixed_BV.clamp_min(torch.finfo(mixed_BV.dtype).tiny).log()
        return RecallStep(log_probs_BV, RecallState(step.state, state.recollections, state.sentence_R))

    def _recollect(self, places: Sequence[int], vectors: dict[int, Tensor]) -> Recollection:
        pieces = [piece for place in places for piece in self._examples.targets[place]]
        return Recollection(torch.cat([vectors[place] for place in places]), torch.tensor(pieces))

    def _vectors(self, places: set[int]) -> dict[int, Tensor]:
        """The vectors of these examples, each (T, D). Threads may ask at once: the worst is that both make them."""
        kept = self._kept
        found = {place: kept[place] for place in places if place in kept}
        missing = sorted(places - found.keys(), key=lambda place: len(self._examples.targets[place]))
        while missing:
            longest = max(len(self._examples.targets[missing[-1]]), len(self._examples.sources[missing[-1]]))
            num = max(1, BATCH_CELLS // longest)
            batch, missing = missing[-num:], missing[:-num]
            found.update(zip(batch, self._make_vectors(batch), strict=True))
        if sum(vector.numel() for vector in (kept | found).values()) > KEPT_NUMBERS:
            kept = {}
        self._kept = kept | found
        return found

    def _make_vectors(self, places: Sequence[int]) -> list[Tensor]:
        targets = [self._examples.targets[place] for place in places]
        source_BS = self._padded([self._examples.sources[place] for place in places])
        target_BT = self._padded([[self._begin_id, *target[:-1]] for target in targets])
        hidden_BTD = self._model.hidden(source_BS, target_BT)
        return [hidden_TD[: len(target)].clone() for hidden_TD, target in zip(hidden_BTD, targets, strict=True)]

    def _padded(self, rows: Sequence[Sequence[int]]) -> Tensor:
        tensors = [torch.tensor(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=self._padding_id)
