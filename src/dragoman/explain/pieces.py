"""Pieces and words, and where they stand in the text. No torch here."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.explain.trace import Piece, Side, Trace, Word
from dragoman.text.pipeline import MARK, scrub
from dragoman.text.tokenizer import Encoded, Tokenizer

Span = tuple[int, int]


def source_side(tokenizer: Tokenizer, text: str, head: Sequence[int]) -> Side:
    """The source as the model reads it: `head` (a language tag, if any), the text's own pieces, the end."""
    text = scrub(text)
    encoded = tokenizer.encode(text)
    spans = [*((0, 0) for _ in head), *encoded.spans, (len(text), len(text))]
    return make_side(tokenizer, text, [*head, *encoded.ids, tokenizer.end_id], spans)


def target_side(tokenizer: Tokenizer, ids: Sequence[int]) -> Side:
    """The target as it was written; `ids` have the end if there is one."""
    text, spans = written_spans(tokenizer, ids)
    return make_side(tokenizer, text, ids, spans)


def make_side(tokenizer: Tokenizer, text: str, ids: Sequence[int], spans: Sequence[Span]) -> Side:
    """Pieces with their words; special pieces belong to none."""
    places = [place for place, id in enumerate(ids) if id not in tokenizer.special_ids]
    groups = tokenizer.words(Encoded([ids[place] for place in places], []))
    word_of: dict[int, int] = {}
    words = []
    for number, group in enumerate(groups):
        own = tuple(places[place] for place in group)
        word_of.update(dict.fromkeys(own, number))
        start, end = min(spans[place][0] for place in own), max(spans[place][1] for place in own)
        words.append(Word(text[start:end], start, end, own))
    pieces = tuple(
        Piece(
            id=id,
            piece=tokenizer.piece(id),
            text=text[start:end] if place in word_of and end > start else shown(tokenizer, id),
            start=start,
            end=end,
            word=word_of.get(place),
            special=place not in word_of,
        )
        for place, (id, (start, end)) in enumerate(zip(ids, spans, strict=True))
    )
    return Side(text, pieces, tuple(words))


def written_spans(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, list[Span]]:
    """The text of ids that a model wrote, and each one's span in it.

    The text grows piece by piece, and a piece's span is what it adds, without the space before a word. The bytes of
    one character all have the span that the last of them adds.
    """
    text = tokenizer.decode(ids)
    ends = [min(len(text), len(tokenizer.decode(ids[: place + 1], partial=True))) for place in range(len(ids))]
    if ends:
        ends[-1] = len(text)
    spans: list[Span] = []
    for place in range(len(ids) - 1, -1, -1):
        start, end = ends[place - 1] if place else 0, ends[place]
        if start >= end and ids[place] in tokenizer.byte_ids and spans and ids[place + 1] in tokenizer.byte_ids:
            spans.append(spans[-1])
            continue
        while start < end and text[start].isspace():
            start += 1
        spans.append((min(start, end), end))
    return text, spans[::-1]


def shown(tokenizer: Tokenizer, id: int) -> str:
    """A piece as it shows on its own: without the mark of a space, which alone stays."""
    piece = tokenizer.piece(id)
    return piece.replace(MARK, " ").strip() or piece


def lone_piece(tokenizer: Tokenizer, id: int) -> Piece:
    """A piece outside any text, say the begin piece."""
    return Piece(id, tokenizer.piece(id), shown(tokenizer, id), 0, 0, None, id in tokenizer.special_ids)


def axes_of(trace: Trace, kind: str) -> tuple[list[str], list[str]]:
    """The pieces of the rows and of the columns: the decoder reads the begin piece first, and writes the end last."""
    source, target = [piece.text for piece in trace.source.pieces], [piece.text for piece in trace.target.pieces]
    inputs = [trace.begin.text, *target[:-1]]
    return {"encoder_self": (source, source), "decoder_self": (inputs, inputs), "cross": (target, source)}[kind]
