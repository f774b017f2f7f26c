"""The words of a sentence and of its target, and what each is linked to."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from dragoman.translator.translation import Link

_WORD = re.compile(r"\S+")
_LEAST = 1e-6
_MOST_STEPS = 200_000
"""Looks at a target word for a tag, for one sentence: far more than any sentence takes that a model can translate."""


class Words:
    """The words of a sentence, as white space parts them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = [match.span() for match in _WORD.finditer(text)]
        self.starts = [start for start, _ in self.spans]
        self.ends = [end for _, end in self.spans]
        self._letters = list(accumulate(map(str.isalnum, text), initial=0))

    def __len__(self) -> int:
        return len(self.spans)

    def word(self, index: int) -> str:
        start, end = self.spans[index]
        return self.text[start:end]

    def num_letters(self, start: int, end: int) -> int:
        """Letters and digits between two places."""
        return self._letters[end] - self._letters[start]

    def share(self, index: int, start: int, end: int) -> float:
        """How much of a word is between two places: of its letters, or of its marks if it has none."""
        first, last = self.spans[index]
        inner, outer = max(first, start), min(last, end)
        if outer <= inner:
            return 0.0
        total = self.num_letters(first, last)
        return self.num_letters(inner, outer) / total if total else (outer - inner) / (last - first)

    def touched(self, start: int, end: int) -> range:
        """The words that have something between two places."""
        first = bisect_right(self.ends, start)
        return range(first, max(first, bisect_left(self.starts, end)))

    def core(self, index: int) -> tuple[int, int]:
        """Where a word's letters begin and end; the whole word if it has none."""
        start, end = self.spans[index]
        if not self.num_letters(start, end):
            return start, end
        while not self.text[start].isalnum():
            start += 1
        while not self.text[end - 1].isalnum():
            end -= 1
        return start, end


class WordLinks:
    """A sentence and its target. `shares` has for each target word how much of it came from which source words."""

    def __init__(self, source: str, target: str, links: Iterable[Link]) -> None:
        self.source, self.target = Words(source), Words(target)
        usable = [link for link in links if link.source < len(self.source) and link.target < len(self.target)]
        self.is_guess = not usable
        self.shares: list[dict[int, float]] = [{} for _ in self.target.spans]
        for link in usable or _by_position(self.source, self.target):
            self.shares[link.target][link.source] = max(link.weight, _LEAST)
        weights: dict[int, list[tuple[float, int]]] = {}
        for word, shares in enumerate(self.shares):
            total = sum(shares.values())
            for place, weight in shares.items():
                shares[place] = weight / total
                weights.setdefault(place, []).append((-weight, word))
        self.targets = {place: [word for _, word in sorted(found)] for place, found in weights.items()}
        """For each source word the target words that are linked to it, the strongest first."""
        self.places: dict[str, list[int]] = {}
        """Where each target word stands, by its text."""
        for index in range(len(self.target)):
            self.places.setdefault(self.target.word(index), []).append(index)
        self._cuts: dict[tuple[int, int, int], int] = {}
        self._steps = 0

    def is_cheap(self, num_words: int) -> bool:
        """Whether as many target words may be looked at once more; else tags go by position, in no time."""
        self._steps += num_words
        return self._steps < _MOST_STEPS

    def by_position(self, at: int, low: int, high: int) -> int:
        """The place among target words `low` to `high` that is as far in the target as a source word in the source."""
        return min(max(at * len(self.target) // max(1, len(self.source)), low), high)

    def cut(self, at: int, low: int, high: int) -> int:
        """The place among target words `low` to `high` that best parts those linked to source words before `at`."""
        key = (at, low, high)
        if key not in self._cuts and not self.is_cheap(high - low):
            return self.by_position(at, low, high)
        if key not in self._cuts:
            cost = lowest = 0.0
            place = low
            for word in range(low, high):
                cost += 1.0 - 2.0 * sum(share for source, share in self.shares[word].items() if source < at)
                if cost < lowest:
                    lowest, place = cost, word + 1
            self._cuts[key] = place
        return self._cuts[key]

    def relink(self, target_words: range, source_words: range) -> None:
        """These belong together, whatever the links said."""
        for word in target_words:
            self.shares[word] = dict.fromkeys(source_words, 1 / len(source_words)) if source_words else {}


def _by_position(source: Words, target: Words) -> list[Link]:
    """Where nothing is known: a word that occurs once on both sides is linked to itself, others by position."""
    if not len(source):
        return []
    texts, others = ([words.word(index) for index in range(len(words))] for words in (source, target))
    counts, other_counts = Counter(texts), Counter(others)
    places = {text: index for index, text in enumerate(texts) if counts[text] == other_counts[text] == 1}
    return [
        Link(places.get(text, (2 * word + 1) * len(texts) // (2 * len(others))), word, 1.0)
        for word, text in enumerate(others)
    ]
