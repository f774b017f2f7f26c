"""An alignment, drawn with characters: a row a target word, a column a source word, darker the stronger the link."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.translator import Link, SentenceTranslation

_SHADES = " ░▒▓█"
_NOTHING = "·"


def draw_alignment(sentence: SentenceTranslation, columns: int) -> str:
    """The picture of one sentence, as a grid where it fits into so many columns, else as a list."""
    source, target = sentence.source.split(), sentence.target.split()
    if not sentence.alignment:
        why = "the model has no attention to read it off, or the words of this translation cannot be told apart"
        return f"{sentence.target}\n(no alignment: {why})"
    margin = max(map(_width, target)) + 2
    if margin + 2 * len(source) > columns or max(map(_width, source)) > 24:
        return _list(source, target, sentence.alignment)
    return _grid(source, target, sentence.alignment, margin)


def _grid(source: Sequence[str], target: Sequence[str], links: Sequence[Link], margin: int) -> str:
    """Source words stand upright over their columns."""
    height = max(map(len, source))
    head = [" " * margin + " ".join(word.rjust(height)[row] for word in source).rstrip() for row in range(height)]
    weights = {(link.target, link.source): link.weight for link in links}
    body = [
        word + " " * (margin - _width(word)) + " ".join(_shade(weights.get((t, s), 0.0)) for s in range(len(source)))
        for t, word in enumerate(target)
    ]
    return "\n".join(head + body)


def _list(source: Sequence[str], target: Sequence[str], links: Sequence[Link]) -> str:
    margin = max(map(_width, target)) + 2
    lines = []
    for place, word in enumerate(target):
        own = sorted((link for link in links if link.target == place), key=lambda link: -link.weight)
        words = ", ".join(f"{source[link.source]} {link.weight:.2f}" for link in own)
        lines.append(f"{word}{' ' * (margin - _width(word))}{words}")
    return "\n".join(lines)


def _shade(weight: float) -> str:
    if weight <= 0:
        return _NOTHING
    return _SHADES[max(1, min(len(_SHADES) - 1, round(weight * (len(_SHADES) - 1))))]


def _width(word: str) -> int:
    """The places that a word takes in a terminal."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in word
    )
