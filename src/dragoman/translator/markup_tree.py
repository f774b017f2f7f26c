"""Where elements end, and which of XML's are structure: in one walk over the tokens, without a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.translator.markup_tokens import Token

# An open element of the second is ended by a tag of the first, if it is the innermost: `<li>one<li>two`.
_IMPLIED_ENDS = {
    "li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "option": {"option"}, "optgroup": {"option", "optgroup"},
    "td": {"td", "th"}, "th": {"td", "th"}, "tr": {"td", "th", "tr"},
}  # fmt: skip
_ENDING = """
    address article aside blockquote details dialog div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header
    hgroup hr main menu nav ol p pre search section table ul
"""
_ENDS_PARAGRAPH = frozenset(_ENDING.split())


@dataclass(frozen=True, slots=True)
class End:
    """`stop` is the place after an element's last token; `is_closed` whether that is its own closing tag."""

    stop: int
    is_closed: bool


def element_ends(tokens: Sequence[Token], *, xml: bool) -> dict[int, End]:
    """For the place of each opening tag where its element ends: with its closing tag, or before what ends it else."""
    ends: dict[int, End] = {}
    opened: list[int] = []
    counts: dict[str, int] = {}

    def pop(end: End) -> str:
        top = opened.pop()
        ends[top] = end
        counts[tokens[top].name] -= 1
        return tokens[top].name

    for at, token in enumerate(tokens):
        if token.kind in ("open", "void") and not xml:
            while opened and _is_ended(tokens[opened[-1]].name, token.name):
                pop(End(at, False))
        if token.kind == "open":
            opened.append(at)
            counts[token.name] = counts.get(token.name, 0) + 1
        elif token.kind == "close" and counts.get(token.name):
            while tokens[opened[-1]].name != token.name:
                pop(End(at, False))
            pop(End(at + 1, True))
    while opened:
        pop(End(len(tokens), False))
    return ends


def _is_ended(name: str, by: str) -> bool:
    return name in _IMPLIED_ENDS.get(by, ()) or (name == "p" and by in _ENDS_PARAGRAPH)


def is_outline(tokens: Sequence[Token], ends: dict[int, End]) -> list[bool]:
    """Whether each token is structure: an element beside which there is no text, nor beside those it is in."""
    parents: list[int] = []
    path: list[int] = []
    texts: set[int] = set()
    for at, token in enumerate(tokens):
        while path and ends[path[-1]].stop <= at:
            path.pop()
        closes = token.kind == "close" and path and ends[path[-1]] == End(at + 1, True)
        parents.append(path[-1] if path else -1)
        if closes:
            parents[-1] = path.pop()  # a closing tag is what its opening tag is
        elif token.kind == "open":
            path.append(at)
        elif token.kind == "text" and token.raw.strip():
            texts.add(parents[-1])
    outline: list[bool] = []
    for at, token in enumerate(tokens):
        parent = parents[at]
        if token.kind == "close" and parent >= 0 and ends[parent] == End(at + 1, True):
            outline.append(outline[parent])
        else:
            outline.append(parent not in texts and (parent < 0 or outline[parent]))
    return outline
