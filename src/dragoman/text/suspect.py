"""Signs that a translation went wrong, read off the two texts alone: nothing there, a loop, a copy, an odd length.

Pure predicates, cheap enough to ask of every sentence. They look for what is hardly ever right, so a sound translation
is seldom accused; names, numbers and single words, which many languages share, are never called copies.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Literal

Suspicion = Literal["empty", "loop", "copy", "ratio"]
SUSPICIONS: tuple[Suspicion, ...] = ("empty", "loop", "copy", "ratio")

LONGEST_LOOP_WORDS = 32
LONGEST_LOOP_LETTERS = 24
SHORTEST_LETTER_LOOP = 16  # "hahahaha" and "nooooo" are words
SHORTEST_COPY_WORDS = 3
SHORTEST_COPY_LETTERS = 8  # where a language writes no spaces
COPIED_SHARE = 0.8
ODD_RATIO = 3.0
RATIO_SLACK = 10  # letters added to both sides, so that "Oui." may become "Yes, I do."

_PUNCTUATION = ".,;:!?…·•'\"`´’‘“”„«»‹›()[]{}<>-–—/\\|*_¿¡、。，！？：；「」『』（）،؛؟।"


def suspicions(source: str, target: str) -> tuple[Suspicion, ...]:
    """Every sign that `target` is no translation of `source`. A source that loops excuses a target that loops."""
    if not source.strip():
        return ()
    if is_empty(target):
        return ("empty",)
    found: list[Suspicion] = []
    if is_loop(target) and not is_loop(source):
        found.append("loop")
    if is_copy(source, target):
        found.append("copy")
    if odd_ratio(source, target):
        found.append("ratio")
    return tuple(found)


def is_empty(target: str) -> bool:
    """No letter, digit or symbol at all."""
    return not target.strip()


def is_loop(text: str) -> bool:
    """A word four times in a row, a phrase three times, or a long word that is one group of letters over and over.

    >>> is_loop("a man in a man in a man in a hat"), is_loop("It is very, very, very good.")
    (True, False)
    """
    words = _words(text.casefold())
    # Every loop repeats at least three words, which most sentences do not: an early way out.
    if len(words) - len(set(words)) >= 3:
        for period in range(1, min(LONGEST_LOOP_WORDS, len(words) // 3) + 1):
            if _repeats(words, period) >= (4 if period == 1 else 3):
                return True
    return any(len(word) >= SHORTEST_LETTER_LOOP and _loops_inside(word) for word in words)


def is_copy(source: str, target: str) -> bool:
    """The target is the source again, or nearly. Words with a capital, which are often names, do not count.

    >>> is_copy("Le chat dort ici.", "le chat dort ici"), is_copy("Tom aime Paris.", "Tom aime Paris.")
    (True, False)
    """
    source = source.lower() if source.isupper() else source
    if any(map(str.islower, source)):
        words, least = _words(source), SHORTEST_COPY_WORDS
        found = [word.casefold() for word in _words(target)]
        telling = [word for word in words if word[0].isalpha() and not word[0].isupper()]
    else:
        words, least = list(filter(str.isalpha, source)), SHORTEST_COPY_LETTERS
        found = list(filter(str.isalpha, target))
        telling = words
    if len(telling) < least or len(words) < COPIED_SHARE * len(found):
        return False
    shared = (Counter(map(str.casefold, telling)) & Counter(found)).total()
    return shared >= COPIED_SHARE * len(telling)


def odd_ratio(source: str, target: str, limit: float = ODD_RATIO) -> bool:
    """One side is more than `limit` times as long as the other, once both have been given a little slack."""
    shorter, longer = sorted((_extent(source), _extent(target)))
    return longer + RATIO_SLACK > limit * (shorter + RATIO_SLACK)


def _words(text: str) -> list[str]:
    """Words as white space tells them, without the punctuation around them."""
    return [bare for word in text.split() if (bare := word.strip(_PUNCTUATION))]


def _repeats(items: Sequence[str], period: int) -> int:
    """How many times the most repeated group of `period` items stands in a row, at least 1."""
    longest = run = 0
    for item, later in zip(items, items[period:], strict=False):
        run = run + 1 if item == later else 0
        longest = max(longest, run)
    return 1 + longest // period


def _loops_inside(word: str) -> bool:
    """A long word that loops, which is also how a loop looks where a language writes no spaces."""
    letters = "".join(filter(str.isalpha, word))
    for period in range(1, min(LONGEST_LOOP_LETTERS, len(letters) // 4) + 1):
        repeats = _repeats(letters, period)
        if repeats >= 4 and repeats * period >= SHORTEST_LETTER_LOOP:
            return True
    return False


def _extent(text: str) -> int:
    """A length that can be compared between scripts: a wide character (Han, kana, Hangul) says about three letters."""
    if text.isascii():
        return len(text)
    return sum(
        3 if unicodedata.east_asian_width(character) in "WF" else 0 if unicodedata.combining(character) else 1
        for character in text
    )
