"""Heads off, words left out, pieces shuffled, other searches: each is what it says, and leaves the model as it was."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from plain_transformer import PlainTransformer, log_softmax

from dragoman.bundle import Bundle
from dragoman.engine.torch_engine import TorchEngine
from dragoman.errors import BundleError
from dragoman.explain import Explainer, Trace, TraceRequest, forced
from dragoman.explain.importance import without
from dragoman.explain.replay import replay
from dragoman.explain.shuffle import shuffled_order
from dragoman.explain.switches import switched_off
from dragoman.explain.what_if import word_difference
from dragoman.translator import Translator
from tiny_bundle import tiny_model

# Heads


def test_a_model_with_heads_off_shares_all_else_and_leaves_the_model_alone(explainer: Explainer) -> None:
    before = {name: tensor.clone() for name, tensor in explainer.model.state_dict().items()}
    changed = switched_off(explainer.model, ["encoder.1.self_attention.1"])
    for name, tensor in explainer.model.state_dict().items():
        assert torch.equal(tensor, before[name])
    name = "encoder.blocks.1.self_attention.w_o.weight"
    theirs, ours = dict(changed.named_parameters()), dict(explainer.model.named_parameters())
    assert {key for key in ours if theirs[key] is not ours[key]} == {name}
    assert not theirs[name][:, 11:].any()
    assert torch.equal(theirs[name][:, :11], ours[name][:, :11])


def test_without_heads_to_switch_off_it_is_the_model_itself(explainer: Explainer) -> None:
    assert switched_off(explainer.model, []) is explainer.model


def test_an_effect_is_what_the_translation_loses_without_the_head(explainer: Explainer, trace: Trace) -> None:
    effects = explainer.effects(trace.request)
    assert effects.before == pytest.approx(trace.translation.log_probability, abs=1e-3)
    assert [effect.name for effect in effects.heads] == [head.name for head in trace.heads]
    ids = [piece.id for piece in trace.source.pieces], [piece.id for piece in trace.target.pieces]
    for effect in effects.heads:
        log_probs = log_softmax(PlainTransformer(explainer.bundle, (effect.name,)).run(*ids)["logits"])
        after = sum(log_probs[place, id] for place, id in enumerate(ids[1]))
        assert effect.effect == pytest.approx(effects.before - after, abs=1e-2)
    telling = effects.telling(3)
    assert [one.effect for one in telling] == sorted((one.effect for one in effects.heads), reverse=True)[:3]


# Words


def test_a_word_left_out_changes_probabilities_by_what_is_said(explainer: Explainer, trace: Trace) -> None:
    found = explainer.importance(trace.request)
    assert list(found.words) == trace.source.text.split()
    target = [piece.id for piece in trace.target.pieces]
    plain = PlainTransformer(explainer.bundle)

    def by_word(text: str) -> list[float]:
        source = [piece.id for piece in explainer.prepare(replace(trace.request, text=text)).source.pieces]
        log_probs = log_softmax(plain.run(source, target)["logits"])
        return [
            float(np.exp(sum(log_probs[place, target[place]] for place in word.pieces))) for word in trace.target.words
        ]

    before = by_word(trace.source.text)
    assert found.before == pytest.approx(before, rel=1e-2, abs=1e-6)
    for number, word in enumerate(found.words):
        left = trace.source.text.split()
        assert left.pop(number) == word
        expected = [after - now for after, now in zip(by_word(" ".join(left)), before, strict=True)]
        assert found.change[number] == pytest.approx(expected, rel=1e-2, abs=1e-6)


def test_words_left_out_are_gone_through_a_few_at_a_time(
    explainer: Explainer, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = explainer.importance(trace.request)
    own, sizes = explainer.model.logits, []

    def logits(hidden: torch.Tensor) -> torch.Tensor:
        sizes.append(tuple(hidden.shape[:-1]))
        return own(hidden)

    length = len(trace.target.pieces)
    monkeypatch.setattr(forced, "MOST_LOGITS", 2 * length * explainer.model.config.vocab_size)
    monkeypatch.setattr(explainer.model, "logits", logits)
    by_twos = explainer.importance(trace.request)
    batched = [shape for shape in sizes if len(shape) == 2 and shape != (1, length)]
    assert len(batched) >= 2
    assert set(batched) == {(2, length)}
    assert by_twos.before == pytest.approx(at_once.before, rel=1e-4)
    for one, other in zip(by_twos.change, at_once.change, strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-6)


def test_the_only_word_may_be_left_out(explainer: Explainer) -> None:
    found = explainer.importance(TraceRequest(text="Ba"))
    assert found.words == ("Ba",)
    assert len(found.change) == 1


@pytest.mark.parametrize(("place", "left"), [(0, "ce, di"), (1, "Ba di"), (2, "Ba ce, ")])
def test_a_word_goes_with_the_space_after_it(explainer: Explainer, place: int, left: str) -> None:
    side = explainer.trace("Ba ce, di").source
    assert without(side, side.words[place]) == left


# Side by side


def test_versions_are_compared_word_by_word() -> None:
    changes = word_difference("the old man sat down", "the young man sat down there")
    assert [(one.kind, one.before, one.after) for one in changes] == [
        ("same", ("the",), ("the",)),
        ("replaced", ("old",), ("young",)),
        ("same", ("man", "sat", "down"), ("man", "sat", "down")),
        ("added", (), ("there",)),
    ]
    assert [one.kind for one in word_difference("a b", "a")] == ["same", "removed"]


def test_a_comparison_has_both_translations(explainer: Explainer, trace: Trace) -> None:
    changed = replace(trace.request, target_ids=None, off=("decoder.2.cross_attention.0",), beam=1)
    found = explainer.compare(trace.request, changed)
    assert found.before.text == trace.translation.text
    assert found.after.text == explainer.explain(changed).translation.text
    assert found.after.target_ids == explainer.explain(changed).request.target_ids


# The search


def test_the_translation_is_the_translators(explainer: Explainer, trace: Trace) -> None:
    bundle: Bundle = explainer.bundle
    translator = Translator(
        bundle.tokenizer, TorchEngine.open(bundle), languages=bundle.languages, search=bundle.search, max_length=67
    )
    translation = translator.translate(trace.source.text, guards=False, align=True)
    assert trace.translation.text == translation.text
    assert trace.translation.score == pytest.approx(translation.score, abs=1e-3)
    assert trace.translation.confidence == pytest.approx(translation.confidence, abs=1e-4)
    assert [(one.source, one.target) for one in trace.alignment] == [
        (one.source, one.target) for one in translation.sentences[0].alignment
    ]


@pytest.mark.parametrize("width", [1, 3])
def test_the_tree_holds_the_search_and_the_winners_path(explainer: Explainer, width: int) -> None:
    trace = explainer.trace("Baceba dila gupo.", beam=width, length_penalty=1.0)
    tree = trace.beam
    assert tree is not None
    assert (tree.width, tree.length_penalty) == (width, 1.0)
    assert [node.id for node in tree.nodes] == list(range(len(tree.nodes)))
    path = [tree.nodes[id] for id in tree.best]
    assert [node.piece_id for node in path] == [piece.id for piece in trace.target.pieces]
    assert [node.parent for node in path] == [None, *tree.best[:-1]]
    assert path[-1].log_probability == pytest.approx(trace.translation.log_probability, abs=1e-3)
    assert path[-1].score == pytest.approx(trace.translation.score, abs=1e-3)
    for step in range(len(path) - 1):
        kept = [node for node in tree.nodes if node.step == step and node.state == "kept"]
        assert len(kept) <= width
    assert all(node.reason for node in tree.nodes if node.state == "pruned")
    assert not any(node.reason for node in tree.nodes if node.state != "pruned")


# Order


def test_the_encoder_without_positions_does_not_know_the_order(explainer: Explainer, trace: Trace) -> None:
    found = explainer.shuffle(trace.request, seed=3)
    assert sorted(found.order) == list(range(len(trace.source.pieces)))
    assert found.order[-1] == len(trace.source.pieces) - 1
    assert found.without_positions.largest_difference < 1e-4
    assert found.without_positions.mean_cosine == pytest.approx(1, abs=1e-5)
    assert found.with_positions.largest_difference > 0.1
    assert min(found.rows.without_positions) == pytest.approx(1, abs=1e-5)
    assert np.mean(found.rows.with_positions) == pytest.approx(found.with_positions.mean_cosine, abs=1e-5)


def test_with_positions_the_numbers_are_those_of_the_encoder(explainer: Explainer, trace: Trace) -> None:
    found = explainer.shuffle(trace.request, seed=3)
    ids = [piece.id for piece in trace.source.pieces]
    plain = PlainTransformer(explainer.bundle)
    straight = plain.stack("encoder", plain.embed("source", ids))[list(found.order)]
    mixed = plain.stack("encoder", plain.embed("source", [ids[place] for place in found.order]))
    assert found.with_positions.largest_difference == pytest.approx(np.abs(straight - mixed).max(), abs=1e-3)


@pytest.mark.parametrize("length", [2, 3, 11])
def test_an_order_is_another_if_there_is_one(length: int) -> None:
    order = shuffled_order(length, seed=1)
    assert sorted(order) == list(range(length))
    assert (list(order) != sorted(order)) == (length > 2)


# Training


def keep(folder: Path, name: str, step: int, seed: int) -> None:
    """Weights as a training run keeps them."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    state = tiny_model(Bundle.open(folder).model_config, seed).state_dict()
    tensors = {key: tensor.clone() for key, tensor in state.items()}
    safetensors.torch.save_file(tensors, folder / name / f"step-{step:09d}.safetensors")


