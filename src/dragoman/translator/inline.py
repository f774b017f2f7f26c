"""Text with tags in it, and the tags put back into its translation: on the words they were on.

    pieces -> their text -> a translator -> Translation -> `place` -> pieces, translated

A unit, a paragraph mostly, is a list of `Piece`: text, tags that open and close, atoms (an image, a line break) and
opaque pieces, which the model sees but which stay as they are. What is between sentences stays in place, and so does
all of a sentence that came back unchanged. In a sentence that changed, `dragoman.translator.placement` says where the
tags go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from dragoman.errors import DataError
from dragoman.translator.fitting import Span
from dragoman.translator.placement import arrange
from dragoman.translator.translation import Link, Translation

PieceKind = Literal["text", "new", "open", "close", "atom", "opaque"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a unit.

    `raw` is how it stands in the document, `text` what the model sees of it: for text that is the same, or a character
    that is written otherwise there. `new` is translated text, that is still to be written as the document writes it. An
    open and a close that are of one element have the same `name`.
    """

    kind: PieceKind
    raw: str
    text: str = ""
    name: str = ""


Unit = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Interleaved:
    """What stays of a document, as it stands there, and in between the units to translate."""

    parts: tuple[str | Unit, ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(part for part in self.parts if not isinstance(part, str))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts to translate, without tags."""
        return tuple(map(text_of, self.units))

    @property
    def needs_alignment(self) -> bool:
        """Whether there are tags inside texts, which only an alignment puts on the right words."""
        return any(map(has_inner_tags, self.units))

    def fill(self, translations: Sequence[Translation | str], write: Callable[[Unit, Translation | str], str]) -> str:
        """The document with the translations of its texts, one each, in order."""
        if len(translations) != len(self.units):
            raise DataError(f"{len(translations)} translations for {len(self.units)} texts: give one a text")
        remaining = iter(translations)
        return "".join(part if isinstance(part, str) else write(part, next(remaining)) for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Found:
    """A sentence of a unit's text: where it stands, and what became of it."""

    start: int
    end: int
    target: str
    links: tuple[Link, ...]
    space_before: str


def text_of(pieces: Sequence[Piece]) -> str:
    """What the model sees."""
    return "".join(piece.text for piece in pieces)


def has_inner_tags(pieces: Sequence[Piece]) -> bool:
    """Whether it takes an alignment to translate this: there is a tag that is not around all of it."""
    inner = [place for place, piece in enumerate(pieces) if piece.kind in ("text", "opaque") and piece.text.strip()]
    return bool(inner) and any(piece.kind != "text" for piece in pieces[inner[0] : inner[-1] + 1])


def place(pieces: Sequence[Piece], translation: Translation | str) -> list[Piece]:
    """The pieces in the order of the translation; a translation that is a bare text is aligned by position."""
    text = text_of(pieces)
    sentences = _find(text, translation)
    pieces = _cut(pieces, sorted({place for one in sentences for place in (one.start, one.end)}))
    ranges = _ranges(pieces, sentences)
    partners = _pair(pieces)
    starts = list(accumulate((len(piece.text) for piece in pieces), initial=0))
    placed: list[Piece] = []
    moved: set[int] = set()
    before = 0
    for index, (sentence, (first, last)) in enumerate(zip(sentences, ranges, strict=True)):
        after = ranges[index + 1][0] if index + 1 < len(ranges) else len(pieces)
        source = text[sentence.start : sentence.end]
        if sentence.target == source:
            placed += _without(pieces, before, last + 1, moved)
        else:
            own = _own(pieces, partners, before, first, last, after)
            moved |= own
            placed += _without(pieces, before, first, moved)
            if sentence.space_before:
                placed.append(Piece("new", "", sentence.space_before))
            items = [at for at in range(before, after) if first <= at <= last or at in own]
            offsets = [min(max(starts[at] - sentence.start, 0), len(source)) for at in items]
            root, opaque = _tree(pieces, items, offsets, partners, len(source))
            arranged = arrange(source, sentence.target, sentence.links, root, opaque)
            placed += [Piece("new", "", one) if isinstance(one, str) else pieces[one] for one in arranged]
        before = last + 1
    return _spaced(pieces, placed + _without(pieces, before, len(pieces), moved))


def _spaced(pieces: Sequence[Piece], placed: Sequence[Piece]) -> list[Piece]:
    """What was placed, with a space after an atom that had one on either side, of which a translator writes one."""
    between: set[int] = set()
    atom, before = None, ""
    for piece in pieces:
        if piece.kind == "atom" and not piece.text:
            atom = piece if before == " " else None
        elif piece.text:
            if atom is not None and piece.text[0] == " ":
                between.add(id(atom))
            atom, before = None, piece.text[-1]
    spaced: list[Piece] = []
    is_after = False
    for piece in placed:
        if is_after and piece.text:
            if piece.kind == "new" and piece.text[0].isalnum():
                spaced.append(Piece("new", "", " "))
            is_after = False
        is_after = is_after or id(piece) in between
        spaced.append(piece)
    return spaced


def _without(pieces: Sequence[Piece], start: int, end: int, moved: set[int]) -> list[Piece]:
    return [pieces[at] for at in range(start, end) if at not in moved]


def _find(text: str, translation: Translation | str) -> list[_Found]:
    """The sentences of the text, in order; all of it as one where they are not known or do not add up."""
    if isinstance(translation, str):
        translation = Translation(translation, 0.0, 1.0)
    found: list[_Found] = []
    at_source = at_target = 0
    for sentence in translation.sentences:
        start = text.find(sentence.source, at_source)
        begin = translation.text.find(sentence.target, at_target)
        if start < 0 or begin < 0 or not sentence.source:
            break
        gap, gap_target = text[at_source:start], translation.text[at_target:begin]
        if gap != gap_target and (_says_something(gap) or _says_something(gap_target)):
            break
        space = gap_target if found and not gap else ""
        at_source, at_target = start + len(sentence.source), begin + len(sentence.target)
        found.append(_Found(start, at_source, sentence.target, sentence.alignment, space))
    else:
        rest, rest_target = text[at_source:], translation.text[at_target:]
        if found and (rest == rest_target or not (_says_something(rest) or _says_something(rest_target))):
            return found
    stripped = text.strip()
    if translation.text == text or not stripped:
        return []
    start = text.find(stripped)
    return [_Found(start, start + len(stripped), translation.text.strip(), (), "")]


def _says_something(text: str) -> bool:
    return any(not char.isspace() and char.isprintable() for char in text)


def _cut(pieces: Sequence[Piece], places: Sequence[int]) -> list[Piece]:
    """The pieces, their texts cut at these places, where they can be."""
    parts: list[Piece] = []
    start, next_place = 0, 0
    for piece in pieces:
        end = start + len(piece.text)
        if piece.kind == "text" and piece.raw == piece.text:
            while next_place < len(places) and places[next_place] < end:
                cut = places[next_place]
                if cut > start:
                    part = piece.text[len(piece.text) - (end - start) : len(piece.text) - (end - cut)]
                    parts.append(Piece("text", part, part))
                    start = cut
                next_place += 1
            rest = piece.text[len(piece.text) - (end - start) :]
            parts.append(piece if rest == piece.text else Piece("text", rest, rest))
        else:
            parts.append(piece)
            while next_place < len(places) and places[next_place] < end:
                next_place += 1
        start = end
    return parts


def _ranges(pieces: Sequence[Piece], sentences: Sequence[_Found]) -> list[tuple[int, int]]:
    """The first and the last piece with text of each sentence; a last before the first if it has none of its own."""
    ranges: list[tuple[int, int]] = []
    at, start = 0, 0
    for sentence in sentences:
        while at < len(pieces) and (start < sentence.start or not pieces[at].text):
            start += len(pieces[at].text)
            at += 1
        first, last = at, at - 1
        while at < len(pieces) and start < sentence.end:
            if pieces[at].text:
                last = at
            start += len(pieces[at].text)
            at += 1
        at = last + 1 if last >= first else at
        ranges.append((first, last))
    return ranges


def _pair(pieces: Sequence[Piece]) -> dict[int, int]:
    """The other tag of each tag that has one; pairs never cross: of two that do, the inner one has none."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    by_name: dict[str, int] = {}
    for at, piece in enumerate(pieces):
        if piece.kind == "open":
            opened.append(at)
            by_name[piece.name] = by_name.get(piece.name, 0) + 1
        elif piece.kind == "close" and by_name.get(piece.name):
            while True:
                top = opened.pop()
                by_name[pieces[top].name] -= 1
                if pieces[top].name == piece.name:
                    break
            partners[top], partners[at] = at, top
    return partners


def _own(pieces: Sequence[Piece], partners: dict[int, int], before: int, first: int, last: int, after: int) -> set[int]:
    """The tags around a sentence's pieces that are of elements which begin or end within it, and are all in it.

    An image, say, that stands between such a tag and the sentence is in the element, and goes with it.
    """
    own: set[int] = set()
    for at in range(before, first):
        other = partners.get(at, -1)
        if first < other <= last:
            own.add(at)
    for at in range(last + 1, after):
        other = partners.get(at, after)
        if first <= other < last:
            own.add(at)
    between = [*range(min(own, default=first), first), *range(last + 1, max(own, default=last) + 1)]
    return own | {at for at in between if not pieces[at].text}


def _tree(
    pieces: Sequence[Piece], items: Sequence[int], offsets: Sequence[int], partners: dict[int, int], length: int
) -> tuple[Span, list[Span]]:
    """A sentence's elements, one in the other, with the points between its words; and its opaque pieces."""
    inside = set(items)
    root = Span(0, length)
    path = [root]
    opaque: list[Span] = []
    for at, offset in zip(items, offsets, strict=True):
        piece = pieces[at]
        is_paired = partners.get(at, -1) in inside
        if piece.kind == "open" and is_paired:
            path.append(Span(offset, offset, (at,)))
        elif piece.kind == "close" and is_paired:
            span = path.pop()
            span.end, span.closing = offset, (at,)
            path[-1].children.append(span)
        elif piece.kind == "opaque":
            opaque.append(Span(offset, min(offset + len(piece.text), length), (at,)))
        elif piece.kind != "text":
            end = min(offset + len(piece.text), length)
            half: Literal["", "open", "close"] = piece.kind if piece.kind in ("open", "close") else ""
            path[-1].children.append(Span(offset, end, (at,), is_point=True, half=half))
    return root, opaque
