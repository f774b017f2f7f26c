"""From pieces to words: the alignment. No torch here."""

from __future__ import annotations

import numpy as np

from dragoman.explain.trace import Array, Arrays, Side
from dragoman.translator.alignment import word_matrix


def aligned_words(tensors: Arrays, layer: int, source: Side, target: Side) -> Array:
    """(target words, source words): a target word's attention to the source, special pieces left out."""
    weights_HTS = tensors.get(f"decoder.{layer}.cross_attention.weights")
    if weights_HTS is None:
        return np.zeros((len(target.words), len(source.words)), dtype=np.float32)
    return word_matrix(
        weights_HTS.mean(axis=0), [word.pieces for word in source.words], [word.pieces for word in target.words]
    )
