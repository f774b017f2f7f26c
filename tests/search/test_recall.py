"""A model that recalls examples."""

import pytest
import torch
from fake_model import batch

from dragoman.model.build import build_model
from dragoman.recipe import SearchConfig
from dragoman.search import recall
from dragoman.search.beam import search
from dragoman.search.examples import Examples
from dragoman.search.recall import Recall
from tiny_bundle import tiny_config, tiny_model

SPECIAL = {"padding_id": 0, "begin_id": 1, "end_id": 2}
SOURCES = [[31, 45, 77, 2], [31, 46, 90, 91, 2], [210, 211, 2]]
TARGETS = [[101, 102, 2], [103, 107, 104, 105, 2], [106, 2]]


@pytest.fixture(scope="module")
def model():
    return tiny_model(tiny_config())


def recalling(model, sources=SOURCES, targets=TARGETS):
    return Recall(model, Examples(sources, targets), padding_id=0, begin_id=1)


def plain_probabilities(model, source, written):
    """The specification: every vector of every example like the source, made from scratch."""
    hidden_D = model.hidden(batch([source]), batch([[1, *written]]))[0, -1]
    vectors, pieces = [], []
    for place in Examples(SOURCES, TARGETS).nearest(source, recall.NUM_EXAMPLES).places:
        vectors += model.hidden(batch([SOURCES[place]]), batch([[1, *TARGETS[place][:-1]]]))[0]
        pieces += TARGETS[place]
    scale = sum(float(vector.square().sum()) for vector in vectors) / len(vectors)
    distances = [float((hidden_D - vector).square().sum()) / scale for vector in vectors]
    near = sorted(zip(distances, pieces, strict=True))[: recall.NUM_NEIGHBOURS]
    share = recall.SHARE * max(0, 1 - near[0][0] / recall.FAR)
    weights = torch.tensor([-distance / recall.TEMPERATURE for distance, _ in near]).softmax(0)
    mixed_V = (1 - share) * model.logits(hidden_D).softmax(-1)
    for weight, (_, piece) in zip(weights, near, strict=True):
        mixed_V[piece] += share * weight
    return mixed_V


@torch.inference_mode()
def test_a_step_mixes_the_model_with_what_followed_vectors_like_its_own(model):
    source = [31, 45, 90, 2]
    remembering = recalling(model)
    state = remembering.encode(batch([source]))
    written = []
    for piece in (1, 101, 230):
        step = remembering.step(torch.tensor([piece]), state)
        written += [piece] if piece != 1 else []
        wanted_V = plain_probabilities(model, source, written)
        torch.testing.assert_close(step.logits_BV[0].exp(), wanted_V, atol=1e-5, rtol=1e-3)
        state = step.state


@torch.inference_mode()
def test_a_recurrent_model_recalls_too():
    torch.manual_seed(5)
    config = {"architecture": "recurrent", "num_heads": 1, "encoder_layers": 1, "decoder_layers": 1}
    model = build_model(tiny_config(**config)).eval()
    remembering, source = recalling(model), [31, 45, 90, 2]
    step = remembering.step(torch.tensor([1]), remembering.encode(batch([source])))
    step = remembering.step(torch.tensor([101]), step.state)
    wanted_V = plain_probabilities(model, source, [101])
    torch.testing.assert_close(step.logits_BV[0].exp(), wanted_V, atol=1e-5, rtol=1e-3)


@torch.inference_mode()
def test_only_the_nearest_vectors_are_heard(model, monkeypatch):
    monkeypatch.setattr(recall, "NUM_NEIGHBOURS", 2)
    step = recalling(model).step(torch.tensor([1]), recalling(model).encode(batch([SOURCES[0]])))
    wanted_V = plain_probabilities(model, SOURCES[0], [])
    torch.testing.assert_close(step.logits_BV[0].exp(), wanted_V, atol=1e-5, rtol=1e-3)


@torch.inference_mode()
def test_examples_that_are_far_off_are_not_heard(model, monkeypatch):
    monkeypatch.setattr(recall, "FAR", 1e-9)
    source = [31, 120, 121, 2]
    remembering, last = recalling(model), torch.tensor([1])
    heard_BV = remembering.step(last, remembering.encode(batch([source]))).logits_BV
    torch.testing.assert_close(heard_BV, model.step(last, model.encode(batch([source]))).logits_BV.log_softmax(-1))


def test_a_sentence_like_no_example_is_translated_as_the_model_would(model):
    config, strange = SearchConfig(beam=4, extra_length=7), [150, 151, 152]
    alone = search(model, batch([strange]), config, **SPECIAL, num_best=4)[0]
    beside = search(recalling(model), batch([strange, SOURCES[0]]), config, **SPECIAL, num_best=4)[0]
    assert [one.ids for one in beside] == [one.ids for one in alone]
    assert [one.score for one in beside] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_a_sentence_that_was_translated_before_is_translated_so_again(model, monkeypatch):
    monkeypatch.setattr(recall, "SHARE", 0.95)
    monkeypatch.setattr(recall, "TEMPERATURE", 1e-9)
    found = search(recalling(model), batch(SOURCES), SearchConfig(beam=4, extra_length=7), **SPECIAL)
    assert [list(one[0].ids) for one in found] == [target[:-1] for target in TARGETS]
    alone = search(model, batch(SOURCES), SearchConfig(beam=4, extra_length=7), **SPECIAL)
    assert [one[0].ids for one in alone] != [one[0].ids for one in found]


def test_a_beam_that_moves_takes_its_sentence_s_examples_along(model):
    config, sources = SearchConfig(beam=3, extra_length=7), [[31, 45, 2], [210, 2], [46, 90, 31, 2]]
    together = search(recalling(model), batch(sources), config, **SPECIAL)
    for source, found in zip(sources, together, strict=True):
        alone = search(recalling(model), batch([source]), config, **SPECIAL)[0]
        assert [one.ids for one in found] == [one.ids for one in alone]


def test_vectors_are_kept_up_to_a_limit_and_made_again_beyond(model, monkeypatch):
    made = []
    hidden = model.hidden
    monkeypatch.setattr(model, "hidden", lambda *ids: made.append(len(ids[0])) or hidden(*ids))
    config = SearchConfig(beam=3, extra_length=7)
    remembering = recalling(model)
    first = search(remembering, batch([SOURCES[0]]), config, **SPECIAL)
    assert sum(made) == 2  # two sources have a piece of it
    assert search(remembering, batch([SOURCES[0]]), config, **SPECIAL) == first
    assert sum(made) == 2
    monkeypatch.setattr(recall, "KEPT_NUMBERS", 0)
    assert search(remembering, batch([SOURCES[0]]), config, **SPECIAL) == first
    search(remembering, batch([SOURCES[2]]), config, **SPECIAL)
    assert search(remembering, batch([SOURCES[0]]), config, **SPECIAL) == first
    assert sum(made) > 4
