"""A model of the smallest kind: what comes next is looked up in a table, at a place that all pieces so far decide.

It is searched like any other, and `log_probs_after` says the same from scratch, without a state: the specification.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

PADDING, BEGIN, END = 0, 1, 2
SPECIAL = {"padding_id": PADDING, "begin_id": BEGIN, "end_id": END}
TABLE = torch.randn(997, 101, generator=torch.Generator().manual_seed(5)) * 2


@dataclass(frozen=True)
class FakeState:
    place_R: Tensor
    written: int
    selects: list[list[int]]

    def select(self, rows_R: Tensor) -> "FakeState":
        self.selects.append(rows_R.tolist())
        return FakeState(self.place_R[rows_R], self.written, self.selects)


@dataclass(frozen=True)
class FakeStep:
    logits_BV: Tensor
    state: FakeState


@dataclass
class FakeModel:
    """Models of another `start` think otherwise. `encodes` counts the sources read, `rows` the rows of each step,
    `selects` what was selected.
    """

    num_pieces: int = 11
    end_bonus: float = 1.0
    start: int = 7
    encodes: int = 0
    rows: list[int] = field(default_factory=list)
    selects: list[list[int]] = field(default_factory=list)

    def encode(self, source_BS: Tensor) -> FakeState:
        self.encodes += 1
        place_B = torch.full((len(source_BS),), self.start)
        for ids_B in source_BS.T:
            place_B = torch.where(ids_B == PADDING, place_B, (place_B * 31 + ids_B + 1) % 9973)
        return FakeState(place_B, 0, self.selects)

    def step(self, last_B: Tensor, state: FakeState) -> FakeStep:
        assert state.written == len(self.rows), "a state that is not the last step's"
        self.rows.append(len(last_B))
        place_B = (state.place_R * 17 + last_B + 3) % 9973
        logits_BV = TABLE[place_B % 997, : self.num_pieces]
        logits_BV[:, END] += self.end_bonus
        return FakeStep(logits_BV, FakeState(place_B, state.written + 1, self.selects))

    def log_probs_after(self, source: list[int], target: list[int]) -> list[float]:
        """The log-probability of each piece after `target`."""
        fresh = FakeModel(self.num_pieces, self.end_bonus, self.start)
        state = fresh.encode(torch.tensor([source]))
        for piece in [BEGIN, *target]:
            step = fresh.step(torch.tensor([piece]), state)
            state = step.state
        return step.logits_BV.log_softmax(-1)[0].tolist()


def batch(sources: list[list[int]]) -> Tensor:
    """Sources of different lengths as one tensor, filled up with padding."""
    longest = max(map(len, sources))
    return torch.tensor([source + [PADDING] * (longest - len(source)) for source in sources])


def enumerate_translations(model: FakeModel, source: list[int], limit: int, prefix: tuple[int, ...] = ()):
    """Every finished translation of at most `limit` pieces, with its log-probability, end included."""
    log_probs = model.log_probs_after(source, list(prefix))
    yield prefix, log_probs[END]
    if len(prefix) < limit:
        for piece in range(END + 1, model.num_pieces):
            for ids, total in enumerate_translations(model, source, limit, (*prefix, piece)):
                yield ids, total + log_probs[piece]
