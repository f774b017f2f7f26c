from collections import Counter

import pytest
import torch
from fake_model import END, SPECIAL, FakeModel, batch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.recipe import SearchConfig
from dragoman.search.beam import search
from dragoman.search.sampling import draw_pieces, sample, uniform_numbers

CONFIG = SearchConfig(beam=1, extra_length=7)
SHARES = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])
quick = settings(deadline=None, max_examples=25)
sources = st.lists(st.integers(3, 10), min_size=1, max_size=5)


def drawn_shares(**settings_):
    """How often each piece is drawn, over an even spread of uniform numbers."""
    uniform_R = torch.arange(1000) / 1000
    pieces = draw_pieces(SHARES.log().expand(1000, -1), uniform_R, **settings_)
    counts = Counter(pieces.tolist())
    return [counts[piece] / 1000 for piece in range(5)]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "expected"),
    [
        (1.0, 0, 1.0, [0.1, 0.4, 0.05, 0.3, 0.15]),
        (1.0, 5, 1.0, [0.1, 0.4, 0.05, 0.3, 0.15]),
        (1.0, 7, 1.0, [0.1, 0.4, 0.05, 0.3, 0.15]),
        (1.0, 2, 1.0, [0, 4 / 7, 0, 3 / 7, 0]),
        (1.0, 1, 1.0, [0, 1, 0, 0, 0]),
        (1.0, 0, 0.6, [0, 4 / 7, 0, 3 / 7, 0]),
        (1.0, 0, 0.8, [0, 8 / 17, 0, 6 / 17, 3 / 17]),
        (1.0, 0, 0.01, [0, 1, 0, 0, 0]),
        (1.0, 2, 0.5, [0, 1, 0, 0, 0]),
        (0.5, 2, 1.0, [0, 16 / 25, 0, 9 / 25, 0]),
        (2.0, 0, 0.7, [0, 0.6325 / 1.5675, 0, 0.5477 / 1.5675, 0.3873 / 1.5675]),
    ],
)
def test_pieces_are_drawn_by_their_shares(temperature, top_k, top_p, expected):
    assert drawn_shares(temperature=temperature, top_k=top_k, top_p=top_p) == pytest.approx(expected, abs=2e-3)


def test_the_largest_uniform_number_draws_a_piece_with_a_share():
    log_probs_RV = torch.tensor([[0.3, 0.7, 0.0]]).log()
    assert draw_pieces(log_probs_RV, torch.tensor([1.0]), 1.0, 0, 1.0).tolist() == [1]
    assert draw_pieces(log_probs_RV, torch.tensor([1.0]), 1.0, 0, 0.5).tolist() == [1]


def test_uniform_numbers_differ_by_seed_sentence_and_sample():
    keys = [(1, 2, 3), (1, 3, 2), (2, 1, 3), (12, 3, 4), (1, 23, 4)]
    assert len({tuple(uniform_numbers(*key, 5)) for key in keys}) == 5
    assert uniform_numbers(1, 2, 3, 7) == uniform_numbers(1, 2, 3, 7)


@quick
@given(sources, st.integers(-3, 2**40))
def test_a_fixed_seed_repeats(source, seed):
    first, again = (sample(FakeModel(), batch([source]), CONFIG, **SPECIAL, seed=seed) for _ in range(2))
    assert first == again


def test_another_seed_draws_something_else():
    drawn = {sample(FakeModel(), batch([[3, 4, 5]]), CONFIG, **SPECIAL, seed=seed)[0][0].ids for seed in range(11)}
    assert len(drawn) > 5


def test_equal_sources_are_drawn_independently():
    drawn = sample(FakeModel(), batch([[3, 4, 5]] * 5), CONFIG, **SPECIAL, seed=1, num_samples=2)
    assert len({one.ids for samples in drawn for one in samples}) > 5


@quick
@given(st.lists(sources, min_size=1, max_size=4), st.integers(1, 3))
def test_a_sample_does_not_depend_on_the_rest_of_the_batch(batch_sources, num_samples):
    choices = {"seed": 3, "top_k": 5, "top_p": 0.9, "num_samples": num_samples}
    together = sample(FakeModel(), batch(batch_sources), CONFIG, **SPECIAL, **choices)
    assert [len(samples) for samples in together] == [num_samples] * len(batch_sources)
    for index, source in enumerate(batch_sources):
        alone = sample(FakeModel(), batch([source]), CONFIG, **SPECIAL, **choices, indices=[index])
        assert alone == [together[index]]


@pytest.mark.parametrize("tame", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}])
def test_the_tamest_sample_is_greedy(tame):
    source_BS = batch([[3, 4, 5], [6], [7, 8]])
    assert sample(FakeModel(), source_BS, CONFIG, **SPECIAL, seed=7, **tame) == search(
        FakeModel(), source_BS, CONFIG, **SPECIAL
    )


@quick
@given(sources)
def test_a_samples_score_is_the_models_own(source):
    [[one]] = sample(FakeModel(), batch([source]), CONFIG, **SPECIAL, seed=1, temperature=3.0)
    written = [*one.ids, END] if one.finished else list(one.ids)
    log_probs = [FakeModel().log_probs_after(source, written[:i])[piece] for i, piece in enumerate(written)]
    assert list(one.piece_log_probabilities) == pytest.approx(log_probs, abs=1e-6)


def test_samples_keep_the_prefix_the_maximum_length_and_the_ngram_block():
    config = SearchConfig(extra_length=5, no_repeat_ngram=1)
    model = FakeModel(end_bonus=-30.0)
    drawn = sample(model, batch([[3], [4, 5]]), config, **SPECIAL, seed=1, num_samples=3, prefix=[[7, 9], []])
    assert [len(one.ids) for samples in drawn for one in samples] == [6, 6, 6, 7, 7, 7]
    assert all(one.ids[:2] == (7, 9) for one in drawn[0])
    assert all(len(set(one.ids)) == len(one.ids) for samples in drawn for one in samples)
    assert not any(one.finished for samples in drawn for one in samples)


def test_a_finished_sample_leaves_the_batch():
    model = FakeModel()
    drawn = sample(model, batch([[3, 4, 5]]), CONFIG, **SPECIAL, seed=1, num_samples=7)[0]
    steps = [len(one.piece_log_probabilities) + (not one.finished) for one in drawn]
    assert model.encodes == 1
    assert model.rows == [sum(step > number for step in steps) for number in range(max(steps))]


def test_an_empty_batch_has_no_samples():
    assert sample(FakeModel(), torch.zeros(0, 3, dtype=torch.long), CONFIG, **SPECIAL, seed=1) == []


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0, expected a number above 0: for the likeliest .* a beam of 1"),
        ({"top_k": -1}, "top_k is -1, expected at least 0, which means all pieces"),
        ({"top_p": 0.0}, "top_p is 0.0, expected a share above 0, up to 1, which means all pieces"),
        ({"top_p": 1.5}, "top_p is 1.5, expected a share"),
        ({"num_samples": 0}, "num_samples is 0, expected at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(choices, message):
    with pytest.raises(ConfigError, match=message):
        sample(FakeModel(), batch([[3]]), CONFIG, **SPECIAL, seed=1, **choices)
