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
from dragoman.text.lexicon import Lexicon, split_words
from dragoman.translator.drafts import Desk, Draft, Sentence

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SURE, _VERY_SURE = 0.5, 0.8
_FEW_WORDS = 2
_IMPOSSIBLE = -6.5


def look_up(sentences: Sequence[Sentence], drafts: Sequence[Draft], desk: Desk, lexicon: Lexicon) -> list[Draft]:
    """The drafts, with those of single words replaced by what the lexicon has where the model does not know them."""
    best = list(drafts)
    asked: dict[int, str] = {}
    for place, sentence in enumerate(sentences):
        known = lexicon.get(sentence.text.lower(), ()) if _WORD.fullmatch(sentence.text) else ()
        if known and not sentence.terms and not _is_known(drafts[place], known):
            asked[place] = known[0][:1].upper() + known[0][1:] if sentence.text.istitle() else known[0]
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
    words = _words(draft.text)
    if any(words == _words(one) for one in known):
        return True
    has_one = any(f" {' '.join(_words(one))} " in f" {' '.join(words)} " for one in known)
    return has_one and draft.confidence >= (_SURE if len(words) <= _FEW_WORDS else _VERY_SURE)


def _words(text: str) -> list[str]:
    return [word.lower() for word in split_words(text)]
