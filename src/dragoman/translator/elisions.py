"""French as it is written: *le animal*, which a model puts together when it hardly knows *l'animal*, is *l'animal*.

Before a vowel only: whether an h is mute must be known of every word. *Oui*, *onze*, the numeral *un* and words that
join others stand alone, and what stands in the source or the glossary as it is stays so: *La Oroya*.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from dragoman.translator.drafts import Desk, Draft, Sentence

_FRENCH = frozenset(("fr", "fra", "fre"))
_FULL = re.compile(
    r"(?<![\w'’-])(l[ea]|de|je|[mnst]e|(?:jus|lors|puis|quoi)?que) "
    r"(?!(?:une?|onze|onzième|oui|ouistiti|uhlan|ou|et|à|aux?|[eio]|(?-i:[A-Z]))\b)(?=([aeiouàâéèêëîïôœùû]\w*))",
    re.IGNORECASE,
)


def elide(sentence: Sentence, draft: Draft, desk: Desk) -> Draft:
    """A draft whose short words, if it is French, have lost their vowel before another one."""
    if desk.scribe.target.partition("_")[0] not in _FRENCH:
        return draft
    fixed = (sentence.text, *(term.target for term in sentence.terms))
    others = tuple(replace(one, text=elided(one.text, fixed)) for one in draft.alternatives)
    text, ids = elided(draft.text, fixed), draft.ids
    if ids and text != draft.text:
        ids = desk.target_ids(text)
    return replace(draft, text=text, ids=ids, alternatives=others)


def elided(text: str, fixed: Sequence[str] = ()) -> str:
    """A text with elisions; two words that stand so in one of the texts that are `fixed` stay."""

    def join(found: re.Match[str]) -> str:
        is_fixed = any(f"{found[1]} {found[2]}" in one for one in fixed)
        return found[0] if is_fixed else f"{found[1][:-1]}'"

    return _FULL.sub(join, text)
