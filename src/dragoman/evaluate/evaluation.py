"""What an evaluation found: plain frozen records that JSON, tables and the report are made from."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from dragoman.evaluate.quality import Bucket, Rate
from dragoman.settings import to_mapping
from dragoman.text.metrics import Score
from dragoman.text.suspect import Suspicion


@dataclass(frozen=True, kw_only=True)
class System:
    """Who made the output, as far as it is known; what is not known is left out of reports."""

    name: str
    engine: str = ""
    compute_type: str = ""
    beam: int | None = None
    length_penalty: float | None = None
    weights_hash: str = ""

    def facts(self) -> list[tuple[str, str]]:
        """What is known besides the name, to be read by people."""
        values = dataclasses.asdict(dataclasses.replace(self, name=""))
        return [(key.replace("_", " "), str(value)) for key, value in values.items() if value not in ("", None)]


@dataclass(frozen=True)
class Speed:
    """How fast it was translated. Words are those of the output, split at white space, so that models with different
    pieces can be compared."""

    seconds: float
    sentences_per_second: float
    target_words_per_second: float


@dataclass(frozen=True)
class Link:
    """A source word, a target word (counted from 0, split at white space), and how strongly they are linked."""

    source: int
    target: int
    weight: float


@dataclass(frozen=True)
class Part:
    """A sentence of a line: its source and target, and which words belong together."""

    source: str
    target: str
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Line:
    """A line of the test set and what became of it. `number` counts from 1; confidence is None for a bare output."""

    number: int
    source: str
    references: tuple[str, ...]
    hypothesis: str
    chrf: float
    confidence: float | None
    parts: tuple[Part, ...]
    warnings: tuple[str, ...]
    suspicions: tuple[Suspicion, ...]


@dataclass(frozen=True)
class Evaluation:
    """Everything about one output of one test set. `speed` is None when the output existed already."""

    system: System
    test_set: str
    num_pairs: int
    scores: tuple[Score, ...]
    buckets: tuple[Bucket, ...]
    rates: tuple[Rate, ...]
    num_warned: int
    speed: Speed | None
    lines: tuple[Line, ...]

    def summary(self) -> dict[str, Any]:
        """All but the lines, as JSON holds it."""
        summary = to_mapping(dataclasses.replace(self, lines=()))
        del summary["lines"]
        return summary

    def for_card(self, direction: str) -> list[dict[str, Any]]:
        """The scores as a model card lists them."""
        by = f"{self.system.engine} {self.system.compute_type}".strip()
        facts = (f"{direction} {self.test_set}", f"{self.num_pairs:,} pairs", f"beam {self.system.beam}", by)
        on = ", ".join(filter(None, facts))
        return [
            {"metric": score.name, "score": round(score.value, 2), "signature": score.signature, "on": on}
            for score in self.scores
        ]

    def worst(self, count: int) -> list[Line]:
        """The lines of lowest chrF; of equally bad ones the longer, of which more was lost."""
        return sorted(self.lines, key=lambda line: (line.chrf, -len(line.source), line.number))[:count]

    def best(self, count: int) -> list[Line]:
        """The lines of highest chrF that are not among the `count` worst; of equally good ones the longer, harder."""
        worst = {line.number for line in self.worst(count)}
        ranked = sorted(self.lines, key=lambda line: (-line.chrf, -len(line.source), line.number))
        return [line for line in ranked if line.number not in worst][:count]
