"""sacreBLEU's scores with their signatures: a number that others can match says how it was made.

    BLEU     cased, 13a tokens, unless asked otherwise
    chrF     character n-grams, recall twice as important (chrF2)
    chrF++   the same, with words and pairs of words (chrF2++)
    TER      edits a reference word; lower is better; sacreBLEU's own setting, which ignores case

A reference is a sentence, or several sentences that are equally right; their number may differ from line to line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.errors import ConfigError, DataError, require
from dragoman.settings import nearest

Metric = Literal["bleu", "chrf", "chrf++", "ter"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf", "chrf++", "ter")
References = Sequence[str | Sequence[str]]


@dataclass(frozen=True)
class Score:
    """A metric's name and value on a whole test set, and the signature that says how it was computed."""

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} {self.value:.1f} ({self.signature})"


def corpus_scores(
    hypotheses: Sequence[str],
    references: References,
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
    metrics: Sequence[Metric] = ("bleu", "chrf"),
) -> list[Score]:
    """The scores of a whole output, a `Score` a metric, in the order they were asked for."""
    streams = reference_streams(hypotheses, references)
    scores = []
    for name in metrics:
        metric = scorer(name, lowercase=lowercase, tokenize=tokenize)
        result = metric.corpus_score(hypotheses, streams)
        scores.append(Score(result.name, float(result.score), str(metric.get_signature())))
    return scores


def sentence_chrf(hypotheses: Sequence[str], references: References, *, lowercase: bool = False) -> list[float]:
    """chrF of each line by itself, 0 to 100. BLEU is none of a sentence: it counts n-grams that one seldom has."""
    reference_streams(hypotheses, references)
    metric = scorer("chrf", lowercase=lowercase)
    return [
        float(metric.sentence_score(hypothesis, _alternatives(reference)).score)
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def scorer(name: Metric, *, lowercase: bool = False, tokenize: str = "13a") -> Any:
    """sacreBLEU's own object for a metric. `lowercase` is for BLEU and chrF, `tokenize` for BLEU alone."""
    library = require("sacrebleu.metrics", "train", "scoring translations")
    if name == "chrf" or name == "chrf++":
        return library.CHRF(word_order=2 if name == "chrf++" else 0, lowercase=lowercase)
    if name == "ter":
        return library.TER()
    if name != "bleu":
        raise ConfigError(f"unknown metric {name!r}{nearest(name, METRICS)}")
    if tokenize not in library.BLEU.TOKENIZERS:
        raise ConfigError(f"tokenize is {tokenize!r}{nearest(tokenize, library.BLEU.TOKENIZERS)}")
    try:
        # `force` only silences advice about text that is tokenised already, meant for sacreBLEU's own command line.
        return library.BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"tokenize = {tokenize!r} needs more than sacreBLEU brings: {reason}") from error


def reference_streams(hypotheses: Sequence[str], references: References) -> list[list[str | None]]:
    """References as sacreBLEU takes them: stream k holds every line's k-th reference, None where a line has fewer."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} translations and {len(references)} references, expected as many: "
            f"line i of one must translate what line i of the other translates"
        )
    if not hypotheses:
        raise DataError("0 translations and 0 references, expected at least one line of each")
    lines = [_alternatives(reference) for reference in references]
    for number, line in enumerate(lines, start=1):
        if not line:
            raise DataError(f"line {number} has no reference, expected at least one")
    return [[line[k] if k < len(line) else None for line in lines] for k in range(max(map(len, lines)))]


def _alternatives(reference: str | Sequence[str]) -> list[str]:
    return [reference] if isinstance(reference, str) else list(reference)
