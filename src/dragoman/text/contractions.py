"""Apostrophes that were left out: *didnt* is *didn't*, *jai* is *j'ai*.

Which words those are is learned from text: what was met several times with an apostrophe, and next to never without.
So *its*, *were* and *la* stay as they are, which are words of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

Contractions = Mapping[str, str]
"""Words without their apostrophes, and with them; in small letters."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BARE = re.compile(r"(?<![\w'’.@/#{-])[^\W\d_]+(?![\w'’}]|[.@/]\w)")
_ENOUGH = 10
_SELDOM = 0.005


def learn_contractions(texts: Iterable[str]) -> Contractions:
    """Those of texts in one language."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({word.replace("’", "'").lower() for word in _WORD.findall(text)})
    with_apostrophe = [(count, word) for word, count in counts.items() if "'" in word and count >= _ENOUGH]
    # Of two that are the same without, the one that is met more often.
    found = by_bare_word(word for _, word in sorted(with_apostrophe))
    return {bare: word for bare, word in sorted(found.items()) if counts[bare] <= _SELDOM * counts[word]}


def by_bare_word(words: Iterable[str]) -> Contractions:
    return {word.replace("'", ""): word for word in words}


def with_apostrophes(text: str, contractions: Contractions) -> str:
    """The text with apostrophes in words that lack them. A word in capitals may be an abbreviation: it stays."""

    def write(found: re.Match[str]) -> str:
        word = found[0]
        contraction = contractions.get(word.lower())
        if contraction is None or word.isupper() or len(word.lower()) != len(word):
            return word
        letters = iter(word)
        return "".join(character if character == "'" else next(letters) for character in contraction)

    return _BARE.sub(write, text) if contractions else text
