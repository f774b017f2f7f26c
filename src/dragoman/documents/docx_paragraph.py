"""The paragraphs of a part of a Word document, as pieces."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dragoman.documents.office import Paragraph, Part, Parts, Placeholders, has_letters
from dragoman.translator.inline import Piece
from dragoman.translator.markup_tokens import attributes

_WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
FORMAT = "format"
"""The name of the pieces that begin and end text of another format; the opening one's raw text is the format."""
IN_RUN = "in run"
"""The name of atoms that stand in a run: tabs, line breaks, and pictures beside text."""
_LINES = re.compile(r"[\t\r\n]+")


class ParagraphReader:
    """Reads one part."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._prefix = prefix = part.prefix(_WORD)
        self._paragraph_names = frozenset((f"{prefix}p",))
        # Elements around runs, which go where their runs go.
        self._wrappers = frozenset(
            prefix + name for name in ("hyperlink", "ins", "moveTo", "smartTag", "customXml", "bdo", "dir")
        )
        # What Word notes about a text's spelling and lines is not true of its translation.
        self._stale = frozenset(prefix + name for name in ("proofErr", "lastRenderedPageBreak", "softHyphen"))
        self._kept: dict[int, tuple[int, str]] = {}
        self._white = {prefix + "tab": "\t", prefix + "ptab": "\t", prefix + "br": "\n", prefix + "cr": "\n"}

    def read(self) -> Part:
        self._part.parts = self._read(0, len(self._part.tokens))
        return self._part

    def _is(self, at: int, *names: str) -> bool:
        name = self._part.tokens[at].name
        return name.startswith(self._prefix) and name[len(self._prefix) :] in names

    def _read(self, start: int, stop: int) -> Parts:
        parts: Parts = []
        at = start
        while at < stop:
            token = self._part.tokens[at]
            parts.append(token.raw)
            at += 1
            if token.kind == "open" and token.name in self._paragraph_names:
                end = self._part.stop(at - 1) - 1
                parts += self._paragraph(at, end)
                at = end
        return parts

    def _paragraph(self, start: int, stop: int) -> Parts:
        part = self._part
        head = part.stop(start) if start < stop and self._is(start, "pPr") else start
        pieces: list[Piece] = []
        self._take_all(head, stop, pieces, Placeholders(part.raw(head, stop)))
        own = self._own(head, stop)
        if not has_letters(pieces):
            return [part.raw(start, head), own]
        base = _base_format(pieces)
        return [part.raw(start, head), Paragraph(own, _merged(pieces, base), (self._prefix, base))]

    def _own(self, start: int, stop: int) -> str:
        """The bytes of a paragraph as they are, with keys for what is nested in it."""
        raw: list[str] = []
        at = start
        while at < stop:
            after, key = self._kept.get(at, (at + 1, self._part.tokens[at].raw))
            raw.append(key)
            at = after
        return "".join(raw)

    def _keep(self, at: int, after: int) -> Piece:
        """What stays, but for the paragraphs within it."""
        self._kept[at] = (after, self._part.keep(at, after, self._paragraph_names, self._read))
        return Piece("atom", self._kept[at][1])

    def _take_all(self, start: int, stop: int, pieces: list[Piece], placeholders: Placeholders) -> None:
        """The pieces of a paragraph, or of an element around runs."""
        part = self._part
        children = list(part.children(start, stop))
        field_ends = self._field_ends(children)
        index = 0
        while index < len(children):
            at, after = children[index]
            last = field_ends.get(index)
            if last is not None:
                self._take_field(children[index : last + 1], pieces, placeholders)
                index = last + 1
                continue
            index += 1
            token = part.tokens[at]
            if token.kind == "text" or token.name in self._stale:
                pieces.append(Piece("text", part.raw(at, after)))
            elif token.kind == "open" and self._is(at, "r"):
                self._take_run(at, after, pieces)
            elif token.kind == "open" and (inner := self._inside(at, after)) is not None:
                pieces.append(Piece("open", part.raw(at, inner[0]), name=token.name))
                self._take_all(*inner, pieces, placeholders)
                pieces.append(Piece("close", part.raw(inner[1], after), name=token.name))
            elif self._is(at, "fldSimple"):
                pieces.append(placeholders.piece(part.raw(at, after), self._shown(at, after)))
            else:
                pieces.append(self._keep(at, after))

    def _inside(self, at: int, after: int) -> tuple[int, int] | None:
        """Where the runs are within an element that is around runs; None if it is another one."""
        if self._part.tokens[at].name in self._wrappers:
            begins_with_its_properties = self._is(at + 1, "smartTagPr", "customXmlPr")
            return self._part.stop(at + 1) if begins_with_its_properties else at + 1, after - 1
        if self._is(at, "sdt"):
            for start, stop in self._part.children(at + 1, after - 1):
                if self._is(start, "sdtContent") and self._part.tokens[start].kind == "open":
                    return start + 1, stop - 1
        return None

    def _take_run(self, at: int, after: int, pieces: list[Piece]) -> None:
        """A run of text, or one that stays as it is because it has something else alone."""
        part = self._part
        format = ""
        found: list[Piece] = []
        children = list(part.children(at + 1, after - 1))
        texts = [(start, stop) for start, stop in children if self._is(start, "t")]
        is_plain = all(
            part.tokens[place].kind == "text" for start, stop in texts for place in range(start + 1, stop - 1)
        )
        if not is_plain or (not texts and any(self._is_other(start) for start, _ in children)):
            pieces.append(self._keep(at, after))
            return
        for start, stop in children:
            token = part.tokens[start]
            if self._is(start, "rPr"):
                format = part.raw(start, stop)
            elif self._is(start, "t"):
                text = _text_of(token.raw, part.raw(start + 1, stop - 1) if token.kind == "open" else "")
                found += [Piece("text", text, text)] if text else []
            elif self._is(start, "noBreakHyphen"):
                found.append(Piece("text", "\u2011", "\u2011"))
            elif token.name in self._white:
                found.append(Piece("atom", part.raw(start, stop), self._white[token.name], IN_RUN))
            elif self._is_other(start):
                found.append(replace(self._keep(start, stop), name=IN_RUN))
        pieces += [Piece("open", format, name=FORMAT), *found, Piece("close", format, name=FORMAT)]

    def _is_other(self, at: int) -> bool:
        """Whether it is a part of a run that is no text: a picture, a symbol, the number of a note."""
        token = self._part.tokens[at]
        is_known = token.name in self._white or token.name in self._stale or self._is(at, "rPr", "t", "noBreakHyphen")
        return token.kind != "text" and not is_known

    def _field_kind(self, at: int, after: int) -> str:
        """begin, separate or end, if a run has such a mark of a field."""
        for place in range(at, after):
            if self._is(place, "fldChar"):
                return attributes(self._part.tokens[place].raw).get(f"{self._prefix}fldCharType".lower(), "")
        return ""

    def _field_ends(self, children: Sequence[tuple[int, int]]) -> dict[int, int]:
        """For the first run of each field that ends beside it the last one."""
        ends: dict[int, int] = {}
        opened: list[int] = []
        for index, child in enumerate(children):
            kind = self._field_kind(*child) if self._is(child[0], "r") else ""
            if kind == "begin":
                opened.append(index)
            elif kind == "end" and opened:
                ends[opened.pop()] = index
        return ends

    def _take_field(self, children: Sequence[tuple[int, int]], pieces: list[Piece], placeholders: Placeholders) -> None:
        """A link is around its text; what else Word computes is not for translation, but the model sees it."""
        part = self._part
        start, stop = children[0][0], children[-1][1]
        kinds = [self._field_kind(*child) for child in children]
        code = "".join(part.tokens[place].raw for place in self._instructions(start, stop)).strip()
        if kinds.count("begin") == 1 and "separate" in kinds and code.upper().startswith("HYPERLINK"):
            inner = children[kinds.index("separate")][1]
            pieces.append(Piece("open", part.raw(start, inner), name="field"))
            self._take_all(inner, children[-1][0], pieces, placeholders)
            pieces.append(Piece("close", part.raw(children[-1][0], stop), name="field"))
            return
        shown = self._shown(children[kinds.index("separate")][1], stop) if "separate" in kinds else ""
        pieces.append(placeholders.piece(part.raw(start, stop), shown))

    def _instructions(self, start: int, stop: int) -> list[int]:
        tokens = self._part.tokens
        return [at for at in range(start + 1, stop) if tokens[at].kind == "text" and self._is(at - 1, "instrText")]

    def _shown(self, start: int, stop: int) -> str:
        """The text in a range."""
        tokens = self._part.tokens
        places = (at for at in range(start + 1, stop) if tokens[at].kind == "text" and self._is(at - 1, "t"))
        return "".join(html.unescape(tokens[at].raw) for at in places)


def _text_of(tag: str, raw: str) -> str:
    """What Word shows of a text: white space at its ends only if the tag says so."""
    text = _LINES.sub(" ", html.unescape(raw))
    return text if '"preserve"' in tag or "'preserve'" in tag else text.strip(" ")


def _base_format(pieces: Sequence[Piece]) -> str:
    """The format that most of the text has."""
    lengths: Counter[str] = Counter()
    current = ""
    for piece in pieces:
        if piece.kind == "open" and piece.name == FORMAT:
            current = piece.raw
        elif piece.kind == "text":
            lengths[current] += len(piece.text)
    return lengths.most_common(1)[0][0]


def _merged(pieces: Sequence[Piece], base: str) -> tuple[Piece, ...]:
    """The pieces without the base format, and runs of one format that stand side by side as one."""
    merged: list[Piece] = []
    for piece in pieces:
        if piece.name == FORMAT and piece.raw == base:
            continue
        if piece.kind == "text" and not piece.text:
            continue
        if (
            merged
            and piece.kind == "open"
            and piece.name == FORMAT
            and merged[-1] == Piece("close", piece.raw, name=FORMAT)
        ):
            merged.pop()
            continue
        merged.append(piece)
    return tuple(merged)
