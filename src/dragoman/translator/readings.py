"""Sentences read a second time, in other pieces: a model may know a word well in one form, and hardly in another.

    J'ai vu l'éléphant.    l'éléphant is one word to the tokenizer; it is read as l' and éléphant, as in un éléphant
    Étudiants, entrez !    at the beginning a word has a capital; it is read as étudiants

That is done to a word that is cut up, unless its pieces get many more, and to a first word that gets fewer pieces. Of
the two translations the likelier one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.engine.engine import DecodeOptions
from dragoman.text.pipeline import MARK
from dragoman.text.whole_words import ELIDED
from dragoman.translator.capitals import with_capital
from dragoman.translator.drafts import Desk, Draft, Scribe, Sentence

_ELISION = re.compile(rf"({ELIDED})([^\W\d_]\w*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """The ids of a sentence, tag and end included; `is_small` says that its first letter is a small one instead of a
    capital.
    """

    ids: list[int]
    is_small: bool


def read_again(sentences: Sequence[Sentence], drafts: Sequence[Draft], desk: Desk, num_best: int) -> list[Draft]:
    """The drafts, with those replaced that a second reading has a likelier one for, without a problem more."""
    best = list(drafts)
    readings = {
        place: reading
        for place, sentence in enumerate(sentences)
        if (reading := second_reading(sentence.text, desk.scribe)) and len(reading.ids) <= desk.max_length
    }
    if not readings:
        return best
    options = DecodeOptions(search=desk.search, num_best=num_best)
    outputs = desk.engine.translate_ids([reading.ids for reading in readings.values()], options)
    for (place, reading), found in zip(readings.items(), outputs, strict=True):
        draft = desk.scribe.draft(sentences[place], found, check=True)
        if draft.score > best[place].score and len(draft.problems) <= len(best[place].problems):
            best[place] = _with_capital(draft, desk) if reading.is_small else draft
    return best


def second_reading(text: str, scribe: Scribe) -> Reading | None:
    """A sentence in other pieces; None if there is no better way to read any of its words."""
    words = scribe.tokenizer.normalize(text).split(" ")
    first = words[0][:1].lower() + words[0][1:]
    elided = [_apart(word, scribe) for word in words]
    is_small = not elided[0] and first != words[0] and scribe.num_pieces(first) < scribe.num_pieces(words[0])
    if not is_small and not any(elided):
        return None
    if is_small:
        words[0] = first
    of_words = scribe.tokenizer.ids_batch(words)
    own = [id for apart, ids in zip(elided, of_words, strict=True) for id in apart or ids]
    return Reading([*scribe.head, *own, scribe.tokenizer.end_id], is_small)


def _apart(word: str, scribe: Scribe) -> list[int]:
    """The ids of a word that is cut up, with what an apostrophe joins to it by itself, which is a piece more at most;
    none for others.
    """
    found = _ELISION.match(word)
    if not found or MARK + found[1] not in scribe.tokenizer:
        return []
    num_pieces = scribe.num_pieces(found[0])
    if num_pieces == 1 or scribe.num_pieces(found[2]) > num_pieces:
        return []
    return [scribe.tokenizer.id(MARK + found[1]), *scribe.tokenizer.ids_batch([word[found.start(2) :]])[0]]


def _with_capital(draft: Draft, desk: Desk) -> Draft:
    """A translation of what was read with a small letter, with a capital again."""
    text = with_capital(draft.text)
    if text == draft.text:
        return draft
    others = tuple(replace(one, text=with_capital(one.text)) for one in draft.alternatives)
    return replace(draft, text=text, ids=desk.target_ids(text), alternatives=others)
