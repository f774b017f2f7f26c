"""What is said of a head: numbers that can be checked by hand, and labels that only say what is so."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dragoman.explain import Trace
from dragoman.explain.heads import diagonality, entropies, look_at_head, mean_evenness
from dragoman.explain.request import parse_head
from dragoman.explain.trace import Array, Head, Piece, Side
from dragoman.explain.words import aligned_words

LENGTH = 7


def weights_of(places: list[int], num_keys: int = LENGTH) -> Array:
    """Each query looks at one key."""
    return np.eye(num_keys, dtype=np.float32)[places]


def side(length: int = LENGTH) -> Side:
    texts = ["<2en>", *(f"w{place}" for place in range(1, length - 1)), "</s>"]
    pieces = [
        Piece(place, text, text, 0, 0, None if text[0] == "<" else place, text[0] == "<")
        for place, text in enumerate(texts)
    ]
    return Side("", tuple(pieces), ())


def look(kind: str, weights: Array) -> Head:
    part = {"encoder_self": "encoder.0.self_attention", "decoder_self": "decoder.0.self_attention"}
    return look_at_head(parse_head(f"{part.get(kind, 'decoder.0.cross_attention')}.0"), weights, side())


def test_entropy_is_counted_in_bits() -> None:
    weights = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25]], dtype=np.float32)
    assert entropies(weights).tolist() == [0, 1, 2]
    assert mean_evenness(weights, causal=False) == pytest.approx((0 + 0.5 + 1) / 3)


def test_a_causal_head_that_looks_everywhere_it_may_is_even() -> None:
    weights = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    assert mean_evenness(weights.astype(np.float32), causal=True) == pytest.approx(1)


@pytest.mark.parametrize(
    ("places", "expected"),
    [([0, 1, 2, 3], 1.0), ([3, 2, 1, 0], -1.0), ([2, 2, 2, 2], 0.0), ([0, 0, 3, 3], 2 / math.sqrt(5))],
)
def test_diagonality_is_a_correlation(places: list[int], expected: float) -> None:
    assert diagonality(weights_of(places, 4)) == pytest.approx(expected)


@given(arrays.arrays(np.float32, (5, 3), elements=st.floats(0, 1, width=32)))
def test_numbers_stay_within_their_bounds(raw: Array) -> None:
    weights = (raw + np.float32(1e-3)) / (raw + np.float32(1e-3)).sum(axis=1, keepdims=True)
    assert -1.000001 <= diagonality(weights) <= 1.000001
    assert -1e-6 <= mean_evenness(weights, causal=False) <= 1.000001


@pytest.mark.parametrize(
    ("kind", "places", "label"),
    [
        ("encoder_self", [0, 1, 2, 3, 4, 5, 6], "at itself"),
        ("encoder_self", [4, 0, 1, 2, 3, 4, 5], "at the previous piece"),
        ("encoder_self", [1, 2, 3, 4, 5, 6, 0], "at the next piece"),
        ("encoder_self", [6, 6, 6, 6, 6, 6, 2], "at the end"),
        ("encoder_self", [0, 0, 0, 0, 0, 3, 0], "at the tag <2en>"),
        ("encoder_self", [3, 3, 3, 3, 3, 3, 3], "at “w3”"),
        ("encoder_self", [5, 0, 4, 1, 6, 2, 3], "mixed"),
        ("decoder_self", [0, 1, 2, 3, 4, 5, 6], "at the last piece written"),
        ("decoder_self", [0, 0, 1, 2, 3, 4, 5], "at the last piece but one"),
        ("decoder_self", [0, 0, 0, 0, 0, 0, 0], "at the start"),
        ("cross", [1, 2, 3, 3, 5, 4, 6], "follows the source's order"),
        ("cross", [6, 6, 6, 6, 6, 6, 6], "at the end"),
    ],
)
def test_a_label_says_where_a_head_looks(kind: str, places: list[int], label: str) -> None:
    head = look(kind, weights_of(places))
    assert head.label == label
    assert head.kind == kind
    assert head.share > 0.5 or label == "mixed"


def test_a_head_that_looks_at_all_alike_is_spread_out() -> None:
    assert look("cross", np.full((LENGTH, LENGTH), 1 / LENGTH, dtype=np.float32)).label == "spread out"


def test_every_head_of_a_trace_is_looked_at_with_its_own_weights(trace: Trace) -> None:
    assert len({head.name for head in trace.heads}) == len(trace.heads) == 2 * (2 + 3 + 3)
    for head in trace.heads:
        name = parse_head(head.name)
        weights = trace.tensors[f"{name.attention_name}.weights"][name.head].astype(np.float64)
        logs = np.log2(np.where(weights > 0, weights, 1))
        assert head.entropy == pytest.approx(-(weights * logs).sum(axis=1).mean(), abs=1e-5)


def test_the_alignment_is_the_mean_of_one_layers_heads_in_words(trace: Trace) -> None:
    assert trace.alignment_layer == 1
    matrix = aligned_words(trace.tensors, 1, trace.source, trace.target)
    weights = trace.tensors["decoder.1.cross_attention.weights"].mean(axis=0)
    for row, word in enumerate(trace.target.words):
        shares = [sum(weights[t, s] for t in word.pieces for s in other.pieces) for other in trace.source.words]
        np.testing.assert_allclose(matrix[row], np.array(shares) / sum(shares), rtol=1e-4)
    for link in trace.alignment:
        assert link.weight == pytest.approx(matrix[link.target, link.source], abs=1e-4)
