"""OpenDocument text: paragraphs, headings, tables, headers, footers and notes; all else stays."""

from __future__ import annotations

import html
import re

from dragoman.documents.archive import escape, open_archive, read_xml
from dragoman.documents.office import OfficeDocument, Paragraph, Part, Parts, Placeholders, has_letters
from dragoman.errors import DataError
from dragoman.translator.inline import Piece
from dragoman.translator.markup import join

_TEXT = ("urn:oasis:names:tc:opendocument:xmlns:text:1.0",)
_FILES = ("content.xml", "styles.xml")
_PARTS = re.compile(r"&[#\w]+;|[ \t\r\n]+")


def read_odt(data: bytes) -> OfficeDocument:
    """The paragraphs of an OpenDocument text."""
    archive = open_archive(data)
    if archive.get("content.xml") is None:
        raise DataError("the file has no content.xml, expected an OpenDocument text (.odt)")
    parts = {}
    for name in _FILES:
        content = archive.get(name)
        if content is not None:
            parts[name] = _Reader(Part.of(read_xml(content))).read()
    return OfficeDocument(archive, parts, lambda pieces, paragraph: join(pieces, escape))


class _Reader:
    """Reads one part."""

    def __init__(self, part: Part) -> None:
        self._part = part
        prefix = part.prefix(_TEXT)
        self._paragraphs = frozenset(prefix + name for name in ("p", "h"))
        self._wrappers = frozenset(prefix + name for name in ("span", "a", "meta"))
        self._white = {prefix + "s": " ", prefix + "tab": "\t", prefix + "line-break": "\n"}
        self._unseen = frozenset(prefix + name for name in ("soft-page-break",))
        self._deleted = prefix + "tracked-changes"

    def read(self) -> Part:
        self._part.parts = self._read(0, len(self._part.tokens))
        return self._part

    def _read(self, start: int, stop: int) -> Parts:
        parts: Parts = []
        part, at = self._part, start
        while at < stop:
            token = part.tokens[at]
            if token.kind == "open" and (token.name == self._deleted or token.name.endswith(":annotation")):
                parts.append(part.raw(at, part.stop(at)))
                at = part.stop(at)
            elif token.kind == "open" and token.name in self._paragraphs:
                parts += self._paragraph(at + 1, part.stop(at) - 1, token.raw)
                at = part.stop(at) - 1
            else:
                parts.append(token.raw)
                at += 1
        return parts

    def _paragraph(self, start: int, stop: int, head: str) -> Parts:
        placeholders = Placeholders(self._part.raw(start, stop))
        pieces: list[Piece] = []
        at = start
        while at < stop:
            at = self._take(at, pieces, placeholders)
        if not has_letters(pieces):
            return [head, *(piece.raw for piece in pieces)]
        return [head, Paragraph("", tuple(pieces))]

    def _take(self, at: int, pieces: list[Piece], placeholders: Placeholders) -> int:
        """Take a token of a paragraph, or an element that stays, and say which comes next."""
        part, token = self._part, self._part.tokens[at]
        stop = part.stop(at)
        if token.kind == "text":
            pieces += _text_pieces(token.raw)
        elif token.name in self._wrappers and token.kind != "void":
            pieces.append(Piece("open" if token.kind == "open" else "close", token.raw, name=token.name))
            return at + 1
        elif token.name in self._white:
            white = self._white[token.name]
            pieces.append(Piece("text" if white == " " else "atom", part.raw(at, stop), white))
        elif token.name in self._unseen:
            pieces.append(Piece("text", part.raw(at, stop)))
        elif token.kind == "open" and not token.name.endswith(":annotation"):
            raw = part.keep(at, stop, self._paragraphs, self._read)
            shown = "" if raw[0] == "\0" else part.raw(at, stop)
            is_field = all(part.tokens[place].kind == "text" for place in range(at + 1, stop - 1))
            shown = html.unescape(part.raw(at + 1, stop - 1)) if shown and is_field else ""
            pieces.append(placeholders.piece(raw, shown))
        else:
            pieces.append(Piece("atom", part.raw(at, stop)))
        return stop


def _text_pieces(raw: str) -> list[Piece]:
    """Text; white space counts as one space, as OpenDocument has it."""
    pieces: list[Piece] = []
    start = 0
    for match in _PARTS.finditer(raw):
        if start < match.start():
            pieces.append(Piece("text", raw[start : match.start()], raw[start : match.start()]))
        pieces.append(Piece("text", match[0], html.unescape(match[0]) if match[0][0] == "&" else " "))
        start = match.end()
    if start < len(raw):
        pieces.append(Piece("text", raw[start:], raw[start:]))
    return pieces
