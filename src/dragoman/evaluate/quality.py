"""What one number hides: how quality depends on length, how often output is broken, whether confidence can be trusted.

Pure functions over lines that belong together: sources, hypotheses, references.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.text.metrics import References, corpus_scores
from dragoman.text.suspect import SUSPICIONS, Suspicion, suspicions

BUCKETS = ((1, 5), (6, 10), (11, 20), (21, 40), (41, None))
"""Lengths of a source, in words, that are scored by themselves."""

MEANINGS: dict[Suspicion, str] = {
    "empty": "nothing was written",
    "loop": "a word or a phrase over and over",
    "copy": "the source, not translated",
    "ratio": "far longer or shorter than the source",
}

FloatArray = NDArray[np.float64]

# Han and kana are written without spaces; each counts as a word, or a Chinese test set would be one bucket.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


@dataclass(frozen=True)
class Bucket:
    """The pairs whose source has `length` words, and their scores taken together."""

    length: str
    num_pairs: int
    bleu: float
    chrf: float


@dataclass(frozen=True)
class Rate:
    """How many translations show a sign that they went wrong, and their share of all."""

    kind: Suspicion
    count: int
    share: float


def num_words(text: str) -> int:
    """Words as white space tells them; a Han or kana character is one."""
    return len(_WORD.findall(text))


def bucket_scores(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: References,
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
    lengths: Sequence[tuple[int, int | None]] = BUCKETS,
    least_pairs: int = 1,
) -> list[Bucket]:
    """BLEU and chrF of each bucket that has so many pairs, short sources first."""
    counts = [num_words(source) for source in sources]
    buckets = []
    for least, most in lengths:
        chosen = [i for i, count in enumerate(counts) if max(1, count) >= least and (most is None or count <= most)]
        if len(chosen) >= least_pairs:
            bleu, chrf = corpus_scores(
                [hypotheses[i] for i in chosen],
                [references[i] for i in chosen],
                lowercase=lowercase,
                tokenize=tokenize,
            )
            label = f"{least}+" if most is None else f"{least}-{most}"
            buckets.append(Bucket(label, len(chosen), bleu.value, chrf.value))
    return buckets


def rates(sources: Sequence[str], hypotheses: Sequence[str]) -> list[Rate]:
    """Every kind of suspicion, those that never occur too."""
    counts: Counter[Suspicion] = Counter()
    for source, hypothesis in zip(sources, hypotheses, strict=True):
        counts.update(suspicions(source, hypothesis))
    return [Rate(kind, counts[kind], counts[kind] / max(1, len(sources))) for kind in SUSPICIONS]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rho: 1 if one always rises with the other, 0 if knowing one does not help to guess the other."""
    if len(first) < 2:
        return 0.0
    ranks = [_ranks(np.asarray(values, dtype=float)) for values in (first, second)]
    spreads = [float(rank.std()) for rank in ranks]
    if not all(spreads):
        return 0.0
    covariance = float(np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())))
    return covariance / (spreads[0] * spreads[1])


def _ranks(values: FloatArray) -> FloatArray:
    """Places in the order from small to large; equal values share the mean of their places."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means = ends - (counts - 1) / 2
    shared: FloatArray = means[inverse]
    return shared
