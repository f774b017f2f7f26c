"""How large a corpus is, how long its sentences, and which of its pairs training would drop."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from dragoman.text.corpus import Pair
from dragoman.text.diagnosis import Finding, SideSummary, Tally, counted, percent, severity_of
from dragoman.text.filter import Filter, estimate_pieces


class Pieces(Protocol):
    """The part of a tokenizer that is needed here."""

    @property
    def byte_ids(self) -> frozenset[int]: ...

    def ids_batch(self, texts: Iterable[str]) -> list[list[int]]: ...


class SizeProbe:
    """How large the two sides are, how long their sentences, and which pairs would be dropped."""

    def __init__(self, filter: Filter, tokenizer: Pieces | None) -> None:
        self._filter = filter
        self._tokenizer = tokenizer
        self._words: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self._characters: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self._pieces = [0, 0]
        self._bytes = [0, 0]
        self._tallies = {"empty": Tally(), "overlong": Tally(), "ratio": Tally()}

    def look(self, path: str, pairs: list[Pair]) -> None:
        sides = ([pair.source for pair in pairs], [pair.target for pair in pairs])
        lengths = []
        for side, texts in enumerate(sides):
            self._words[side].update(len(text.split()) for text in texts)
            self._characters[side].update(map(len, texts))
            lengths.append(self._lengths(side, texts))
        for pair, source_pieces, target_pieces in zip(pairs, *lengths, strict=True):
            reason = self._filter.reason(source_pieces, target_pieces)
            if reason:
                about = "" if self._tokenizer else "about "
                remark = "" if reason == "empty" else f"{about}{source_pieces} and {target_pieces} pieces"
                self._tallies[reason].add(path, pair, remark)

    def _lengths(self, side: int, texts: list[str]) -> list[int]:
        if self._tokenizer is None:
            return [estimate_pieces(text) for text in texts]
        byte_ids = self._tokenizer.byte_ids
        ids = self._tokenizer.ids_batch(texts)
        self._pieces[side] += sum(map(len, ids))
        self._bytes[side] += sum(id in byte_ids for text in ids for id in text)
        return [len(text) for text in ids]

    @property
    def dropped(self) -> dict[str, int]:
        return {reason: tally.count for reason, tally in self._tallies.items() if tally.count}

    def summary(self, side: int) -> SideSummary:
        words = sum(length * count for length, count in self._words[side].items())
        known = self._tokenizer is not None
        return SideSummary(
            words=words,
            characters=sum(length * count for length, count in self._characters[side].items()),
            median_words=_quantile(self._words[side], 0.5),
            percentile95_words=_quantile(self._words[side], 0.95),
            median_characters=_quantile(self._characters[side], 0.5),
            percentile95_characters=_quantile(self._characters[side], 0.95),
            histogram=_histogram(self._words[side]),
            pieces=self._pieces[side] if known else None,
            pieces_per_word=round(self._pieces[side] / max(1, words), 3) if known else None,
            byte_share=self._bytes[side] / max(1, self._pieces[side]) if known else None,
        )

    def findings(self, where: str, num_pairs: int) -> list[Finding]:
        estimated = "" if self._tokenizer else ", as estimated"
        texts = {
            "empty": ("with an empty side", "They are dropped. If they are many, a column or a file may be cut short."),
            "overlong": (
                f"with a side of more than {self._filter.max_pieces} pieces{estimated}",
                "They are dropped: split them into sentences, or train with a larger max_length.",
            ),
            "ratio": (
                f"of which one side has more than {self._filter.max_ratio:g} times the pieces of the other{estimated}",
                "They are dropped, as they are seldom translations; set data.max_ratio to keep more of them.",
            ),
        }
        found = []
        for reason, tally in self._tallies.items():
            if tally.count:
                what, advice = texts[reason]
                severity = severity_of(tally.count / num_pairs, warning=0.001, problem=0.1)
                what = counted(tally.count, "pairs", what)
                found.append(tally.finding(reason, severity, where, num_pairs, what, advice))
        return found + self._piece_findings(where)

    def _piece_findings(self, where: str) -> list[Finding]:
        found = []
        for side, name in enumerate(("source", "target")):
            share = self._bytes[side] / max(1, self._pieces[side])
            if share > 0.001:
                what = (
                    f"{percent(share)} of the {name} side's pieces are single bytes: the tokenizer lacks its characters"
                )
                advice = "Learn the tokenizer on text of this kind, or look whether the languages are the right ones."
                severity = severity_of(share, warning=0.01, problem=0.2)
                found.append(Finding("byte-pieces", severity, where, what, self._bytes[side], share, advice))
        return found


def _quantile(lengths: Counter[int], share: float) -> int:
    """The least length that this share of the sentences does not exceed."""
    wanted = share * lengths.total()
    for length in sorted(lengths):
        wanted -= lengths[length]
        if wanted <= 0:
            return length
    return 0


def _histogram(lengths: Counter[int]) -> tuple[int, ...]:
    """How many sentences have 1, 2-3, 4-7, 8-15 ... words: a sentence of n words is in the bin of n's highest bit."""
    bins: Counter[int] = Counter()
    for length, count in lengths.items():
        if length:
            bins[length.bit_length() - 1] += count
    return tuple(bins[index] for index in range(max(bins, default=-1) + 1))
