"""The tree of a search, ready to be drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.explain.pieces import shown
from dragoman.explain.trace import BeamTree, Node
from dragoman.recipe import SearchConfig
from dragoman.search.history import BeamNode
from dragoman.text.tokenizer import Tokenizer


def make_tree(
    nodes: Sequence[BeamNode], config: SearchConfig, tokenizer: Tokenizer, target_ids: Sequence[int]
) -> BeamTree:
    """The nodes that `search` wrote down, and those of the hypothesis that it chose."""
    return BeamTree(
        width=config.beam,
        length_penalty=config.length_penalty,
        nodes=tuple(
            Node(
                id=number,
                parent=node.parent,
                step=node.step,
                piece_id=node.piece,
                piece=tokenizer.piece(node.piece),
                text=shown(tokenizer, node.piece),
                log_probability=node.log_probability,
                score=node.score,
                state=node.fate,
                reason=node.why,
            )
            for number, node in enumerate(nodes)
        ),
        best=best_path(nodes, target_ids),
    )


def best_path(nodes: Sequence[BeamNode], target_ids: Sequence[int]) -> tuple[int, ...]:
    """The nodes that spell `target_ids`, first step first; none if the search did not write that."""
    # A hypothesis is in the tree once, and may be followed from its first piece: no node has two children alike.
    children = {(node.parent, node.piece): number for number, node in enumerate(nodes)}
    path: list[int] = []
    for id in target_ids:
        number = children.get((path[-1] if path else None, id))
        if number is None:
            return ()
        path.append(number)
    return tuple(path)
