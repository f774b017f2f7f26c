"""A trace is true: every number of it is what plain loops over the weights give."""

import json
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_transformer import PlainTransformer, log_softmax

from dragoman.errors import DataError
from dragoman.explain import Explainer, Trace, TraceRequest, derived
from dragoman.explain import explainer as explainer_module
from dragoman.explain.derived import SHOWN_POSITIONS, shapes_on_demand
from dragoman.explain.forced import force
from dragoman.explain.rollout import rollout
from dragoman.explain.steps import make_steps
from tiny_bundle import write_tiny_bundle

SHAPES: dict[str, dict[str, Any]] = {
    "as printed": {},
    "pre-norm, biases": {"norm_order": "pre", "attention_bias": True},
    "learned positions, RMSNorm": {"position": "learned", "norm": "rms", "norm_order": "pre"},
    "free d_k and d_v, SwiGLU": {"d_k": 5, "d_v": 7, "num_heads": 3, "activation": "swiglu"},
    "two matrices": {"share_embeddings": False},
}


@pytest.fixture(params=SHAPES, scope="module")
def shaped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Explainer:
    return Explainer(write_tiny_bundle(tmp_path_factory.mktemp("shaped") / "model", **SHAPES[request.param]))


def plain(explainer: Explainer, trace: Trace, off: tuple[str, ...] = ()) -> dict[str, Any]:
    """The same pass in numpy."""
    source = [piece.id for piece in trace.source.pieces]
    target = [piece.id for piece in trace.target.pieces]
    return PlainTransformer(explainer.bundle, off).run(source, target)


def test_every_number_is_that_of_plain_loops_over_the_weights(shaped: Explainer) -> None:
    trace = shaped.trace("Baceba dila gupo lame.")
    expected = plain(shaped, trace)
    derived = {name for name in trace.tensors if name.startswith("rollout.") or name == "position.table"}
    asked = {name for name in expected if name.endswith(".contribution")}
    assert set(trace.tensors) - derived == set(expected) - asked
    for name in set(expected) - asked:
        assert trace.tensors[name].dtype == np.float32
        np.testing.assert_allclose(trace.tensors[name], expected[name], rtol=2e-3, atol=2e-4, err_msg=name)


