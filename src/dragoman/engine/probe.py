"""Does a quantised model still do what the exact one does? Both write and score translations of a probe set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.bundle import Bundle

MAX_DIFFERENCE = 0.3  # log-probability a piece; int8 moves a sound model by a hundredth, a broken one by several
_RANDOM_SOURCES, _SAMPLES, _LONGEST = 24, 24, 24


@dataclass(frozen=True)
class Parity:
    """How much two models agree on a probe set.

    `token_agreement` is the share of pieces of the exact model's greedy translations that the other one writes too
    before it first goes astray; `score_difference` the mean distance of the log-probabilities that both give to a piece
    of these translations.
    """

    num_sentences: int
    num_pieces: int
    token_agreement: float
    score_difference: float


def probe_sources(bundle: Bundle) -> list[list[str]]:
    """Sources as tokens of the converted model: pieces at random, always the same, and the scorecard's samples."""
    config, tokenizer = bundle.model_config, bundle.tokenizer
    generator = np.random.default_rng(0)
    ordinary = sorted(set(range(config.num_source_pieces)) - tokenizer.special_ids)
    sources = [
        generator.choice(ordinary, generator.integers(1, _LONGEST, endpoint=True)).tolist()
        for _ in range(_RANDOM_SOURCES)
    ]
    samples = bundle.scorecard.get("samples", [])[:_SAMPLES]
    texts = [sample["source"] for sample in samples if isinstance(sample, dict) and sample.get("source")]
    sources += [ids[: config.max_length - 1] for ids in tokenizer.ids_batch(texts) if ids]
    head = bundle.head_ids
    room = config.max_length - len(head) - 1
    return [[str(id) for id in (*head, *source[:room], config.end_id)] for source in sources]


def compare(exact: Any, other: Any, sources: Sequence[list[str]], end: str) -> Parity:
    """`exact` and `other` are CTranslate2 translators."""
    longest = max(map(len, sources)) + _LONGEST
    options = {"beam_size": 1, "max_input_length": 0, "max_decoding_length": longest, "min_decoding_length": 0}
    targets, theirs = (
        [result.hypotheses[0] for result in one.translate_batch(sources, return_end_token=True, **options)]
        for one in (exact, other)
    )
    agreeing = sum(_common_start(target, their) for target, their in zip(targets, theirs, strict=True))
    num_pieces = sum(map(len, targets))
    bodies = [target[:-1] if target[-1] == end else target for target in targets]
    exact_scores, other_scores = (
        np.concatenate([result.log_probs for result in one.score_batch(sources, bodies, max_input_length=0)])
        for one in (exact, other)
    )
    return Parity(
        num_sentences=len(sources),
        num_pieces=num_pieces,
        token_agreement=round(agreeing / num_pieces, 4),
        score_difference=round(float(np.abs(exact_scores - other_scores).mean()), 5),
    )


def _common_start(left: Sequence[str], right: Sequence[str]) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )
