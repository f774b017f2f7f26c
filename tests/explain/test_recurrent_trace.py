"""A recurrent model is explained as far as its views go: what it looked at, what it might have written, the search."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.errors import ConfigError
from dragoman.explain import Explainer, Trace
from dragoman.explain.terminal import draw_alignment
from lively_model import SENTENCES, write_lively_bundle

D_FF = 37
SIZES: dict[str, Any] = {
    "architecture": "recurrent", "d_ff": D_FF, "num_heads": 1, "d_k": 11, "encoder_layers": 1, "decoder_layers": 1
}  # fmt: skip


def explained(folder: Path, attention: str) -> tuple[Explainer, Trace]:
    explainer = Explainer(write_lively_bundle(folder, recurrent_attention=attention, **SIZES))
    return explainer, explainer.trace(SENTENCES[0])


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory) -> tuple[Explainer, Trace]:
    return explained(tmp_path_factory.mktemp("recurrent") / "m", "additive")


def test_its_looks_are_one_heads_cross_attention(looking: tuple[Explainer, Trace]) -> None:
    trace = looking[1]
    shape = (1, len(trace.target.pieces), len(trace.source.pieces))
    assert trace.tensors["decoder.0.cross_attention.weights"].shape == shape
    np.testing.assert_allclose(trace.tensors["decoder.0.cross_attention.weights"].sum(-1), 1, rtol=1e-5)
    assert [head.name for head in trace.heads] == ["decoder.0.cross_attention.0"]
    assert trace.alignment_layer == 0
    assert trace.alignment
    assert (trace.model.architecture, trace.model.position, trace.model.norm) == ("recurrent", "", "")


def test_its_scores_are_the_additive_ones_and_its_context_their_mix(looking: tuple[Explainer, Trace]) -> None:
    explainer, trace = looking
    weights = {name: array.astype(np.float64) for name, array in explainer.bundle.weights().items()}
    tensors = {name: array.astype(np.float64) for name, array in trace.tensors.items()}
    key = tensors["encoder.annotations"] @ weights["decoder.cross_attention.score.u.weight"].T
    backward = tensors["encoder.annotations"][0, D_FF:]
    first = np.tanh(weights["decoder.w_start.weight"] @ backward + weights["decoder.w_start.bias"])
    states = np.vstack([first, tensors["decoder.0.state"][:-1]])
    score = "decoder.cross_attention.score"
    asked = states @ weights[f"{score}.w.weight"].T + weights[f"{score}.w.bias"]
    scores = np.tanh(asked[:, None] + key[None]) @ weights[f"{score}.v"]
    np.testing.assert_allclose(tensors["decoder.0.cross_attention.scores"][0], scores, rtol=1e-3, atol=1e-4)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tensors["decoder.0.cross_attention.weights"][0], shares, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        tensors["decoder.0.cross_attention.mixed"][0], shares @ tensors["encoder.annotations"], rtol=1e-3, atol=1e-4
    )


def test_steps_and_search_are_there_and_the_lens_is_not(looking: tuple[Explainer, Trace]) -> None:
    explainer, trace = looking
    assert trace.beam is not None
    assert trace.beam.best
    assert all(step.lens == () for step in trace.steps)
    total = sum(math.log(step.chosen.probability) for step in trace.steps)
    assert trace.translation.log_probability == pytest.approx(total, abs=1e-3)
    assert len(explainer.importance(trace.request).change) == len(trace.source.words)


def test_what_it_does_not_have_is_told(looking: tuple[Explainer, Trace]) -> None:
    explainer, trace = looking
    with pytest.raises(ConfigError, match="this model has no heads to switch off: it is no Transformer"):
        explainer.trace(trace.source.text, off=("decoder.0.cross_attention.0",))
    with pytest.raises(ConfigError, match="only a Transformer's encoder can do without order"):
        explainer.shuffle(trace.request)
    assert explainer.effects(trace.request).heads == ()
    assert trace.on_demand == {}


def test_a_model_that_never_looks_has_no_alignment(tmp_path: Path) -> None:
    trace = explained(tmp_path / "m", "none")[1]
    assert (trace.alignment, trace.alignment_layer, trace.heads) == ((), -1, ())
    assert draw_alignment(trace, 80) == ["(no alignment: this model does not look at the source piece by piece)"]
    assert trace.steps
