"""A glossary: source terms that must be translated as it says.

A TSV file, `source term<TAB>target term` a line; blank lines and lines that begin with # are skipped. A source term is
found as whole words, whatever their case; of terms that overlap the longest counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DataError
from dragoman.text.lines import lines_of, place
from dragoman.text.whole_words import whole

_LETTER = re.compile("(?s:.)[\u0300-\u036f]*")  # with the marks on it


@dataclass(frozen=True, slots=True)
class Term:
    """A term, and what it must become."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a term stands in a sentence."""

    start: int
    end: int
    term: Term


class Glossary:
    """Terms, and how they are found in a sentence."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._terms = {_fold(term.source): term for term in terms}
        longest_first = sorted(self._terms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(whole, longest_first))) if longest_first else None

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
        return tuple(dict.fromkeys(place.term for place in self.places(sentence)))

    def places(self, sentence: str) -> tuple[Place, ...]:
        """Where terms stand in a sentence, in order; a letter may be several when its case does not count."""
        if self._pattern is None:
            return ()
        letters: list[str] = []
        origins: list[tuple[int, int]] = []
        for match in _LETTER.finditer(sentence):
            folded = " " if match[0].isspace() else _fold_letter(match[0])
            if folded != " " or letters[-1:] != [" "]:
                letters += folded
                origins += [match.span()] * len(folded)
        return tuple(
            Place(origins[found.start()][0], origins[found.end() - 1][1], self._terms[found[0]])
            for found in self._pattern.finditer("".join(letters))
        )


def is_used(term: Term, target: str) -> bool:
    """Whether a translation has the target term, as whole words if its script has spaces, whatever their case."""
    return re.search(whole(_fold(term.target)), _fold(target)) is not None


def _fold(text: str) -> str:
    return " ".join(_fold_letter(text).split())


def _fold_letter(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
