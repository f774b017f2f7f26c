"""Several models searched as one."""

import math

import pytest
import torch
from fake_model import SPECIAL, FakeModel, batch, enumerate_translations

from dragoman.recipe import SearchConfig
from dragoman.search.beam import search
from dragoman.search.length import length_penalty
from dragoman.search.mixture import Mixture, mean_log_probs

STARTS, ALPHA = (7, 101, 4003), 0.6
WIDE = SearchConfig(beam=200, length_penalty=ALPHA, extra_length=0)


class PlainMixture:
    """The specification: each model is asked from scratch."""

    num_pieces = 6

    def log_probs_after(self, source, target):
        rows = [FakeModel(6, start=start).log_probs_after(source, target) for start in STARTS]
        return [math.log(sum(map(math.exp, pieces)) / len(STARTS)) for pieces in zip(*rows, strict=True)]


def test_a_wide_beam_finds_what_all_models_find_likeliest_in_the_mean():
    source, model = [3, 9, 4], Mixture([FakeModel(6, start=start) for start in STARTS])
    found = search(model, batch([source]), WIDE, **SPECIAL, num_best=5)[0]
    scores = [
        (total / length_penalty(len(ids) + 1, ALPHA), ids)
        for ids, total in enumerate_translations(PlainMixture(), source, 3)
    ]
    expected = sorted(scores, reverse=True)[:5]
    assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-5)


def test_every_model_keeps_its_own_state_when_a_beam_moves():
    sources = [[3, 9, 4], [5], [8, 8, 3, 10]]
    models = [FakeModel(start=start) for start in STARTS]
    together = search(Mixture(models), batch(sources), SearchConfig(beam=3), **SPECIAL)
    assert models[0].selects == models[1].selects == models[2].selects != []
    for source, found in zip(sources, together, strict=True):
        fresh = Mixture([FakeModel(start=start) for start in STARTS])
        alone = search(fresh, batch([source]), SearchConfig(beam=3), **SPECIAL)[0]
        assert [one.ids for one in found] == [one.ids for one in alone]


def test_the_mean_is_of_probabilities_not_of_logits():
    sure, unsure = torch.tensor([[9.0, 0.0]]), torch.tensor([[1000.0, 1000.0]])
    wanted = (sure.softmax(-1) + 0.5) / 2
    torch.testing.assert_close(mean_log_probs([sure, unsure]).exp(), wanted)
    torch.testing.assert_close(mean_log_probs([sure]), sure.log_softmax(-1))
