"""SubRip and WebVTT subtitles: numbers, times, notes, blank lines and the marks of speakers and songs stay; the text
of a cue is translated, and wrapped as it was.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.translator.inline import Interleaved, Piece, Unit, place
from dragoman.translator.translation import Translation

_TIME = r"(?:\d+:)?\d{1,2}:\d{1,2}(?:[,.]\d+)?"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_TAG = re.compile(r"<(/?)(b|i|u|s|font|c|v|ruby|rt|lang)\b[^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}", re.IGNORECASE)
_SPEAKER = ("-", "–", "—", "♪", "♫", "[", "(", "<v")
_BEFORE = re.compile(r"\s*[-–—♪♫]+\s*")
_AFTER = re.compile(r"(?<!\s)\s*+[♪♫]\s*+$")
_BRACKETED = re.compile(r"([\[(])([^\[\]()]*)([\])])")
_FIRST_TAGS = re.compile(rf"\s*(?:(?:{_TAG.pattern})\s*)*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…♪♫\])][\"'”’»]*+(?:</?\w++[^<>]*+>)*+\s*+$")
_LINE_END = re.compile(r"((?:(?<![ \t])[ \t]++)?[\r\n]++[ \t]*+)")


@dataclass(frozen=True, slots=True)
class Subtitles(Interleaved):
    """What stays, and in between the texts of cues, each with the number of lines that it has."""

    def render(self, translations: Sequence[Translation | str]) -> str:
        return self.fill(translations, _render)


def read_subtitles(text: str) -> Subtitles:
    """The cues of a SubRip file. What stands outside of cues stays."""
    parts: list[str | Unit] = []
    cue: list[str] | None = None
    for line in (match[0] for match in _LINE.finditer(text)):
        if cue is not None and line.strip() and not _TIMES.match(line):
            cue.append(line)
            continue
        if cue is not None:
            # The number of the next cue, if no blank line is before it.
            held = [cue.pop()] if _TIMES.match(line) and cue and cue[-1].strip().isdecimal() else []
            parts += [*_units(cue), *held]
            cue = None
        parts.append(line)
        if _TIMES.match(line):
            cue = []
    return Subtitles((*parts, *_units(cue or [])))


def _units(lines: Sequence[str]) -> Iterator[str | Unit]:
    """The texts of a cue: lines of one speaker, until one of them ends a sentence."""
    group: list[str] = []
    for number, line in enumerate(lines):
        group.append(line)
        following = _FIRST_TAGS.sub("", lines[number + 1], count=1) if number + 1 < len(lines) else _SPEAKER[0]
        if following.startswith(_SPEAKER) or _SENTENCE_END.search(line):
            yield from _unit("".join(group))
            group = []


def _unit(text: str) -> Iterator[str | Unit]:
    body = text.rstrip("\r\n \t")
    pieces: list[Piece] = []
    start = 0
    for match in _TAG.finditer(body):
        pieces += _plain(body[start : match.start()])
        name = (match[2] or "").lower()
        kind = "atom" if not name else "close" if match[1] else "open"
        pieces.append(Piece(kind, match[0], name=name))  # type: ignore[arg-type]
        start = match.end()
    pieces += _plain(body[start:])
    pieces = _with_marks(pieces)
    if any(any(map(str.isalpha, piece.text)) for piece in pieces):
        yield tuple(pieces)
    else:
        yield body
    yield text[len(body) :]


def _with_marks(pieces: list[Piece]) -> list[Piece]:
    """The pieces, with the marks around their text apart, as models lose them."""
    places = [place for place, piece in enumerate(pieces) if piece.kind == "text"]
    if not places:
        return pieces
    first, last = pieces[places[0]].text, pieces[places[-1]].text
    if len(places) == 1 and (bracketed := _BRACKETED.fullmatch(first)):
        parts = [Piece("atom", bracketed[1]), *_plain(bracketed[2]), Piece("atom", bracketed[3])]
        return pieces[: places[0]] + parts + pieces[places[0] + 1 :]
    if (after := _AFTER.search(last)) and after.start():
        pieces = [
            *pieces[: places[-1]],
            *_plain(last[: after.start()]),
            Piece("atom", after[0]),
            *pieces[places[-1] + 1 :],
        ]
        first = pieces[places[0]].text
    if (before := _BEFORE.match(first)) and before.end() < len(first):
        pieces = [
            *pieces[: places[0]],
            Piece("atom", before[0]),
            *_plain(first[before.end() :]),
            *pieces[places[0] + 1 :],
        ]
    return pieces


def _plain(text: str) -> list[Piece]:
    """Text, with line ends as spaces."""
    parts = _LINE_END.split(text)
    return [Piece("text", part, " " if index % 2 else part) for index, part in enumerate(parts) if part]


def _render(unit: Unit, translation: Translation | str) -> str:
    placed = place(unit, translation)
    if all(piece.kind != "new" for piece in placed):
        return "".join(piece.raw for piece in placed)
    breaks = [piece.raw for piece in unit if piece.kind == "text" and piece.raw != piece.text]
    return wrap(
        [(piece.text, True) if piece.kind in ("text", "new") else (piece.raw, False) for piece in placed], breaks
    )


def wrap(parts: Sequence[tuple[str, bool]], breaks: Sequence[str]) -> str:
    """Parts, which are seen or not, in lines of about the same length: as many as there are `breaks`, and one."""
    spaces: list[int] = []
    seen = 0
    for text, is_seen in parts:
        if is_seen:
            spaces += [seen + at for at, char in enumerate(text) if char == " "]
            seen += len(text)
    first, last = bisect_right(spaces, 0), bisect_left(spaces, seen - 1)
    chosen: dict[int, str] = {}
    for number, line_end in enumerate(breaks, start=1):
        ideal = seen * number / (len(breaks) + 1)
        at = bisect_left(spaces, ideal, first, max(first, last))
        nearest = min(
            range(max(at - 1, first), min(at + 1, last)), key=lambda one: abs(spaces[one] - ideal), default=-1
        )
        if nearest >= 0:
            chosen[spaces[nearest]] = line_end
            first = nearest + 1
    wrapped: list[str] = []
    seen = 0
    for text, is_seen in parts:
        if is_seen:
            wrapped += [chosen.get(seen + at, char) for at, char in enumerate(text)]
            seen += len(text)
        else:
            wrapped.append(text)
    return "".join(wrapped)