def test_what_is_given_on_demand_is_too(shaped: Explainer) -> None:
    trace = shaped.trace("Baceba dila.")
    expected = plain(shaped, trace)
    name = "decoder.1.cross_attention"
    parts = ["w_q", "w_k", "w_v", "w_o", "contribution"]
    found = shaped.tensors(trace.request, [f"{name}.{part}" for part in parts])
    assert {full: array.shape for full, array in found.items()} == {full: trace.on_demand[full] for full in found}
    w_q, w_k, w_v, w_o, contribution = (found[f"{name}.{part}"] for part in parts)
    biases = [key for key in trace.on_demand if key.startswith(f"{name}.b_")]
    bias = shaped.tensors(trace.request, biases) if biases else {}

    def with_bias(product: Any, letter: str) -> Any:
        given = bias.get(f"{name}.b_{letter}")
        return product if given is None else product + given[:, None, :]

    query = with_bias(np.einsum("HCD,QD->HQC", w_q, trace.tensors[f"{name}.input"]), "q")
    key = with_bias(np.einsum("HCD,KD->HKC", w_k, trace.tensors["encoder.output"]), "k")
    value = with_bias(np.einsum("HCD,KD->HKC", w_v, trace.tensors["encoder.output"]), "v")
    for part, array in (("query", query), ("key", key), ("value", value)):
        np.testing.assert_allclose(array, expected[f"{name}.{part}"], rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(contribution, expected[f"{name}.contribution"], rtol=2e-3, atol=2e-4)
    mixed = trace.tensors[f"{name}.mixed"]
    np.testing.assert_allclose(np.einsum("HDC,HQC->HQD", w_o, mixed), contribution, rtol=2e-3, atol=2e-4)
    total = contribution.sum(axis=0) + bias.get(f"{name}.b_o", 0.0)
    np.testing.assert_allclose(total, trace.tensors[f"{name}.output"], rtol=2e-3, atol=2e-4)


def test_a_head_that_is_off_adds_nothing_and_the_rest_follows(explainer: Explainer) -> None:
    off = ("encoder.1.self_attention.0", "decoder.0.cross_attention.1")
    trace = explainer.trace("Baceba dila gupo.", off=off)
    expected = plain(explainer, trace, off)
    for name, array in trace.tensors.items():
        if name in expected:
            np.testing.assert_allclose(array, expected[name], rtol=2e-3, atol=2e-4, err_msg=name)


def test_probabilities_ranks_and_scores_come_from_the_logits(explainer: Explainer, trace: Trace) -> None:
    log_probs = log_softmax(trace.tensors["logits"].astype(np.float64))
    ids = [piece.id for piece in trace.target.pieces]
    total = 0.0
    for place, (id, step) in enumerate(zip(ids, trace.steps, strict=True)):
        total += log_probs[place, id]
        order = np.argsort(-log_probs[place], kind="stable")
        assert step.chosen.id == id
        assert step.chosen.probability == pytest.approx(np.exp(log_probs[place, id]), abs=1e-5)
        assert order[step.chosen.rank - 1] == id
        assert [one.id for one in step.top] == order[:10].tolist()
        assert [one.rank for one in step.top] == list(range(1, 11))
        assert [one.probability for one in step.top] == pytest.approx(np.exp(log_probs[place, order[:10]]), abs=1e-5)
    assert trace.translation.log_probability == pytest.approx(total, abs=1e-3)
    penalty = ((5 + len(ids)) / 6) ** trace.request.length_penalty if trace.request.length_penalty else 1.0
    assert trace.translation.score == pytest.approx(total / penalty, abs=1e-3)
    assert trace.translation.confidence == pytest.approx(np.exp(total / len(ids)), abs=1e-4)


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_the_logit_lens_reads_a_layer_as_if_it_were_the_last(tmp_path: Path, norm_order: str) -> None:
    explainer = Explainer(write_tiny_bundle(tmp_path / "m", norm_order=norm_order))
    trace = explainer.trace("Baceba dila.")
    model = PlainTransformer(explainer.bundle)
    matrix = model.weights["target_embedding.pieces.weight"]
    for layer in range(3):
        hidden = trace.tensors[f"decoder.{layer}.feed_forward_residual.output"].astype(np.float64)
        hidden = model.norm("decoder.norm", hidden) if norm_order == "pre" else hidden
        probabilities = np.exp(log_softmax(hidden @ matrix.T))
        for place, step in enumerate(trace.steps):
            for candidate in step.lens[layer]:
                assert candidate.probability == pytest.approx(probabilities[place, candidate.id], abs=1e-4)
            assert step.lens[layer][0].probability == pytest.approx(probabilities[place].max(), abs=1e-4)
    assert [step.lens[-1][0].id for step in trace.steps] == [step.top[0].id for step in trace.steps]


def test_the_lens_holds_one_layers_logits_at_a_time(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    own, made, held = explainer.model.logits, [], []

    def logits(hidden: torch.Tensor) -> torch.Tensor:
        held.append(sum(one() is not None for one in made))
        found: torch.Tensor = own(hidden)
        made.append(weakref.ref(found))
        return found

    seen = force(explainer.model, [5, 2], [7, 3, 2])
    monkeypatch.setattr(explainer.model, "logits", logits)
    steps = make_steps(explainer.model, seen, [7, 3, 2], explainer.tokenizer.target_side, top=1)
    assert [len(step.lens) for step in steps] == [3, 3, 3]
    assert held == [0, 0, 0]


def test_the_table_of_positions_has_all_rows_of_a_long_sentence(explainer: Explainer) -> None:
    long, short = explainer.trace(" ".join(["ba"] * 63)), explainer.trace("Ba.")
    length = len(long.source.pieces)
    assert length > SHOWN_POSITIONS
    assert len(short.tensors["position.table"]) == SHOWN_POSITIONS
    assert len(long.tensors["position.table"]) == length
    np.testing.assert_array_equal(long.tensors["position.table"], long.tensors["source.position"])


# On demand


def test_shapes_of_what_is_given_on_demand_are_its_own(shaped: Explainer) -> None:
    trace = shaped.trace("Baceba dila.")
    found = shaped.tensors(trace.request, list(trace.on_demand))
    assert {name: array.shape for name, array in found.items()} == trace.on_demand


def test_shapes_are_told_without_making_what_they_are_of(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = force(explainer.model, [5, 2], [7, 2])
    monkeypatch.setattr(derived, "_apart", pytest.fail)
    shapes = shapes_on_demand(explainer.model, seen.tensors)
    assert shapes["decoder.2.cross_attention.contribution"] == (2, 2, 22)


def test_a_pass_that_is_kept_is_not_run_again(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[Any] = []

    def counted(*arguments: Any) -> Any:
        passes.append(arguments)
        return force(*arguments)

    monkeypatch.setattr(explainer_module, "force", counted)
    keeping = Explainer(explainer.bundle, keep=2)
    names = ["encoder.0.self_attention.w_q", "decoder.1.cross_attention.weights", "rollout.cross", "logits"]
    texts = ("Baceba dila.", "Gupo lame ni!", "Gupo.")
    first, second = (keeping.trace(text).request for text in texts[:2])
    for request in (first, second, first):
        expected = explainer.tensors(request, names)
        before = len(passes)
        for name, array in keeping.tensors(request, names).items():
            np.testing.assert_array_equal(array, expected[name])
        again = keeping.explain(request)
        assert len(passes) == before
        assert again.meta() == explainer.explain(request).meta()
    keeping.trace(texts[2])
    before = len(passes)
    for request, run in ((first, 0), (second, 1)):  # the one that was asked for last stays
        keeping.tensors(request, names)
        assert len(passes) == before + run
    off = replace(second, off=("encoder.0.self_attention.1",))
    assert keeping.version(off).log_probability != keeping.version(second).log_probability
    assert len(keeping._kept) == 2


def test_rollout_follows_attention_through_the_layers(trace: Trace) -> None:
    def mean(name: str) -> Any:
        return trace.tensors[f"{name}.weights"].astype(np.float64).mean(axis=0)

    through = np.eye(len(trace.source.pieces))
    for layer in range(2):
        through = 0.5 * (mean(f"encoder.{layer}.self_attention") + np.eye(len(through))) @ through
    np.testing.assert_allclose(trace.tensors["rollout.encoder"], through, atol=1e-5)
    # One input's share of everything, followed alone: a row of the whole.
    last = len(trace.target.pieces) - 1
    total = trace.tensors["rollout.cross"][last].sum() + trace.tensors["rollout.target"][last].sum()
    assert total == pytest.approx(1.0, abs=1e-5)
    assert (np.triu(trace.tensors["rollout.target"], 1) == 0).all()


def test_rollout_of_one_layer_is_its_attention_and_the_residual() -> None:
    self_weights, cross_weights = np.array([[[1, 0], [0.25, 0.75]]]), np.array([[[0.5, 0.5, 0], [0, 0, 1.0]]])
    found = rollout(
        {
            "encoder.0.self_attention.weights": np.eye(3, dtype=np.float32)[None],
            "decoder.0.self_attention.weights": self_weights.astype(np.float32),
            "decoder.0.cross_attention.weights": cross_weights.astype(np.float32),
        }
    )
    np.testing.assert_allclose(found["rollout.cross"], [[0.25, 0.25, 0], [0, 0, 0.5]])
    np.testing.assert_allclose(found["rollout.target"], [[0.5, 0], [0.0625, 0.4375]])


def test_asked_again_it_is_the_same_trace_without_a_search(explainer: Explainer, trace: Trace) -> None:
    again = explainer.explain(trace.request)
    assert again.beam is None
    assert {**again.meta(), "beam": None} == {**trace.meta(), "beam": None}
    for name, array in trace.tensors.items():
        np.testing.assert_array_equal(again.tensors[name], array)


def test_what_is_saved_is_read_back(tmp_path: Path, trace: Trace) -> None:
    trace.save(tmp_path / "saved")
    again = Trace.load(tmp_path / "saved")
    assert again.meta() == trace.meta() == json.loads((tmp_path / "saved" / "trace.json").read_text(encoding="utf-8"))
    assert list(again.tensors) == sorted(trace.tensors, key=list(again.tensors).index)
    for name, array in trace.tensors.items():
        np.testing.assert_array_equal(again.tensors[name], array)
    assert isinstance(again.request, TraceRequest)
    assert again.steps == trace.steps


def test_what_is_no_trace_is_refused(tmp_path: Path, trace: Trace) -> None:
    with pytest.raises(DataError, match=r"there is no trace in .*: No such file"):
        Trace.load(tmp_path)
    trace.save(tmp_path)
    (tmp_path / "trace.json").write_text(json.dumps({**trace.meta(), "format": "other/7"}), encoding="utf-8")
    with pytest.raises(DataError, match=r"cannot be understood \(format is 'other/7', expected 'dragoman-trace/1'\)"):
        Trace.load(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot write the trace to"):
        trace.save(tmp_path / "file" / "below")
