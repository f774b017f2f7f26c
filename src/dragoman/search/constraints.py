"""Lexical constraints: phrases that must appear in a translation, and phrases that must not.

What must not appear is masked the moment before its last piece. What must appear is followed along every hypothesis
(`Progress`): the end is forbidden to who still owes a phrase, and `allocation` steers the beam towards it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman.errors import DataError

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Constraints:
    """The phrases of one sentence, in ids. A phrase that is listed twice in `positive` must appear twice."""

    positive: tuple[Phrase, ...] = ()
    negative: tuple[Phrase, ...] = ()

    def __post_init__(self) -> None:
        if not all(self.positive) or not all(self.negative):
            raise DataError("a constraint has no pieces, expected at least one: leave the empty phrase out")


@dataclass(frozen=True)
class Progress:
    """How far a hypothesis is: how often each phrase is still missing, and how much of it was just written."""

    phrases: tuple[Phrase, ...]
    missing: tuple[int, ...]
    matched: tuple[int, ...]

    @property
    def pieces_owed(self) -> int:
        """Pieces to write until nothing is missing; of the phrases under way, one counts as begun."""
        whole = sum(times * len(phrase) for times, phrase in zip(self.missing, self.phrases, strict=True))
        return whole - max(self.matched, default=0)

    def next_pieces(self) -> set[int]:
        """The pieces that begin a missing phrase, or go on with it."""
        open_phrases = [
            (phrase, matched)
            for phrase, missing, matched in zip(self.phrases, self.missing, self.matched, strict=True)
            if missing
        ]
        return {phrase[0] for phrase, _ in open_phrases} | {phrase[matched] for phrase, matched in open_phrases}

    def advance(self, piece: int) -> "Progress":
        """The progress after one more piece; a phrase that breaks off is taken up at the longest part that fits."""
        missing, matched = list(self.missing), list(self.matched)
        for index, phrase in enumerate(self.phrases):
            if not missing[index]:
                continue
            matched[index] = _longest_match(phrase, (*phrase[: matched[index]], piece))
            if matched[index] == len(phrase):
                missing[index] -= 1
                matched[index] = 0
        return Progress(self.phrases, tuple(missing), tuple(matched))


def begin_progress(positive: Iterable[Phrase]) -> Progress:
    """Before the first piece: everything is owed."""
    times = Counter(tuple(phrase) for phrase in positive)
    return Progress(tuple(times), tuple(times.values()), (0,) * len(times))


def banned_pieces(ids: Sequence[int], negative: Iterable[Phrase]) -> list[int]:
    """The pieces that would complete a forbidden phrase after `ids`."""
    return [phrase[-1] for phrase in negative if tuple(ids[len(ids) - len(phrase) + 1 :]) == tuple(phrase[:-1])]


def _longest_match(phrase: Phrase, written: Phrase) -> int:
    """The length of the longest beginning of `phrase` that `written` ends with."""
    return next(size for size in range(len(written), -1, -1) if written[len(written) - size :] == phrase[:size])