def test_a_sentence_is_replayed_over_the_checkpoints_that_are_kept(checkpointed: Path) -> None:
    keep(checkpointed, "run/weights", 200, seed=1)
    keep(checkpointed, "checkpoints", 7, seed=5)
    explainer = Explainer(Bundle.open(checkpointed))
    final = explainer.trace("Baceba dila gupo.")
    assert final.model.checkpoints == (7, 200)
    early, late = replay(explainer, final.request)
    assert (early.step, late.step) == (7, 200)
    # The last checkpoint is the model itself.
    assert late.text == final.translation.text
    assert late.log_probability == pytest.approx(final.translation.log_probability, abs=1e-4)
    assert late.alignment == final.alignment
    assert early.log_probability < late.log_probability
    assert early.words == late.words == tuple(word.text for word in final.target.words)
    rows: Sequence[Sequence[float]] = early.matrix
    assert [sum(row) for row in rows] == pytest.approx([1] * len(final.target.words), abs=1e-2)


def test_a_model_without_checkpoints_has_nothing_to_replay(explainer: Explainer, trace: Trace) -> None:
    assert trace.model.checkpoints == ()
    assert replay(explainer, trace.request) == ()


def test_a_checkpoint_of_another_model_is_refused(checkpointed: Path) -> None:
    file = checkpointed / "checkpoints" / "step-000000003.safetensors"
    file.parent.mkdir(exist_ok=True)
    safetensors.torch.save_file({"other": torch.zeros(3)}, file)
    try:
        with pytest.raises(BundleError, match=r"step-000000003.safetensors does not hold weights of this model"):
            replay(Explainer(Bundle.open(checkpointed)), TraceRequest(text="Ba."))
    finally:
        file.unlink()
