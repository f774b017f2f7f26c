"""Two translations side by side, and the words in which they differ. No torch here."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

_KINDS = {"equal": "same", "delete": "removed", "insert": "added", "replace": "replaced"}


@dataclass(frozen=True)
class Version:
    """A translation, and the ids that it was written in."""

    text: str
    score: float
    log_probability: float
    confidence: float
    target_ids: tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """A stretch of words: `kind` is same, removed, added or replaced."""

    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Both, and the way from one to the other."""

    before: Version
    after: Version
    difference: tuple[Change, ...]


def compare(before: Version, after: Version) -> Comparison:
    """Two versions and their difference."""
    return Comparison(before, after, word_difference(before.text, after.text))


def word_difference(before: str, after: str) -> tuple[Change, ...]:
    """How `after` differs from `before`, in stretches of words; the stretches spell both texts."""
    old, new = before.split(), after.split()
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    return tuple(Change(_KINDS[kind], tuple(old[a:b]), tuple(new[c:d])) for kind, a, b, c, d in matcher.get_opcodes())
