"""What search asks of a model: read the source once, then write piece by piece. Any class with this shape will do."""

from typing import Protocol, Self, TypeVar

from torch import Tensor


class State(Protocol):
    """Where decoding stands, a row a hypothesis: the source as the model sees it, and what was written so far."""

    def select(self, rows_R: Tensor, /) -> Self:
        """These rows, in this order: repeated (a beam grows), moved (a beam is reordered), left out (it is done)."""
        ...


StateT = TypeVar("StateT", bound=State)
StateT_co = TypeVar("StateT_co", bound=State, covariant=True)


class Step(Protocol[StateT_co]):
    """One piece further: what may come next, and the state to go on from."""

    @property
    def logits_BV(self) -> Tensor: ...

    @property
    def state(self) -> StateT_co: ...


class Searchable(Protocol[StateT]):
    """A model that can be searched."""

    def encode(self, source_BS: Tensor, /) -> StateT:
        """Read a batch of sources, filled up with the padding piece."""
        ...

    def step(self, last_B: Tensor, state: StateT, /) -> Step[StateT]:
        """The pieces that may follow `last_B`, which is the begin piece at first."""
        ...
