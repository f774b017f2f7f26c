"""What the doctor found, as frozen dataclasses that JSON can hold."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.settings import to_mapping
from dragoman.text.corpus import Pair
from dragoman.text.lines import place

Severity = Literal["problem", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "warning", "note")

# Why a pair is dropped, for people.
REASONS = {
    "empty": "with an empty side",
    "overlong": "too long",
    "ratio": "with odd lengths",
    "encoding": "not UTF-8",
    "columns": "with one column",
    "record": "not a JSON pair",
}

MAX_EXAMPLES = 3
_MAX_CHARACTERS = 160


@dataclass(frozen=True)
class Example:
    """One place where a finding shows: `file:line`, the two sides, and what to look at in them."""

    place: str
    source: str = ""
    target: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Finding:
    """Something about a set of corpora: how bad, what, how often, where for example, and what to do about it.

    `share` is of the set's pairs, or of its pieces where those are counted.
    """

    kind: str
    severity: Severity
    where: str
    what: str
    count: int
    share: float
    advice: str
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class SideSummary:
    """One side's size; its sentences' lengths; how many sentences have 1, 2-3, 4-7, 8-15 ... words."""

    words: int
    characters: int
    median_words: int
    percentile95_words: int
    median_characters: int
    percentile95_characters: int
    histogram: tuple[int, ...]
    pieces: int | None = None
    pieces_per_word: float | None = None
    byte_share: float | None = None


@dataclass(frozen=True)
class SetSummary:
    """Train, valid or test: its files, how many pairs it has, and how many would be dropped for which reason."""

    name: str
    files: tuple[str, ...]
    pairs: int
    dropped: dict[str, int]
    source: SideSummary
    target: SideSummary

    @property
    def kept(self) -> int:
        """Pairs that training would use."""
        return self.pairs - sum(self.dropped.values())


@dataclass(frozen=True)
class Diagnosis:
    """The whole examination. Whoever plans a training run fills in the predictions."""

    languages: tuple[str, str]
    sets: tuple[SetSummary, ...]
    findings: tuple[Finding, ...]
    estimated: bool
    predicted_memory_bytes: int | None = None
    predicted_seconds: float | None = None

    @property
    def prediction(self) -> str:
        """What training would take, where that was worked out."""
        if self.predicted_seconds is None or self.predicted_memory_bytes is None:
            return ""
        minutes = self.predicted_seconds / 60
        time = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{max(1, round(minutes))} minutes"
        return f"training would take about {time} here, and {self.predicted_memory_bytes / 1e9:.1f} GB of memory"

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that `--strict` refuses."""
        return tuple(finding for finding in self.findings if finding.severity == "problem")

    @property
    def verdict(self) -> str:
        """One line for the impatient."""
        numbers = [
            counted(count, f"{severity}s")
            for severity in SEVERITIES
            if (count := sum(finding.severity == severity for finding in self.findings))
        ]
        if self.problems:
            return f"{', '.join(numbers)}: mend the problems before training"
        return f"ready to train{': ' if numbers else ', nothing found'}{', '.join(numbers)}"

    def to_mapping(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        mapping = to_mapping(self)
        for values, summary in zip(mapping["sets"], self.sets, strict=True):
            values["kept"] = summary.kept
        return {**mapping, "num_problems": len(self.problems)}


@dataclass
class Tally:
    """A count with its first few examples."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, path: str, pair: Pair, remark: str = "") -> None:
        """Count a pair."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example_of(path, pair, remark))

    def finding(self, kind: str, severity: Severity, where: str, num_pairs: int, what: str, advice: str) -> Finding:
        """The finding that so many of the pairs are `what`."""
        share = self.count / max(1, num_pairs)
        return Finding(kind, severity, where, what, self.count, share, advice, tuple(self.examples))


def example_of(path: str, pair: Pair, remark: str = "") -> Example:
    """A pair as an example, short and safe to show."""
    return Example(place(path, pair.number), visible(pair.source), visible(pair.target), visible(remark))


def visible(text: str) -> str:
    r"""A text that is safe on a terminal: cut short, and with what cannot be seen, or would be obeyed, as `\u001b`."""
    cut = text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if c < "\U00010000" else f"\\U{ord(c):08x}" for c in cut
    )


def counted(count: int, noun: str, rest: str = "") -> str:
    """`1 pair with ...`, `1,234 pairs with ...`: the noun is given as a plural in s."""
    return f"{count:,} {noun.removesuffix('s') if count == 1 else noun}{' ' if rest else ''}{rest}"


def percent(share: float) -> str:
    """A share as people read it: 12 %, 1.2 %, 0.01 %, < 0.01 %."""
    hundredths = 100 * share
    if 0 < hundredths < 0.01:
        return "< 0.01 %"
    return f"{hundredths:.0f} %" if hundredths >= 10 else f"{hundredths:.2g} %"


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first; the order is otherwise kept."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def severity_of(share: float, warning: float, problem: float = 2.0) -> Severity:
    """A note, unless it concerns a larger share of the pairs."""
    return "problem" if share >= problem else "warning" if share >= warning else "note"
