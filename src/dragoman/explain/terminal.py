"""A trace drawn with characters, for a terminal: darker is more. No torch here."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from dragoman.explain.effects import HeadEffect
from dragoman.explain.pieces import axes_of
from dragoman.explain.request import parse_head
from dragoman.explain.trace import Array, Candidate, Head, Trace
from dragoman.explain.words import aligned_words

SHADES = "·░▒▓█"
BAR = "█"
MOST_HEIGHT = 14
"""Longer words are cut where they stand upright over a column."""
_DOMINANT = 0.05
"""Weights below this are not listed."""


def draw_grid(rows: Sequence[str], columns: Sequence[str], matrix: Array, width: int) -> list[str]:
    """A row a query, a column a key, its name upright above it; a list where that does not fit into `width`."""
    rows = [clipped(row, max(8, width // 4)) for row in rows]
    margin = max(map(text_width, rows), default=0) + 2
    if margin + 2 * len(columns) > width:
        return _draw_list(rows, columns, matrix, margin, width)
    upright = [_letters(clipped(column, MOST_HEIGHT)) for column in columns]
    height = max(map(len, upright), default=0)
    head = []
    for level in range(height):
        letters = [word[level - height + len(word)] if level >= height - len(word) else " " for word in upright]
        head.append((" " * margin + "".join(filled(letter, 2) for letter in letters)).rstrip())
    body = [
        (filled(row, margin) + " ".join(shade(weight) for weight in weights)).rstrip()
        for row, weights in zip(rows, matrix.tolist(), strict=True)
    ]
    return head + body


def _draw_list(rows: Sequence[str], columns: Sequence[str], matrix: Array, margin: int, width: int) -> list[str]:
    """Each row's strongest columns, as many as fit."""
    lines = []
    for row, weights in zip(rows, matrix, strict=True):
        line = filled(row, margin)
        for place in np.argsort(-weights, kind="stable"):
            entry = f"{columns[place]} {weights[place]:.2f}"
            if weights[place] < _DOMINANT or text_width(line) + text_width(entry) > width:
                break
            line += f"{entry}  "
        lines.append(line.rstrip())
    return lines


def draw_alignment(trace: Trace, width: int) -> list[str]:
    """Which words the translation's words looked at."""
    if trace.alignment_layer < 0:
        return ["(no alignment: this model does not look at the source piece by piece)"]
    matrix = aligned_words(trace.tensors, trace.alignment_layer, trace.source, trace.target)
    if not matrix.size:
        return ["(no alignment: there are no words)"]
    return draw_grid(
        [word.text for word in trace.target.words], [word.text for word in trace.source.words], matrix, width
    )


def draw_head(trace: Trace, name: str, width: int) -> list[str]:
    """One head's weights. A row is the piece that is read or, in cross-attention, written."""
    head = parse_head(name)
    weights_QK = trace.tensors[f"{head.attention_name}.weights"][head.head]
    rows, columns = axes_of(trace, head.kind)
    return draw_grid(rows, columns, weights_QK, width)


def list_heads(heads: Sequence[Head], effects: Sequence[HeadEffect]) -> list[str]:
    """The dearest heads: name, what the translation loses without them, what they do."""
    known = {head.name: head for head in heads}
    lines = []
    for effect in effects:
        head = known[effect.name]
        lines.append(f"  {effect.name:<30}{-effect.effect:>+8.2f}   {head.label} ({head.share:.0%})")
    return lines


def list_steps(trace: Trace, width: int) -> list[str]:
    """A line a piece: how likely it was, and what might have been instead."""
    margin = max(8, *(text_width(piece.text) + 2 for piece in trace.target.pieces))
    margin = min(margin, 24)
    lines = []
    for number, step in enumerate(trace.steps, start=1):
        chosen = step.chosen
        line = f"{number:>4}  {filled(clipped(chosen.text, margin - 2), margin)}{chosen.probability:5.2f}  "
        line += filled(bar(chosen.probability, 10), 12)
        others = [one for one in step.top if one.id != chosen.id]
        lines.append(_as_many(line, [f"{one.text} {one.probability:.2f}" for one in others[:3]], width))
    return lines


def draw_step(trace: Trace, number: int, width: int) -> list[str]:
    """One step (the first is 1): the candidates, and what each decoder layer would have written."""
    step = trace.steps[number - 1]
    before = trace.target.pieces[number - 2].text if number > 1 else trace.begin.text
    lines = [f"Piece {number} of {len(trace.steps)}: reads {before!r}, writes {step.chosen.text!r}"]
    margin = max(text_width(one.text) for one in step.top) + 4
    for one in step.top:
        mark = "→ " if one.id == step.chosen.id else "  "
        room = max(0, width - margin - 8)
        lines.append(
            f"{mark}{filled(clipped(one.text, margin - 4), margin - 2)}{one.probability:6.3f} "
            f"{bar(one.probability, min(room, 40))}".rstrip()
        )
    if step.chosen.rank > len(step.top):
        lines.append(f"→ {step.chosen.text}  {step.chosen.probability:.3f}, number {step.chosen.rank}")
    for layer, candidates in enumerate(step.lens):
        start = f"  decoder.{layer} would write: "
        lines.append(_as_many(start, [_candidate(one) for one in candidates], width))
    return lines


def draw_tree(trace: Trace, width: int) -> list[str]:
    """The search, a line a step: what was kept, in the order of its likelihood; the winner's piece in brackets."""
    if trace.beam is None:
        return ["(nothing was searched)"]
    best = set(trace.beam.best)
    lines = []
    for step in range(max((node.step for node in trace.beam.nodes), default=-1) + 1):
        nodes = [node for node in trace.beam.nodes if node.step == step]
        shown = [node for node in nodes if node.state != "pruned" or node.id in best]
        entries = [
            f"{'[' + node.text + ']' if node.id in best else node.text} {node.score:.2f}"
            f"{' ■' if node.state == 'finished' else ''}"
            for node in shown
        ]
        lines.append(_as_many(f"{step + 1:>4}  ", [*entries, f"({len(nodes) - len(shown)} pruned)"], width))
    return lines


def shade(weight: float) -> str:
    """A weight from 0 to 1 as a character; the faintest shade is for what rounds to nothing."""
    return SHADES[max(0, min(len(SHADES) - 1, round(weight * (len(SHADES) - 1))))]


def bar(share: float, width: int) -> str:
    return BAR * round(share * width)


def text_width(text: str) -> int:
    """The places that a text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def filled(text: str, width: int) -> str:
    """With spaces up to `width`."""
    return text + " " * (width - text_width(text))


def clipped(text: str, width: int) -> str:
    """At most `width` wide."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) >= width:
        text = text[:-1]
    return text + "…"


def _letters(text: str) -> list[str]:
    """Letters with the accents that belong to them."""
    letters: list[str] = []
    for letter in text:
        if unicodedata.combining(letter) and letters:
            letters[-1] += letter
        else:
            letters.append(letter)
    return letters


def _candidate(one: Candidate) -> str:
    return f"{one.text} {one.probability:.2f}"


def _as_many(line: str, entries: Sequence[str], width: int) -> str:
    """The line with as many entries as fit."""
    for entry in entries:
        if text_width(line) + text_width(entry) > width:
            break
        line += f"{entry}   "
    return line.rstrip()
