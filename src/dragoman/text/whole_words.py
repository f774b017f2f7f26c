"""Words in a text, whole: *Tom* is in *Tom's*, not in *Tommy*. Without spaces, as in Chinese, any place counts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.text.sentences import SPACELESS

LETTER = rf"(?!{SPACELESS.pattern})\w"
"""A pattern for one of a script that has spaces between its words."""
ELIDED = r"(?:[cdjlmnst]|\w*qu)['’]"
"""A pattern for a word that has lost its vowel to the next one, as in *l'eau* and *qu'il*; it ignores case."""


def has_word(word: str, text: str) -> bool:
    """Whether a text has a word, or several in a row, whole and in just this case."""
    return re.search(whole(word), text) is not None


def has_form(word: str, text: str) -> bool:
    """Whether a text has a word, with or without an ending."""
    return re.search(whole(word, with_ending=True), text) is not None


def replace_words(instead_of: Mapping[str, str], text: str) -> str:
    """The text with others wherever these words are, whole and in just this case; of two that overlap, the longer."""
    longest_first = sorted(instead_of, key=len, reverse=True)
    return re.sub("|".join(map(whole, longest_first)), lambda match: instead_of[match[0]], text)


def whole(wanted: str, *, with_ending: bool = False) -> str:
    """A pattern for whole words, where the script has spaces between them."""
    before = "" if SPACELESS.match(wanted[:1]) else f"(?<!{LETTER})"
    after = "" if with_ending or SPACELESS.match(wanted[-1:]) else f"(?!{LETTER})"
    return before + re.escape(wanted) + after
