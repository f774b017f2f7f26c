"""Which words belong together, read off the decoder's attention to the source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.text.tokenizer import Encoded, Tokenizer
from dragoman.translator.translation import Link

LEAST_WEIGHT = 0.25
"""A share of a target word's attention from which on a source word is linked to it."""

Matrix = NDArray[np.float32]


def link_words(
    tokenizer: Tokenizer,
    source: str,
    source_ids: Sequence[int],
    target: str,
    target_ids: Sequence[int],
    attention_TS: Matrix,
) -> tuple[Link, ...]:
    """The links between the words of a source and of its target.

    `source_ids` are those of the text alone; of `attention_TS` the columns before them (a language tag) and after them
    (the end) are left out. Nothing is linked where the pieces do not add up to the words: bytes may make a space; nor
    where there is no row of attention, as the model has none.
    """
    if not len(attention_TS):
        return ()
    source_words = tokenizer.words(Encoded(list(source_ids), []))
    target_words = tokenizer.target_side.words(Encoded(list(target_ids), []))
    if len(source_words) != len(source.split()) or len(target_words) != len(target.split()):
        return ()
    first = attention_TS.shape[1] - 1 - len(source_ids)
    matrix = word_matrix(attention_TS[:, first : first + len(source_ids)], source_words, target_words)
    return links_of(matrix)


def word_matrix(
    attention_TS: Matrix, source_words: Sequence[Sequence[int]], target_words: Sequence[Sequence[int]]
) -> Matrix:
    """Attention between pieces -> between words (target words x source words): a source word gets what its pieces get
    together, a target word what its pieces give on average; rows sum to 1.
    """
    if not source_words or not target_words:
        return np.zeros((len(target_words), len(source_words)), dtype=np.float32)
    by_source = np.stack([attention_TS[:, places].sum(axis=1) for places in map(list, source_words)], axis=1)
    by_both = np.stack([by_source[places].mean(axis=0) for places in map(list, target_words)])
    total = by_both.sum(axis=1, keepdims=True)
    matrix: Matrix = by_both / np.maximum(total, np.finfo(np.float32).tiny)
    return matrix


def links_of(matrix: Matrix) -> tuple[Link, ...]:
    """Each target word's strongest source word, and every other that is strong enough; by target, then source."""
    if not matrix.size:
        return ()
    strong = matrix >= LEAST_WEIGHT
    strong[np.arange(len(matrix)), matrix.argmax(axis=1)] = True
    return tuple(
        Link(int(source), int(target), round(float(matrix[target, source]), 4))
        for target, source in zip(*np.nonzero(strong), strict=True)
    )
