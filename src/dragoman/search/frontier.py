"""The open hypotheses of a search, and what may become of them.

Besides the project's letters: R rows, the open hypotheses of all sentences (B sentences of W each); P possible
continuations of a sentence, best first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.search.constraints import Progress, begin_progress
from dragoman.search.hypothesis import Hypothesis, make_hypothesis
from dragoman.search.rules import Rules


@dataclass(frozen=True)
class Candidates:
    """Continuations of each sentence, best first: the row each continues, its piece, the log-probability with it."""

    rows_BP: Tensor
    pieces_BP: Tensor
    totals_BP: Tensor


@dataclass(frozen=True)
class Frontier:
    """The open hypotheses, W rows for every sentence that is still searched.

    `parents_R` are the rows of the step before that they continue; a row that holds no hypothesis has a total of
    minus infinity; `progress` is None where there is no phrase to write. `led` says of each sentence whether the
    likeliest continuation of any step so far was an end.
    """

    sentences: tuple[int, ...]
    ids_RT: Tensor
    log_probs_RT: Tensor
    totals_R: Tensor
    parents_R: Tensor
    progress: tuple[Progress | None, ...]
    led: tuple[bool, ...]

    @property
    def length(self) -> int:
        """Pieces written so far."""
        return self.ids_RT.shape[1]

    @property
    def width(self) -> int:
        return self.ids_RT.shape[0] // len(self.sentences)

    def rows(self, index: int) -> range:
        """The rows of the sentence at `index`."""
        return range(index * self.width, (index + 1) * self.width)

    def sentence_of_rows(self) -> list[int]:
        return [sentence for sentence in self.sentences for _ in range(self.width)]

    def last(self, begin_id: int) -> Tensor:
        """The last piece of each row."""
        return self.ids_RT[:, -1] if self.length else torch.full_like(self.parents_R, begin_id)

    def end(self, row: int, end_log_prob: float, alpha: float) -> Hypothesis:
        """The hypothesis in `row`, finished."""
        log_probs = [*self.log_probs_RT[row].tolist(), end_log_prob]
        return make_hypothesis(self.ids_RT[row].tolist(), log_probs, finished=True, alpha=alpha)

    def cut(self, row: int, alpha: float) -> Hypothesis:
        """The hypothesis in `row` as it stands."""
        log_probs = self.log_probs_RT[row].tolist()
        return make_hypothesis(self.ids_RT[row].tolist(), log_probs, finished=False, alpha=alpha)

    def led_after(self, candidates: Candidates, end_id: int) -> tuple[bool, ...]:
        """`led` when these continuations count too."""
        ends = (candidates.pieces_BP[:, 0] == end_id).tolist()
        return tuple(before or end for before, end in zip(self.led, ends, strict=True))

    def proceed(self, chosen: Candidates, log_probs_RV: Tensor, led: Sequence[bool], stay: Sequence[int]) -> Frontier:
        """The chosen continuations of the sentences that stay."""
        rows_R, pieces_R = chosen.rows_BP[stay].flatten(), chosen.pieces_BP[stay].flatten()
        progress = [
            None if (before := self.progress[row]) is None else before.advance(piece)
            for row, piece in zip(rows_R.tolist(), pieces_R.tolist(), strict=True)
        ]
        return Frontier(
            sentences=tuple(self.sentences[index] for index in stay),
            ids_RT=torch.cat([self.ids_RT[rows_R], pieces_R[:, None]], dim=1),
            log_probs_RT=torch.cat([self.log_probs_RT[rows_R], log_probs_RV[rows_R, pieces_R][:, None]], dim=1),
            totals_R=chosen.totals_BP[stay].flatten(),
            parents_R=rows_R,
            progress=tuple(progress),
            led=tuple(led[index] for index in stay),
        )


def start(rules: Rules, device: torch.device) -> Frontier:
    """One empty hypothesis a sentence."""
    num = len(rules.limits)
    return Frontier(
        sentences=tuple(range(num)),
        ids_RT=torch.zeros(num, 0, dtype=torch.long, device=device),
        log_probs_RT=torch.zeros(num, 0, device=device),
        totals_R=torch.zeros(num, device=device),
        parents_R=torch.arange(num, device=device),
        progress=tuple(begin_progress(each.positive) if each.positive else None for each in rules.constraints),
        led=(False,) * num,
    )
