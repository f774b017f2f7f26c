"""Texts made ready: their skeletons, and their sentences, each once however often it occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dragoman.errors import LengthError
from dragoman.text.contractions import Contractions, with_apostrophes
from dragoman.text.known_words import KnownWords
from dragoman.text.sentences import Segment, frame, split, split_long
from dragoman.translator.capitals import calm, is_shouted
from dragoman.translator.carry import NOTHING, find_carried, find_verbatims, has_nothing_to_translate
from dragoman.translator.drafts import Scribe, Sentence
from dragoman.translator.glossary import Glossary
from dragoman.translator.options import Settings

Read = Callable[[str], str]
"""What the model is given for a text."""

_SHOWN = 40
_NOUNS_HAVE_CAPITALS = ("de", "deu", "ger", "lb", "ltz")  # so that a capital does not tell a name


@dataclass(frozen=True)
class Prepared:
    """For each text its segments, and for each segment that is a sentence its place in `sentences`.

    A sentence without ids has nothing to translate.
    """

    segments: list[list[Segment]]
    places: list[list[int]]
    sentences: list[Sentence]


def prepare(
    texts: Sequence[str],
    scribe: Scribe,
    language: str,
    max_length: int,
    settings: Settings,
    known: KnownWords | None = None,
) -> Prepared:
    """Split, encode, cut what is too long, and look for what translations must have; names are words not `known`."""
    contractions = known.contractions.get(language, {}) if known and settings.checks else {}
    if language.partition("_")[0] in _NOUNS_HAVE_CAPITALS:
        known = None
    read = partial(_readable, contractions=contractions)
    segments = [split(text, language) if settings.split_sentences else frame(text) for text in texts]
    ids = _encode(scribe, read, {one.text for some in segments for one in some if one.is_sentence})
    notes: dict[str, tuple[str, ...]] = {}
    if any(len(own) > max_length for own in ids.values()):
        room = max_length - len(scribe.head) - 1
        segments = [_cut_long(some, ids, notes, scribe, read, max_length, room, settings.strict) for some in segments]
        ids |= _encode(scribe, read, {one.text for some in segments for one in some if one.is_sentence} - set(ids))
    places: list[list[int]] = []
    sentences: list[Sentence] = []
    seen: dict[str, int] = {}
    for some in segments:
        own = []
        for one in some:
            if not one.is_sentence:
                continue
            # Drawn translations of equal sentences should differ; searched ones are the same.
            place = None if settings.sampling is not None else seen.get(one.text)
            if place is None:
                place = seen[one.text] = len(sentences)
                sentences.append(_sentence(one.text, ids[one.text], notes.get(one.text, ()), settings, known, read))
            own.append(place)
        places.append(own)
    return Prepared(segments, places, sentences)


def _encode(scribe: Scribe, read: Read, texts: set[str]) -> dict[str, list[int]]:
    ordered = list(texts)
    return dict(zip(ordered, scribe.encode(list(map(read, ordered))), strict=True))


def _readable(text: str, contractions: Contractions) -> str:
    return with_apostrophes(calm(text) if _is_loud(text) else text, contractions)


def _is_loud(text: str) -> bool:
    """Whether a sentence is in capitals and may lose them: with something to carry over as it is, it may not."""
    return is_shouted(text) and not find_verbatims(text)


def _sentence(
    written: str, ids: list[int], warnings: tuple[str, ...], settings: Settings, known: KnownWords | None, read: Read
) -> Sentence:
    text, is_loud = read(written), _is_loud(written)
    differs = "" if text == written else written
    terms = settings.glossary.find(text) if settings.glossary is not None else ()
    if not settings.checks:
        return Sentence(text, ids, NOTHING, terms, warnings, differs, is_loud)
    if has_nothing_to_translate(text):
        return Sentence(text, [], NOTHING, (), warnings)
    settled = [(place.start, place.end) for place in Glossary(terms).places(text)]
    carried = find_carried(text, None if is_loud else known, settled)
    return Sentence(text, ids, carried, terms, warnings, differs, is_loud)


def _cut_long(
    segments: Sequence[Segment],
    known: dict[str, list[int]],
    notes: dict[str, tuple[str, ...]],
    scribe: Scribe,
    read: Read,
    max_length: int,
    room: int,
    strict: bool,
) -> list[Segment]:
    """The segments, with sentences that are too long for the model in parts; `notes` gets a warning for each part."""
    cut: list[Segment] = []
    for segment in segments:
        if not segment.is_sentence or len(known[segment.text]) <= max_length:
            cut.append(segment)
            continue
        num_pieces = len(scribe.own_ids(known[segment.text]))
        beginning = segment.text[:_SHOWN]
        if strict:
            raise LengthError(
                f"a sentence has {num_pieces} pieces, the model takes at most {room}: split it, or allow it to be cut; "
                f"it begins {beginning!r}"
            )
        parts = split_long(segment.text, room, lambda part: scribe.num_pieces(read(part)))
        warning = f"a sentence of {num_pieces} pieces was cut into {len(parts)}, the model takes {room}: {beginning!r}…"
        for part in parts:
            framed = frame(part)
            notes.update({one.text: (warning,) for one in framed if one.is_sentence})
            cut.extend(framed)
    return cut
