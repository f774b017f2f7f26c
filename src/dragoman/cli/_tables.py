"""Tables for people: no lines, quiet heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def table(*columns: tuple[str, str]) -> Table:
    """A table of columns (head, side): figures right, text left, folded where it is too long."""
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="dim")
    for head, side in columns:
        if side == "right":
            grid.add_column(head, justify="right", no_wrap=True)
        else:
            grid.add_column(head, overflow="fold")
    return grid
