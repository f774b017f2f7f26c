"""What `explain` asks the model to write down: an explicit argument, so that nothing is kept in module state.

A module that is handed a record takes the plain path (the one that has weights to show) and notes its tensors under
the name that it was given; handed None, it takes the fast path and notes nothing.
"""

from __future__ import annotations

from torch import Tensor


class Record:
    """Tensors by name: `encoder.0.self_attention.weights` (B, H, Q, K), and so on."""

    def __init__(self, tensors: dict[str, Tensor] | None = None, prefix: str = "") -> None:
        self.tensors: dict[str, Tensor] = {} if tensors is None else tensors
        self._prefix = prefix

    def note(self, name: str, tensor: Tensor) -> None:
        """Write down one tensor, detached."""
        self.tensors[self._prefix + name] = tensor.detach()

    def within(self, name: str | int) -> Record:
        """The same record, for a part of the model: names that are noted there begin with `name.`."""
        return Record(self.tensors, f"{self._prefix}{name}.")


def within(record: Record | None, name: str | int) -> Record | None:
    """`record.within(name)`, where there is a record."""
    return None if record is None else record.within(name)
