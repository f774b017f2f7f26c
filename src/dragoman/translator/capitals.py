"""Sentences in all capitals: translated in small letters, which models know, and given back in capitals."""

import re

_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_LONE_LETTERS = 5
"""A lone word of fewer letters may be an abbreviation, which capitals belong to: USA."""
_MOST_CHARACTERS = 10_000
"""What is longer is cut before it is translated, and its parts are looked at then."""


def is_shouted(text: str) -> bool:
    """Whether all letters are capitals, of several words or of one that is too long for an abbreviation."""
    if len(text) > _MOST_CHARACTERS or not text.isupper():
        return False
    words = _WORD.findall(text)
    return len(words) > 1 or any(len(word) >= _LEAST_LONE_LETTERS for word in words)


def calm(text: str) -> str:
    """The text in small letters, its first letter apart."""
    small = text.lower()
    first = next((place for place, character in enumerate(small) if character.isalpha()), None)
    return small if first is None else small[:first] + small[first].upper() + small[first + 1 :]


def with_capital(text: str) -> str:
    """A text that begins with a capital; scripts that have none at the head of a sentence stay as they are."""
    return text[:1].title() + text[1:]
