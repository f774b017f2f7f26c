"""A trace drawn with matplotlib: heat maps, one for words, one for a head, one for all heads of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.explain.canvas import GREY, HEAT, INK, new_figure, quiet, save, title
from dragoman.explain.curves import draw_learning_rate, draw_smoothing
from dragoman.explain.effects import Effects
from dragoman.explain.pieces import axes_of
from dragoman.explain.positions import draw_positions
from dragoman.explain.request import parse_head
from dragoman.explain.trace import Array, Head, Trace
from dragoman.explain.words import aligned_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"encoder_self": "Encoder self-attention", "decoder_self": "Decoder self-attention", "cross": "Cross-attention"}
TELLING = 3
_MOST_NUMBERS = 24
"""A map with more rows or columns than this has no numbers in its cells."""


def draw_all(trace: Trace, folder: Path, effects: Effects | None = None) -> list[Path]:
    """Every picture; -> the files. The heads that are drawn large are those that the translation needs most."""
    files = [save(alignment_figure(trace), folder / "alignment.png")] if trace.alignment else []
    for kind in KINDS:
        if any(head.kind == kind for head in trace.heads):
            files.append(save(heads_figure(trace, kind), folder / f"heads-{kind.replace('_', '-')}.png"))
    for effect in effects.telling(TELLING) if effects is not None else ():
        files.append(save(head_figure(trace, effect.name), folder / f"{effect.name}.png"))
    if trace.model.position:
        files.append(draw_positions(folder / "positions.png"))
    files.append(draw_learning_rate(folder / "learning-rate.png"))
    files.append(draw_smoothing(folder / "label-smoothing.png"))
    return files


def alignment_figure(trace: Trace) -> Figure:
    """Which words looked where."""
    matrix = aligned_words(trace.tensors, trace.alignment_layer, trace.source, trace.target)
    rows, columns = [word.text for word in trace.target.words], [word.text for word in trace.source.words]
    heading = f"Which words looked where: decoder.{trace.alignment_layer}.cross_attention, mean of its heads"
    return heat_map(matrix, rows, columns, heading)


def head_figure(trace: Trace, name: str) -> Figure:
    """One head's weights. A row is a query; in cross-attention it is the piece that is being written."""
    head = parse_head(name)
    weights_QK = trace.tensors[f"{head.attention_name}.weights"][head.head]
    rows, columns = axes_of(trace, head.kind)
    label = next(one.label for one in trace.heads if one.name == name)
    return heat_map(weights_QK, rows, columns, f"{name}: {label}")


def heat_map(matrix: Array, rows: Sequence[str], columns: Sequence[str], heading: str) -> Figure:
    """A map of weights from 0 to 1, with names at both sides and numbers where there is room."""
    side = 0.42 if max(len(rows), len(columns)) <= _MOST_NUMBERS else 0.24
    longest_row, longest_column = max(map(len, rows), default=1), max(map(len, columns), default=1)
    width = max(5.0, side * len(columns) + 0.09 * longest_row + 1.4)
    figure = new_figure(width, side * len(rows) + 0.09 * longest_column + 1.1)
    axes = figure.subplots()
    image = axes.imshow(matrix, cmap=HEAT, vmin=0, vmax=1, aspect="equal")
    axes.set_xticks(range(len(columns)), labels=list(columns), rotation=90, parse_math=False)
    axes.set_yticks(range(len(rows)), labels=list(rows), parse_math=False)
    axes.xaxis.tick_top()
    quiet(axes)
    axes.tick_params(labelsize=10 if side > 0.3 else 7, colors=INK)
    if max(len(rows), len(columns)) <= _MOST_NUMBERS:
        for row, column in zip(*(matrix >= 0.1).nonzero(), strict=True):
            weight = float(matrix[row, column])
            dark = weight < 0.6
            digits = f"{weight:.2f}".removeprefix("0")
            axes.text(column, row, digits, ha="center", va="center", fontsize=7.5, color="white" if dark else INK)
    figure.suptitle(heading, x=0.02, ha="left", fontsize=11, color=INK, parse_math=False)
    bar = figure.colorbar(image, ax=axes, shrink=min(1.0, 3 / (side * len(rows) + 1)), aspect=14, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=GREY, labelsize=8, length=0)
    return figure


def heads_figure(trace: Trace, kind: str) -> Figure:
    """All heads of a kind: a row a layer, a column a head."""
    heads = [head for head in trace.heads if head.kind == kind]
    layers, num_heads = 1 + max(head.layer for head in heads), 1 + max(head.head for head in heads)
    rows, columns = axes_of(trace, kind)
    ratio = min(2.0, max(0.5, len(rows) / max(1, len(columns))))
    figure = new_figure(max(5.0, 1.75 * num_heads + 0.8), (1.6 * ratio + 0.35) * layers + 0.8)
    grid = figure.subplots(layers, num_heads, squeeze=False)
    for head in heads:
        axes = grid[head.layer, head.head]
        axes.imshow(_weights(trace, head), cmap=HEAT, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.set_xticks([])
        axes.set_yticks([])
        quiet(axes)
        title(axes, _shortened(head.label), size=7.5)
        if head.head == 0:
            axes.set_ylabel(f"layer {head.layer}", color=GREY, fontsize=9)
        if head.layer == layers - 1:
            axes.set_xlabel(f"head {head.head}", color=GREY, fontsize=9)
    heading = f"{KINDS[kind]}: rows look at columns, yellow is 1"
    figure.suptitle(heading, x=0.02, ha="left", fontsize=11, color=INK)
    return figure


def _weights(trace: Trace, head: Head) -> Array:
    name = parse_head(head.name)
    weights_QK: Array = trace.tensors[f"{name.attention_name}.weights"][name.head]
    return weights_QK


def _shortened(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
