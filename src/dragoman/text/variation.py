"""Pairs as careless people would write them, so that a model trained on tidy text also reads theirs.

People leave out the full stop, capitals and accents, type either apostrophe, and mention numbers and names that no
training text holds. Each kind of change is a pure function of a pair and a generator; it says nothing (None) where it
would change nothing. What the reader of the translation expects decides what happens to the target: a missing full stop
is missing there too, a number or a name is copied, but capitals, accents and apostrophes are put right.
"""

import re
import unicodedata
from collections.abc import Callable

import numpy as np

from dragoman.text.dataset import PairText

Change = Callable[[PairText, np.random.Generator], PairText | None]

_FINAL = re.compile(r"\s*[.!?…]+$")
_NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")
_NAME = re.compile(r"(?<!\w)[A-Z][a-z]{2,}(?!\w)")
_MARKED = re.compile("([A-Za-z])[\u0300-\u036f]+")
_APOSTROPHES = str.maketrans("'’", "’'")
_ONSETS = [*"bcdfghjklmnprstvwz", "br", "dr", "kr", "st", "th"]
_VOWELS = [*"aaeeiioouy"]
_CODAS = ["", "", "", "n", "r", "s", "l", "nd", "ck"]


def vary(pair: PairText, rng: np.random.Generator) -> PairText:
    """The pair after one change, or two, of those that have something to change in it."""
    order = rng.permutation(len(CHANGES))
    wanted = int(rng.integers(1, 3))
    for number in order:
        changed = CHANGES[number](pair, rng)
        if changed is not None and changed.source and changed.target:
            pair = changed
            wanted -= 1
        if not wanted:
            break
    return pair


def without_full_stop(pair: PairText, rng: np.random.Generator) -> PairText | None:
    """Neither side keeps its final punctuation; a source that has none leaves the target its own."""
    if not (_FINAL.search(pair.source) and _FINAL.search(pair.target)):
        return None
    return PairText(_FINAL.sub("", pair.source), _FINAL.sub("", pair.target))


def without_capitals(pair: PairText, rng: np.random.Generator) -> PairText | None:
    """The source in small letters; the target as it should be written."""
    return _source(pair, pair.source.lower())


def without_accents(pair: PairText, rng: np.random.Generator) -> PairText | None:
    """The source's Latin letters without their marks: eleve for élève; elsewhere a mark makes another letter."""
    decomposed = unicodedata.normalize("NFD", pair.source)
    return _source(pair, unicodedata.normalize("NFC", _MARKED.sub(r"\1", decomposed)))


def other_apostrophes(pair: PairText, rng: np.random.Generator) -> PairText | None:
    """Typographic apostrophes for plain ones in the source, and the other way round."""
    return _source(pair, pair.source.translate(_APOSTROPHES))


def other_number(pair: PairText, rng: np.random.Generator) -> PairText | None:
    """Another number on both sides, for one that both have once."""
    digits = int(rng.integers(1, 6))
    return _replace_shared(_NUMBER, pair, str(rng.integers(10 ** (digits - 1), 10**digits)), rng)


def other_name(pair: PairText, rng: np.random.Generator) -> PairText | None:
    """A made-up name on both sides, for a capitalised word that both have once."""
    return _replace_shared(_NAME, pair, made_up_name(rng), rng)


def made_up_name(rng: np.random.Generator) -> str:
    """Two or three syllables that can be spoken: Koradeth."""
    syllables = ["".join(rng.choice(part) for part in (_ONSETS, _VOWELS)) for _ in range(int(rng.integers(2, 4)))]
    return ("".join(syllables) + str(rng.choice(_CODAS))).capitalize()


CHANGES: tuple[Change, ...] = (
    without_full_stop,
    without_capitals,
    without_accents,
    other_apostrophes,
    other_number,
    other_name,
)


def _source(pair: PairText, source: str) -> PairText | None:
    return None if source == pair.source else PairText(source, pair.target)


def _replace_shared(pattern: re.Pattern[str], pair: PairText, new: str, rng: np.random.Generator) -> PairText | None:
    """`new` for one of the pattern's finds that stand once on each side."""
    sides = [pattern.findall(side) for side in pair]
    shared = sorted(word for word in set(sides[0]) & set(sides[1]) if sides[0].count(word) == sides[1].count(word) == 1)
    if not shared:
        return None
    word = re.compile(rf"(?<!\w){re.escape(shared[int(rng.integers(len(shared)))])}(?!\w)")
    return PairText(*(word.sub(new, side, count=1) for side in pair))
