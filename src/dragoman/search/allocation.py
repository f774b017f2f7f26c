"""Dynamic beam allocation (Post and Vilar 2018): how a beam is led to the phrases that a translation must have.

Besides the likeliest continuations, those that begin or go on with a missing phrase are considered. Hypotheses are
banked by how many pieces they still owe, and every bank gets its share of the beam: a phrase is so written where it
costs least, not at once and not at the end.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from dragoman.search.constraints import Progress
from dragoman.search.frontier import Candidates, Frontier
from dragoman.search.rules import NEVER, Rules


@dataclass(frozen=True)
class Continuation:
    """One more piece for the hypothesis in `row`, the log-probability with it, and the pieces owed after it."""

    row: int
    piece: int
    total: float
    pieces_owed: int


def share_by_banks(continuations: Iterable[Continuation], beam: int, end_id: int) -> list[Continuation]:
    """An order in which the first ones are fair to every bank: the best of each, then the second of each, ...

    Within a round who owes least comes first: with fewer places than banks it is those that get done. Ends come
    before all, as they take no place from the open ones; but only those within a beam of their own bank, the rest
    is left out.
    """
    banks: dict[int, list[Continuation]] = {}
    for continuation in sorted(continuations, key=lambda one: (-one.total, one.row, one.piece)):
        banks.setdefault(continuation.pieces_owed, []).append(continuation)
    ranked = [(rank, owed, one) for owed, bank in banks.items() for rank, one in enumerate(bank)]
    ends = [one for rank, _, one in ranked if one.piece == end_id and rank < beam]
    opened = [one for _, _, one in sorted(ranked, key=lambda entry: entry[:2]) if one.piece != end_id]
    return ends + opened


def allocate(
    frontier: Frontier, index: int, log_probs_RV: Tensor, pieces_RP: Tensor, candidates: Candidates, rules: Rules
) -> None:
    """Replace the likeliest candidates of the sentence at `index`, in place, by ones that are fair to every bank.

    They come from `pieces_RP`, the likeliest pieces of each row, and from the phrases that each row still owes.
    """
    pool: list[tuple[int, int, Progress]] = []
    for row in frontier.rows(index):
        progress = frontier.progress[row]
        assert progress is not None
        pool += [(row, piece, progress) for piece in progress.next_pieces().union(pieces_RP[row].tolist())]
    rows, pieces = [row for row, _, _ in pool], [piece for _, piece, _ in pool]
    totals = (frontier.totals_R[rows] + log_probs_RV[rows, pieces]).tolist()
    continuations = [
        Continuation(row, piece, total, progress.advance(piece).pieces_owed)
        for (row, piece, progress), total in zip(pool, totals, strict=True)
        if total > NEVER
    ]
    candidates.totals_BP[index] = NEVER
    ranked = share_by_banks(continuations, rules.config.beam, rules.end_id)
    for place, one in enumerate(ranked[: candidates.totals_BP.shape[1]]):
        candidates.rows_BP[index, place] = one.row
        candidates.pieces_BP[index, place] = one.piece
        candidates.totals_BP[index, place] = one.total
