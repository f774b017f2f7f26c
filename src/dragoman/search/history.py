"""The tree of a beam search, for `explain` to draw: what was considered at every step, and what became of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.search.length import length_penalty
from dragoman.search.rules import Rules

OUTSIDE = "outside the beam"


@dataclass(frozen=True)
class BeamNode:
    """A piece that was considered. `parent` is its hypothesis' last node (None: the begin piece); `score` is the
    hypothesis' so far, this piece included; `why` says why it was pruned.
    """

    step: int
    parent: int | None
    piece: int
    log_probability: float
    score: float
    fate: Literal["kept", "finished", "pruned"]
    why: str = ""


@dataclass
class History:
    """Hand one to `search` and read `nodes[sentence]` afterwards: the nodes in the order they were considered."""

    nodes: dict[int, list[BeamNode]] = field(default_factory=dict)
    _open: dict[int, list[int | None]] = field(default_factory=dict)

    def record(
        self,
        sentence: int,
        step: int,
        ranked: Sequence[tuple[int, int, float]],
        rules: Rules,
        verdict: str,
    ) -> None:
        """Write down one step of one sentence: its continuations (place of the parent in the beam, piece,
        log-probability), best first, and the verdict that ended its search, if one did.
        """
        beam, alpha, end_id = rules.config.beam, rules.config.length_penalty, rules.end_id
        nodes = self.nodes.setdefault(sentence, [])
        parents = self._open.get(sentence, [None])
        kept: list[int | None] = []
        num_kept = 0
        for rank, (place, piece, total) in enumerate(ranked):
            fate, why = _fate(piece == end_id, rank < beam, num_kept < beam, verdict)
            if piece != end_id and num_kept < beam:
                num_kept += 1
                kept.append(len(nodes) if math.isfinite(total) else None)
            if math.isfinite(total):
                score = total / length_penalty(step + 1, alpha)
                nodes.append(BeamNode(step, parents[place], piece, total, score, fate, why))
        self._open[sentence] = kept


def _fate(
    is_end: bool, in_beam: bool, has_place: bool, verdict: str
) -> tuple[Literal["kept", "finished", "pruned"], str]:
    if is_end:
        return ("finished", "") if in_beam else ("pruned", OUTSIDE)
    if not has_place:
        return "pruned", OUTSIDE
    return ("pruned", verdict) if verdict else ("kept", "")
