"""Attention rollout: attention followed through the layers (Abnar and Zuidema 2020), for an encoder and a decoder.

A layer hands on half of what a position holds (the residual) and half of what its heads, on average, bring:
A = (W + I) / 2. Through the encoder that is the product of the layers' A. In the decoder each position's share of
every source piece and of every input is followed: self-attention mixes positions, cross-attention brings in source.
What comes out is a way of counting, not a measurement: values and feed-forward networks have no part in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.explain.trace import Arrays

Wide = NDArray[np.float64]


def rollout(tensors: Arrays) -> Arrays:
    """`rollout.encoder` (S, S), `rollout.cross` (T, S) and `rollout.target` (T, T), as far as weights are there.

    Row t of cross and target together sums to 1.
    """
    encoder = _means(tensors, "encoder.{}.self_attention.weights")
    decoder = _means(tensors, "decoder.{}.self_attention.weights")
    cross = _means(tensors, "decoder.{}.cross_attention.weights")
    if not encoder or not cross or len(cross) != len(decoder):
        return {}
    length, num_inputs = len(encoder[0]), len(decoder[0])
    through_SS = np.eye(length)
    for weights_SS in encoder:
        through_SS = _with_residual(weights_SS) @ through_SS
    from_source_TS, from_target_TT = np.zeros((num_inputs, length)), np.eye(num_inputs)
    for weights_TT, weights_TS in zip(decoder, cross, strict=True):
        mixing_TT = _with_residual(weights_TT)
        from_source_TS, from_target_TT = mixing_TT @ from_source_TS, mixing_TT @ from_target_TT
        from_source_TS = (from_source_TS + weights_TS @ through_SS) / 2
        from_target_TT = from_target_TT / 2
    found = {"encoder": through_SS, "cross": from_source_TS, "target": from_target_TT}
    return {f"rollout.{name}": matrix.astype(np.float32) for name, matrix in found.items()}


def _with_residual(weights_QQ: Wide) -> Wide:
    mixed: Wide = (weights_QQ + np.eye(len(weights_QQ))) / 2
    return mixed


def _means(tensors: Arrays, pattern: str) -> list[Wide]:
    """The mean over heads, layer by layer."""
    found: list[Wide] = []
    while (weights := tensors.get(pattern.format(len(found)))) is not None:
        found.append(weights.mean(axis=0, dtype=np.float64))
    return found
