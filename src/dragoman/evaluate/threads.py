"""A sentence and its translation as the report shows them: threads between words, and marks on those that differ."""

import difflib
import unicodedata
from html import escape

from dragoman.evaluate.evaluation import Part

FAINTEST = 0.1
"""Links weaker than this are not drawn: they are most of the file, and cannot be seen."""

_LETTER, _GAP, _MARGIN = 9.5, 16, 8
_SOURCE_Y, _TOP, _BOTTOM, _TARGET_Y, _HEIGHT = 20, 30, 98, 118, 128


def threads(part: Part) -> str:
    """The source's words above, the target's below, a thread a link: the thicker, the stronger. Empty without links."""
    sources, targets = part.source.split(), part.target.split()
    links = [
        link
        for link in part.links
        if link.weight >= FAINTEST and 0 <= link.source < len(sources) and 0 <= link.target < len(targets)
    ]
    if not links:
        return ""
    width = max(_extent(sources), _extent(targets))
    source_x, target_x = _middles(sources, width), _middles(targets, width)
    middle = (_TOP + _BOTTOM) // 2
    paths = "".join(
        f'<path d="M{x1:.0f} {_TOP}C{x1:.0f} {middle} {x2:.0f} {middle} {x2:.0f} {_BOTTOM}" '
        f'stroke-width="{0.6 + 3 * min(link.weight, 1):.1f}" opacity="{0.2 + 0.7 * min(link.weight, 1):.2f}">'
        f"<title>{escape(f'{sources[link.source]} – {targets[link.target]}: {link.weight:.2f}')}</title></path>"
        for link in sorted(links, key=lambda link: link.weight)
        for x1, x2 in [(source_x[link.source], target_x[link.target])]
    )
    words = "".join(
        f'<text x="{x:.0f}" y="{y}" text-anchor="middle">{escape(word)}</text>'
        for y, row, places in ((_SOURCE_Y, sources, source_x), (_TARGET_Y, targets, target_x))
        for word, x in zip(row, places, strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0"><svg class="threads" width="{width:.0f}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width:.0f} {_HEIGHT}" role="img" aria-label="word alignment">{paths}{words}</svg></div>'
    )


def marked(words: str, other: str, tag: str) -> str:
    """`words` as HTML, with those that `other` does not have at that place inside `tag`."""
    here, there = words.split(), other.split()
    pieces = []
    # Without autojunk: it would ignore words that are frequent in long lines.
    for kind, start, end, _, _ in difflib.SequenceMatcher(None, here, there, autojunk=False).get_opcodes():
        text = escape(" ".join(here[start:end]))
        if text:
            pieces.append(text if kind == "equal" else f"<{tag}>{text}</{tag}>")
    return " ".join(pieces)


def closest(hypothesis: str, references: tuple[str, ...]) -> int:
    """Which reference shares most with the hypothesis, word by word; the first of equals."""
    words = hypothesis.split()
    ratios = [difflib.SequenceMatcher(None, words, text.split(), autojunk=False).ratio() for text in references]
    return ratios.index(max(ratios))


def reads_right_to_left(text: str) -> bool:
    """As browsers decide it for dir="auto": by the first letter that has a direction."""
    for character in text:
        direction = unicodedata.bidirectional(character)
        if direction in ("L", "R", "AL"):
            return direction != "L"
    return False


def _width(word: str) -> float:
    """A guess, since fonts differ from reader to reader; words are centred, so that a wrong one only moves the gaps."""
    cells = sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 0 if unicodedata.combining(character) else 1
        for character in word
    )
    return _LETTER * cells


def _extent(words: list[str]) -> float:
    return sum(_width(word) + _GAP for word in words) + 2 * _MARGIN - _GAP


def _middles(words: list[str], width: float) -> list[float]:
    """Where each word's middle is, the row spread a little; one that reads from right to left begins at the right."""
    spare = width - _extent(words)
    gap = _GAP + min(_GAP, spare / max(1, len(words) - 1))
    middles = []
    x: float = _MARGIN
    for word in words:
        middles.append(x + _width(word) / 2)
        x += _width(word) + gap
    return [width - middle for middle in middles] if reads_right_to_left(" ".join(words)) else middles
