"""French as it is written: *le animal*, which a model puts together when it hardly knows *l'animal*, is *l'animal*.

Before a vowel only: whether an h is mute must be known of every word. *Oui*, *onze* and the numeral *un* stand alone.
"""

from __future__ import annotations

import re
from dataclasses import replace

from dragoman.translator.drafts import Desk, Draft

_FULL = re.compile(
    r"(?<![\w'’-])(l[ea]|de|je|[mnst]e|(?:jus|lors|puis|quoi)?que) "
    r"(?!(?:une?|onze|onzième|oui|ouistiti|uhlan)\b|(?-i:[A-Z])\b)(?=[aeiouàâéèêëîïôœùû])",
    re.IGNORECASE,
)


def elide(draft: Draft, desk: Desk) -> Draft:
    """A draft whose short words, if it is French, have lost their vowel before another one."""
    if desk.scribe.target.partition("_")[0] != "fr":
        return draft
    others = tuple(replace(one, text=elided(one.text)) for one in draft.alternatives)
    text, ids = elided(draft.text), draft.ids
    if ids and text != draft.text:
        ids = desk.target_ids(text)
    return replace(draft, text=text, ids=ids, alternatives=others)


def elided(text: str) -> str:
    return _FULL.sub(lambda found: f"{found[1][:-1]}'", text)
