"""A glossary: source terms that must be translated as it says.

A TSV file, `source term<TAB>target term` a line; blank lines and lines that begin with # are skipped. A source term is
found as whole words, whatever their case; of terms that overlap the longest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DataError
from dragoman.text.lines import lines_of, place
from dragoman.text.sentences import SPACELESS


@dataclass(frozen=True, slots=True)
class Term:
    """A term, and what it must become."""

    source: str
    target: str


class Glossary:
    """Terms, and how they are found in a sentence."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._terms = {_fold(term.source): term for term in terms}
        longest_first = sorted(self._terms, key=len, reverse=True)
        alternatives = "|".join(re.escape(source).replace(r"\ ", r"\s+") for source in longest_first)
        self._pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE) if longest_first else None

    def __len__(self) -> int:
        return len(self._terms)

    @classmethod
    def read(cls, path: Path | str) -> Glossary:
        """The glossary in a TSV file."""
        terms = []
        for number, line in enumerate(lines_of(str(path)), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) < 2 or not columns[0] or not columns[1]:
                raise DataError(f"{place(str(path), number)}: no term, expected source<TAB>target")
            terms.append(Term(columns[0], columns[1]))
        if not terms:
            raise DataError(f"{path} has no terms, expected source<TAB>target a line")
        return cls(terms)

    def find(self, sentence: str) -> tuple[Term, ...]:
        """The terms of a sentence, each once, in order."""
        if self._pattern is None:
            return ()
        found = (self._terms.get(_fold(match[0])) for match in self._pattern.finditer(sentence))
        return tuple(dict.fromkeys(term for term in found if term is not None))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a term stands in a sentence."""

    start: int
    end: int
    term: Term


def find_places(terms: Sequence[Term], sentence: str) -> tuple[Place, ...]:
    """Where these terms of a sentence stand, in order; a letter may be several when its case does not count."""
    if not terms:
        return ()
    letters: list[str] = []
    origins: list[int] = []
    for at, char in enumerate(sentence):
        folded = " " if char.isspace() else char.casefold()
        if folded != " " or letters[-1:] != [" "]:
            letters += folded
            origins += [at] * len(folded)
    by_source = {_fold(term.source): term for term in terms}
    alternatives = "|".join(map(re.escape, sorted(by_source, key=len, reverse=True)))
    found = re.finditer(rf"(?<!\w)(?:{alternatives})(?!\w)", "".join(letters))
    return tuple(Place(origins[match.start()], origins[match.end() - 1] + 1, by_source[match[0]]) for match in found)


def is_used(term: Term, target: str) -> bool:
    """Whether a translation has the target term, as whole words if its script has spaces, whatever their case."""
    wanted = _fold(term.target)
    before = "" if SPACELESS.match(wanted[:1]) else r"(?<!\w)"
    after = "" if SPACELESS.match(wanted[-1:]) else r"(?!\w)"
    return re.search(before + re.escape(wanted) + after, _fold(target)) is not None


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
