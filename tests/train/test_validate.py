"""Validation: the loss of each target piece, scores and samples of real translations, from a model of its own."""

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_runs import small_recipe, write_corpus

from dragoman.model.transformer import Transformer
from dragoman.recipe import Recipe, SearchConfig
from dragoman.train.prepare import Prepared, prepare
from dragoman.train.validate import Validation


@pytest.fixture(scope="module")
def trained_on(tmp_path_factory: pytest.TempPathFactory) -> tuple[Prepared, Recipe]:
    folder = tmp_path_factory.mktemp("corpus")
    valid, watch = write_corpus(folder, 23, "valid.tsv", seed=7), write_corpus(folder, 11, "old.tsv", seed=3)
    recipe = small_recipe(write_corpus(folder, 101), valid=(valid,), watch=(watch,), batch_tokens=67)
    prepared = prepare(recipe, folder)
    return prepared, replace(recipe, model=replace(recipe.model, vocab_size=prepared.tokenizer.vocab_size))


@pytest.fixture
def prepared(trained_on: tuple[Prepared, Recipe]) -> Prepared:
    return trained_on[0]


@pytest.fixture
def recipe(trained_on: tuple[Prepared, Recipe]) -> Recipe:
    return trained_on[1]


@pytest.fixture
def validation(prepared: Prepared, recipe: Recipe) -> Validation:
    return Validation(prepared, recipe, torch.device("cpu"))


def random_state(recipe: Recipe) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    return Transformer(recipe.model).state_dict()


def test_the_loss_is_that_of_every_target_piece_alone_and_unpadded(
    validation: Validation, prepared: Prepared, recipe: Recipe
) -> None:
    metrics = validation(random_state(recipe))
    total = pieces = 0.0
    for index in range(len(prepared.valid)):
        source, target = (torch.from_numpy(ids.astype(np.int64))[None] for ids in prepared.valid.pair(index))
        target_in = F.pad(target[:, :-1], (1, 0), value=prepared.tokenizer.begin_id)
        logits_TV = validation.model(source, target_in)[0]
        total += F.cross_entropy(logits_TV, target[0], reduction="sum").item()
        pieces += target.numel()
    assert metrics["loss"] == pytest.approx(total / pieces, rel=1e-5)
    assert metrics["perplexity"] == pytest.approx(math.exp(total / pieces), rel=1e-4)


def test_the_weights_that_are_judged_are_those_given(validation: Validation, recipe: Recipe) -> None:
    one = validation(random_state(recipe))
    nothing = {name: torch.zeros_like(value) for name, value in random_state(recipe).items()}
    assert validation(nothing)["loss"] == pytest.approx(math.log(recipe.model.vocab_size))
    assert validation(random_state(recipe)) == one


def test_dropout_is_off(prepared: Prepared, recipe: Recipe) -> None:
    noisy = replace(recipe, model=replace(recipe.model, dropout=0.5))
    validation, state = Validation(prepared, noisy, torch.device("cpu")), random_state(recipe)
    assert validation(state) == validation(state)


def test_a_loss_beyond_all_bounds_has_a_perplexity_still(validation: Validation) -> None:
    with mock.patch.object(validation, "loss", return_value=1e9):
        assert math.isfinite(validation(validation.model.state_dict())["perplexity"])


def test_scores_are_of_the_sampled_pairs_and_samples_show_some_of_them(
    validation: Validation, prepared: Prepared, recipe: Recipe
) -> None:
    references = [pair.target for pair in prepared.valid_pairs]
    with mock.patch.object(validation, "translate", return_value=references):
        metrics = validation(random_state(recipe))
    assert metrics["bleu"] == pytest.approx(100)
    assert metrics["chrf"] == pytest.approx(100)
    assert len(metrics["samples"]) == 3
    pairs = {(pair.source, pair.target) for pair in prepared.valid_pairs}
    for sample in metrics["samples"]:
        assert (sample["source"], sample["reference"]) in pairs
        assert sample["output"] == sample["reference"]


def test_the_same_samples_are_shown_each_time(prepared: Prepared, recipe: Recipe) -> None:
    shown = [Validation(prepared, recipe, torch.device("cpu")).shown for _ in range(2)]
    assert shown[0] == shown[1]


def test_of_a_large_set_pairs_from_its_beginning_to_its_end_are_translated(
    prepared: Prepared, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.train.validate.SAMPLED_PAIRS", 5)
    sampled = Validation(prepared, recipe, torch.device("cpu")).sampled
    assert sampled == [0, 5, 11, 16, 22]


@pytest.mark.parametrize("beam", [1, 3])
def test_translations_come_in_the_order_asked_for(validation: Validation, recipe: Recipe, beam: int) -> None:
    validation.model.load_state_dict(random_state(recipe))
    config = SearchConfig(beam=beam, extra_length=3)
    everything = validation.translate(range(23), config)
    order = [19, 2, 11, 0]
    assert validation.translate(order, config) == [everything[index] for index in order]
    assert len(set(everything)) > 1


def test_a_watched_set_has_a_loss_of_its_own(validation: Validation, prepared: Prepared, recipe: Recipe) -> None:
    metrics = validation(random_state(recipe))
    assert prepared.watched is not None
    assert metrics["watched_loss"] == validation.loss(prepared.watched) != metrics["loss"]
