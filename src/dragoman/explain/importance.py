"""What matters: each source word left out in turn, and the actual change in every target word's probability.

Attention says where the model looked; this says what it would have lost. The two often differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from dragoman.explain.ask import Prepared
from dragoman.explain.forced import forced_log_probs, padded
from dragoman.explain.pieces import source_side, target_side
from dragoman.explain.trace import Side, Word
from dragoman.model.build import TranslationModel
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Importance:
    """Source words, target words, each target word's probability, and its change per left-out source word.

    A word's probability is the product of its pieces', each given the pieces before it. A change below 0 says that the
    word was needed.
    """

    words: tuple[str, ...]
    targets: tuple[str, ...]
    before: tuple[float, ...]
    change: tuple[tuple[float, ...], ...]


def leave_words_out(
    model: TranslationModel, prepared: Prepared, target_ids: Sequence[int], tokenizer: Tokenizer
) -> Importance:
    """The same translation under the source as it is, and under the source without each of its words: one batch."""
    source, target = prepared.source, target_side(tokenizer.target_side, target_ids)
    texts = [without(source, word) for word in source.words]
    sides = [source_side(tokenizer, text, prepared.scribe.head) for text in texts]
    rows = [prepared.source_ids, *([piece.id for piece in side.pieces] for side in sides)]
    source_BS = padded(rows, model.config.padding_id)
    target_BT = padded([list(target_ids)] * len(rows), model.config.padding_id)
    log_probs_BT = forced_log_probs(model, source_BS, target_BT)
    before, *after = (_by_word(row_T, target) for row_T in log_probs_BT)
    return Importance(
        words=tuple(word.text for word in source.words),
        targets=tuple(word.text for word in target.words),
        before=before,
        change=tuple(tuple(then - now for then, now in zip(one, before, strict=True)) for one in after),
    )


def without(side: Side, word: Word) -> str:
    """The text without a word, and without the white space that stood between it and the next."""
    after = side.text[word.end :]
    return side.text[: word.start] + (after.lstrip() if after[:1].isspace() else after)


def _by_word(log_probs_T: Tensor, target: Side) -> tuple[float, ...]:
    return tuple(log_probs_T[list(word.pieces)].sum().exp().item() for word in target.words)
