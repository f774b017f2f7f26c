"""Paragraphs of word processors: what is the same for all of their formats.

A part of a document is a list of strings, which stay, and of paragraphs. What stands in a paragraph without being text
(a picture, a note) may have paragraphs of its own: it is rendered apart, and in the paragraph stands a key for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.documents.archive import Archive, XmlText
from dragoman.errors import DataError
from dragoman.translator.inline import Piece, has_inner_tags, place, text_of
from dragoman.translator.markup_tokens import Token, attributes, tokenize
from dragoman.translator.markup_tree import End, element_ends
from dragoman.translator.placement import PLACEHOLDER
from dragoman.translator.translation import Translation

_RANGE_MARK = re.compile(r"<([\w:]+?)-?(?:Range)?([Ss]tart|[Ee]nd)\b")
_KEY = re.compile("\0(\\d+)\0")  # XML cannot have the character
_MOST_NESTED = 16
_WORDS = re.compile(r"[\w'’-]+(?: [\w'’-]+){0,4}")


@dataclass(frozen=True)
class Paragraph:
    """Pieces, how it stands in the document, and what its format's writer has to know."""

    raw: str
    pieces: tuple[Piece, ...]
    style: tuple[str, str] = ("", "")


Parts = list["str | Paragraph"]


@dataclass
class Part:
    """The XML of a part: its tokens, where elements end, and what was read of it."""

    xml: XmlText
    tokens: Sequence[Token]
    ends: dict[int, End]
    parts: Parts = field(default_factory=list)
    nested: list[Parts] = field(default_factory=list)
    depth: int = 0

    @classmethod
    def of(cls, xml: XmlText) -> Part:
        tokens = tokenize(xml.text, xml=True)
        return cls(xml, tokens, element_ends(tokens, xml=True))

    def raw(self, start: int, stop: int) -> str:
        return "".join(token.raw for token in self.tokens[start:stop])

    def prefix(self, namespaces: Sequence[str]) -> str:
        """How names of a namespace begin here: `w:`."""
        pattern = "|".join(map(re.escape, namespaces))
        found = re.search(rf"""\sxmlns(?::([\w.-]+))?\s*=\s*["'](?:{pattern})["']""", self.xml.text[: 1 << 16])
        if found is None:
            return "?:"
        return f"{found[1]}:" if found[1] else ""

    def stop(self, at: int) -> int:
        """The place after the element that begins at a token."""
        return self.ends[at].stop if self.tokens[at].kind == "open" else at + 1

    def children(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The elements, texts and the rest that stand directly between two places."""
        at = start
        while at < stop:
            after = self.stop(at)
            yield at, after
            at = after

    def keep(self, start: int, stop: int, names: frozenset[str], read: Callable[[int, int], Parts]) -> str:
        """What to put for a range that stays but for the paragraphs (`names`) within it."""
        if not any(token.name in names for token in self.tokens[start:stop]):
            return self.raw(start, stop)
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise DataError(f"the document has text within text more than {_MOST_NESTED} deep: it cannot be read")
        parts = read(start, stop)
        self.depth -= 1
        self.nested.append(parts)
        return f"\0{len(self.nested) - 1}\0"

    def paragraphs(self) -> Iterator[Paragraph]:
        for parts in (*self.nested, self.parts):
            for part in parts:
                if isinstance(part, Paragraph):
                    yield part

    def render(
        self, translations: Iterator[Translation | str], write: Callable[[list[Piece], Paragraph], str]
    ) -> bytes:
        """The part with its paragraphs translated; inner ones come first, as in `paragraphs`."""
        done: list[str] = []
        for parts in (*self.nested, self.parts):
            texts = [
                part if isinstance(part, str) else write(_in_order(place(part.pieces, next(translations))), part)
                for part in parts
            ]
            done.append(_KEY.sub(lambda key: done[int(key[1])], "".join(texts)))
        return self.xml.encode(done[-1])


@dataclass(frozen=True)
class OfficeDocument:
    """A document of a word processor."""

    archive: Archive
    parts: dict[str, Part]
    write: Callable[[list[Piece], Paragraph], str]

    @property
    def paragraphs(self) -> list[Paragraph]:
        return [paragraph for part in self.parts.values() for paragraph in part.paragraphs()]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text_of(paragraph.pieces) for paragraph in self.paragraphs)

    @property
    def needs_alignment(self) -> bool:
        return any(has_inner_tags(paragraph.pieces) for paragraph in self.paragraphs)

    def render(self, translations: Sequence[Translation | str]) -> bytes:
        remaining = iter(translations)
        contents = {name: part.render(remaining, self.write) for name, part in self.parts.items()}
        return self.archive.with_contents(contents)


def _in_order(pieces: list[Piece]) -> list[Piece]:
    """The pieces, where no range (of a comment, say) ends before it begins, though words changed places."""
    ends: dict[tuple[str, str], int] = {}
    for at, piece in enumerate(pieces):
        mark = _RANGE_MARK.match(piece.raw) if piece.kind == "atom" else None
        if mark is None:
            continue
        told = {name.rpartition(":")[2]: value for name, value in attributes(piece.raw).items()}
        key = mark[1], next((told[name] for name in ("id", "change-id", "name") if name in told), "")
        if mark[2].lower() == "end":
            ends[key] = at
        elif key in ends:
            pieces[ends[key]], pieces[at] = piece, pieces[ends[key]]
    return pieces


def has_letters(pieces: Sequence[Piece]) -> bool:
    """Whether there is anything to translate."""
    return any(any(map(str.isalpha, piece.text)) for piece in pieces if piece.kind == "text")


def is_changed(pieces: Sequence[Piece]) -> bool:
    """Whether a translation differs from its source."""
    return any(piece.kind == "new" for piece in pieces)


class Placeholders:
    """What the model sees of what must stay, in one paragraph: its words, or a placeholder that is not in the text."""

    def __init__(self, text: str) -> None:
        self._there = frozenset(PLACEHOLDER.findall(text))
        self._number = 0

    def piece(self, raw: str, shown: str) -> Piece:
        shown = " ".join(shown.split())
        if not shown:
            return Piece("atom", raw)
        if _WORDS.fullmatch(shown):
            return Piece("opaque", raw, shown)
        self._number += 1
        while f"{{{self._number}}}" in self._there:
            self._number += 1
        return Piece("opaque", raw, f"{{{self._number}}}")
