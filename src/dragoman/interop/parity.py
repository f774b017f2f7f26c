"""Does an exported model still do what ours does? Both translate a probe set, piece by piece, and are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.errors import BundleError
from dragoman.interop.probe_texts import PROBE_TEXTS
from dragoman.text.tokenizer import Tokenizer

LONGEST = 24
_RANDOM_SOURCES = 16

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Greedy:
    """A greedy translation, without begin and end, and the logits (steps, V) of each step, that of the end too."""

    ids: tuple[int, ...]
    logits_TV: Logits


class Runner(Protocol):
    """A model, wherever it runs."""

    def decode(self, source: Sequence[int], limit: int) -> Greedy:
        """Translate ids, the end among them, piece by piece, in at most `limit` steps."""
        ...


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """What an export must reach."""

    token_agreement: float = 0.99
    logit_difference: float = 0.01
    tokenizer_agreement: float = 0.98


@dataclass(frozen=True, kw_only=True)
class Parity:
    """How much two models agree; what `parity.json` holds.

    `token_agreement` is the share of the pieces of our greedy translations that the other writes too before it first
    goes astray, `largest_logit_difference` is over all pieces of the vocabulary in these steps. `tokenizer_agreement`
    is the share of probe texts that both cut into the same pieces. BLEU is that of greedy translations of the test set.
    """

    num_sentences: int
    num_pieces: int
    token_agreement: float
    largest_logit_difference: float
    tokenizer_agreement: float | None = None
    bleu: float | None = None
    exported_bleu: float | None = None
    bleu_difference: float | None = None


def measure(exact: Runner, other: Runner, sources: Sequence[Sequence[int]], config: ModelConfig) -> Parity:
    """Compare on these sources; what is never written (padding, begin) is not compared."""
    written = [id for id in range(config.vocab_size) if id not in never_written(config)]
    num_pieces = num_same = 0
    largest = 0.0
    for source in sources:
        ours, theirs = exact.decode(source, LONGEST), other.decode(source, LONGEST)
        same = _common_start(ours.ids, theirs.ids)
        steps = min(same + 1, len(ours.logits_TV), len(theirs.logits_TV))
        difference = ours.logits_TV[:steps, written] - theirs.logits_TV[:steps, written]
        largest = max(largest, float(np.abs(difference).max()))
        # The end is a piece too: with it, a translation has as many pieces as steps.
        num_pieces += len(ours.logits_TV)
        num_same += len(ours.logits_TV) if ours.ids == theirs.ids else same
    return Parity(
        num_sentences=len(sources),
        num_pieces=num_pieces,
        token_agreement=round(num_same / num_pieces, 4),
        largest_logit_difference=round(largest, 6),
    )


def check(parity: Parity, threshold: Threshold, format: str) -> None:
    """Refuse an export that does something else."""
    if not parity.token_agreement >= threshold.token_agreement:
        raise BundleError(
            f"as {format} this model writes {100 * parity.token_agreement:.1f} % of the pieces that it writes here, "
            f"expected {100 * threshold.token_agreement:.0f} %: nothing was exported"
        )
    if not parity.largest_logit_difference <= threshold.logit_difference:
        raise BundleError(
            f"as {format} this model's logits differ by {parity.largest_logit_difference:.3g}, expected at most "
            f"{threshold.logit_difference:g}: nothing was exported"
        )
    if parity.tokenizer_agreement is not None and parity.tokenizer_agreement < threshold.tokenizer_agreement:
        raise BundleError(
            f"as {format} {100 * parity.tokenizer_agreement:.1f} % of ordinary sentences are cut into the pieces that "
            f"they are here, expected {100 * threshold.tokenizer_agreement:.0f} %: nothing was exported"
        )


def probe_texts(bundle: Bundle) -> list[str]:
    """Ordinary sentences, and the scorecard's own samples."""
    samples = [sample for sample in bundle.scorecard.get("samples", []) if isinstance(sample, dict)]
    own = [str(sample[side]) for sample in samples[:LONGEST] for side in ("source", "target") if sample.get(side)]
    return [*PROBE_TEXTS, *own]


def probe_sources(bundle: Bundle) -> list[list[int]]:
    """The probe texts as sources, and some of pieces at random, always the same ones."""
    config, tokenizer = bundle.model_config, bundle.tokenizer
    generator = np.random.default_rng(0)
    ordinary = sorted(set(range(config.num_source_pieces)) - tokenizer.special_ids)
    drawn = [
        generator.choice(ordinary, generator.integers(1, LONGEST, endpoint=True)).tolist()
        for _ in range(_RANDOM_SOURCES)
    ]
    head = bundle.head_ids
    room = min(LONGEST, config.max_length - len(head) - 1)
    return [[*head, *ids[:room], config.end_id] for ids in (*tokenizer.ids_batch(probe_texts(bundle)), *drawn)]


def tokenizer_agreement(ours: Tokenizer, theirs: Tokenizer, texts: Sequence[str]) -> float:
    """The share of texts that get the same ids, on both sides."""
    pairs = ((ours, theirs), (ours.target_side, theirs.target_side))
    same = [
        left == right
        for one, other in pairs
        for left, right in zip(one.ids_batch(texts), other.ids_batch(texts), strict=True)
    ]
    return round(sum(same) / len(same), 4)


def never_written(config: ModelConfig) -> set[int]:
    """Padding and begin; some models begin with their end piece, which stays possible."""
    return {config.padding_id, config.begin_id} - {config.end_id}


def _common_start(left: Sequence[int], right: Sequence[int]) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )
