"""A word by itself is looked up: models that learn from sentences make sentences of it, or nonsense.

    papillons  ->  butterflies, not *Let's butter*

The lexicon is learned with the model, from the same pairs. What the model writes is kept where it has a translation
that the lexicon knows and hardly more; and a word that it thinks impossible is not put in its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from dragoman.engine.engine import make_output
from dragoman.text.lexicon import Lexicon
from dragoman.translator.capitals import with_capital
from dragoman.translator.drafts import Desk, Draft, Sentence

_BETWEEN = re.compile(r"[\s'’.,;:!?…]+")
_SURE, _VERY_SURE = 0.5, 0.8
_FEW_WORDS = 2
_IMPOSSIBLE = -6.5


def look_up(sentences: Sequence[Sentence], drafts: Sequence[Draft], desk: Desk, lexicon: Lexicon) -> list[Draft]:
    """The drafts, with those of single words replaced by what the lexicon has where the model does not know them."""
    best = list(drafts)
    asked: dict[int, str] = {}
    for place, sentence in enumerate(sentences):
        if " " in sentence.text:
            continue
        word = desk.scribe.tokenizer.normalize(sentence.text)
        known = lexicon.get(word.lower(), ())
        # In capitals it may be an abbreviation; what was shouted is in small letters already.
        if known and not word.isupper() and not sentence.terms and not _is_known(drafts[place], known):
            asked[place] = with_capital(known[0]) if word[0].isupper() else known[0]
    encoded = {place: ids for place, text in asked.items() if (ids := desk.target_ids(text))}
    rows = desk.engine.score_ids([sentences[place].ids for place in encoded], list(encoded.values())) if encoded else []
    for (place, ids), row in zip(encoded.items(), rows, strict=True):
        if sum(row) / len(row) >= _IMPOSSIBLE:
            output = make_output(ids, sum(row), True, desk.search.length_penalty)
            draft = desk.scribe.draft(sentences[place], [output], check=True)
            best[place] = replace(draft, alternatives=drafts[place].alternatives)
    return best


def _is_known(draft: Draft, known: Sequence[str]) -> bool:
    """Whether a draft is one of the translations, or has one and is as good as sure of what else it says."""
    written, wanted = _spaced(draft.text), [_spaced(one) for one in known]
    if written in wanted:
        return True
    is_short = len(written.split()) <= _FEW_WORDS
    return any(one in written for one in wanted) and draft.confidence >= (_SURE if is_short else _VERY_SURE)


def _spaced(text: str) -> str:
    """In small letters, with a space on both sides of every word."""
    return f" {' '.join(filter(None, _BETWEEN.split(text.lower())))} "
