"""What occurs twice: pairs within a set, and sentences of a validation or test set that training has seen."""

import re
from array import array
from dataclasses import dataclass, field

import numpy as np

from dragoman.text.corpus import Pair
from dragoman.text.diagnosis import MAX_EXAMPLES, Example, Finding, Severity, Tally, counted, example_of, severity_of
from dragoman.text.holdout import sentence_hash, text_hash
from dragoman.text.lines import place

_LETTER = re.compile(r"[^\W\d_]")
_REMEMBERED_PAIRS = 1 << 18  # of so many, a pair's first place is kept too, for the examples


class RepeatProbe:
    """Pairs that occur more than once, pairs whose sides are the same, and sides without a letter."""

    def __init__(self) -> None:
        self._hashes = array("Q")
        self._first: dict[int, str] = {}
        self._repeated = Tally()
        self._identical = Tally()
        self._without_letters = Tally()

    def look(self, path: str, pairs: list[Pair]) -> None:
        for pair in pairs:
            if not pair.source or not pair.target:
                continue
            hash = text_hash(f"{pair.source}\t{pair.target}")
            self._hashes.append(hash)
            if hash in self._first:
                self._repeated.add(path, pair, f"first at {self._first[hash]}")
            elif len(self._first) < _REMEMBERED_PAIRS:
                self._first[hash] = place(path, pair.number)
            if pair.source == pair.target:
                self._identical.add(path, pair)
            if not _LETTER.search(pair.source) or not _LETTER.search(pair.target):
                self._without_letters.add(path, pair)

    def findings(self, where: str, num_pairs: int) -> list[Finding]:
        hashes = np.array(self._hashes, dtype=np.uint64)
        hashes.sort()
        self._repeated.count = int(np.count_nonzero(hashes[1:] == hashes[:-1]))
        found = []
        if self._repeated.count:
            what = counted(self._repeated.count, "pairs", "that occurred before, word for word")
            advice = "Kept. They weigh more than others; remove them if that is not meant."
            severity = severity_of(self._repeated.count / num_pairs, warning=0.1)
            found.append(self._repeated.finding("duplicates", severity, where, num_pairs, what, advice))
        if self._identical.count:
            what = counted(self._identical.count, "pairs", "whose two sides are the same")
            advice = "Kept. Names and numbers are fine; if there are sentences among them, they were not translated."
            severity = severity_of(self._identical.count / num_pairs, warning=0.02, problem=0.3)
            found.append(self._identical.finding("identical-sides", severity, where, num_pairs, what, advice))
        if self._without_letters.count:
            what = counted(self._without_letters.count, "pairs", "with a side that has no letter")
            advice = (
                "Kept. If they are many, a column of numbers may have been taken for text: check the file's columns."
            )
            severity = severity_of(self._without_letters.count / num_pairs, warning=0.05, problem=0.5)
            found.append(self._without_letters.finding("no-letters", severity, where, num_pairs, what, advice))
        return found


@dataclass
class _Watched:
    """The sentences of a set that training must not see, as hashes, and the places of its pairs."""

    sources: "array[int]" = field(default_factory=lambda: array("Q"))
    targets: "array[int]" = field(default_factory=lambda: array("Q"))
    places: list[tuple[str, int]] = field(default_factory=list)


class LeakProbe:
    """First the sets to be watched are shown to it, then the training data; then it knows what they share."""

    def __init__(self) -> None:
        self._sets: dict[str, _Watched] = {}
        self._hashes: set[int] = set()
        self._seen: dict[int, Example] = {}

    def watch(self, where: str, path: str, pairs: list[Pair]) -> None:
        watched = self._sets.setdefault(where, _Watched())
        for pair in pairs:
            if pair.source and pair.target:
                watched.sources.append(sentence_hash(pair.source))
                watched.targets.append(sentence_hash(pair.target))
                watched.places.append((path, pair.number))
        self._hashes.update(watched.sources[-len(pairs) :], watched.targets[-len(pairs) :])

    def look(self, path: str, pairs: list[Pair]) -> None:
        if not self._hashes:
            return
        for pair in pairs:
            for text in (pair.source, pair.target):
                hash = sentence_hash(text)
                if hash in self._hashes and hash not in self._seen:
                    self._seen[hash] = example_of(path, pair)

    def findings(self) -> list[Finding]:
        found = []
        for where, watched in self._sets.items():
            in_train = [
                (index, source in self._seen, target in self._seen)
                for index, (source, target) in enumerate(zip(watched.sources, watched.targets, strict=True))
                if source in self._seen or target in self._seen
            ]
            if not in_train:
                continue
            num_both = sum(source and target for _, source, target in in_train)
            share = len(in_train) / len(watched.places)
            severity: Severity = "problem" if share >= 0.01 else "warning"
            what = (
                f"{counted(len(in_train), 'pairs')} of {where} with a sentence that is in train too, "
                f"up to case and punctuation ({num_both:,} with both)"
            )
            advice = f"Remove them from train, or scores on {where} will be better than the model is."
            in_train.sort(key=lambda found: not (found[1] and found[2]))
            examples = [self._example(watched, *entry) for entry in in_train[:MAX_EXAMPLES]]
            found.append(Finding("leak", severity, where, what, len(in_train), share, advice, tuple(examples)))
        return found

    def _example(self, watched: _Watched, index: int, source_is_seen: bool, target_is_seen: bool) -> Example:
        side = watched.sources if source_is_seen else watched.targets
        seen = self._seen[side[index]]
        sides = "both sides" if source_is_seen and target_is_seen else "source" if source_is_seen else "target"
        return Example(place(*watched.places[index]), seen.source, seen.target, f"{sides} in train, at {seen.place}")
