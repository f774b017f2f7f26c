"""The recipes: each says how it is run and what came of it; the paper's say what the paper says, and can be run."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_runs import run_small
from synthetic import make_pairs, write_pairs

from dragoman.config import PRESETS
from dragoman.model.transformer import Transformer
from dragoman.recipe import CorpusConfig, Recipe
from dragoman.settings import fill, read
from dragoman.train.schedule import learning_rate

RECIPES = Path(__file__).parents[2] / "recipes"
PAPER = sorted(RECIPES.glob("paper-*.toml"))
NOT_RUN = {path.stem for path in PAPER}


def recipe_in(path: Path) -> Recipe:
    return fill(Recipe, read(path))


def test_the_paper_s_four_models_have_a_recipe() -> None:
    assert [path.stem for path in PAPER] == [f"paper-{size}-en-{to}" for size in ("base", "big") for to in ("de", "fr")]


@pytest.mark.parametrize("path", sorted(RECIPES.glob("**/*.toml")), ids=lambda path: path.stem)
def test_a_recipe_is_read_whole_and_its_command_and_score_stand_on_top(path: Path) -> None:
    assert recipe_in(path).data.train
    head = path.read_text(encoding="utf-8").split("\n\n")[0]
    assert all(line.startswith("#") for line in head.splitlines())
    assert f"--recipe recipes/{path.relative_to(RECIPES)}" in head
    words = " ".join(head.replace("#", " ").split())
    measured = re.search(r"Measured on .*BLEU.*\|version:", words) is not None
    told = "It has not been run here" in words
    assert (measured, told) == (path.stem not in NOT_RUN, path.stem in NOT_RUN)


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_a_paper_recipe_has_the_paper_s_numbers(path: Path) -> None:
    recipe, size = recipe_in(path), "big" if "big" in path.stem else "base"
    model, train, search = recipe.model, recipe.train, recipe.search
    # The big model's dropout is 0.3, for English-French 0.1.
    dropout = 0.1 if path.stem == "paper-big-en-fr" else PRESETS[size].model.dropout
    assert model == replace(PRESETS[size].model, dropout=dropout)
    pieces = 37_000 if "en-de" in path.stem else 32_000
    assert recipe.tokenizer.vocab_size == pieces
    with torch.device("meta"):
        built = Transformer(replace(model, vocab_size=pieces))
    body = 176_283_648 if size == "big" else 44_101_632
    assert built.num_parameters(body=True) == body
    assert built.num_parameters() == body + pieces * model.d_model
    assert train.clip_norm == 0
    assert (train.optimizer, train.beta1, train.beta2, train.epsilon) == ("adam", 0.9, 0.98, 1e-9)
    assert (train.label_smoothing, train.batch_tokens, train.embedding_start) == (0.1, 25_000, "random")
    assert (train.max_steps, train.average) == ((300_000, 20) if size == "big" else (100_000, 5))
    for step in (1, 4_000, 100_000):
        wanted = model.d_model**-0.5 * min(step**-0.5, step * 4_000**-1.5)
        assert learning_rate(step, train, model.d_model, train.max_steps) == pytest.approx(wanted)
    assert (search.beam, search.length_penalty, search.extra_length) == (4, 0.6, 50)
    assert {corpus.languages for corpus in recipe.data.train} == {path.stem[-5:]}


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_a_paper_recipe_takes_a_few_steps_on_generated_text(path: Path, tmp_path: Path) -> None:
    recipe, languages = recipe_in(path), path.stem[-5:]
    corpora = [
        CorpusConfig(path=str(write_pairs(tmp_path / f"{seed}.tsv", make_pairs(count, seed))), languages=languages)
        for seed, count in ((1, 61), (2, 5))
    ]
    recipe = replace(
        recipe,
        data=replace(recipe.data, train=(corpora[0],), valid=(corpora[1],), test=()),
        tokenizer=replace(recipe.tokenizer, vocab_size=448),
        # As deep as the paper's and of its kind, but narrow: 44 million parameters would learn no more in three steps.
        model=replace(recipe.model, d_model=32, d_ff=64),
        train=replace(recipe.train, max_steps=3, validate_steps=1, batch_tokens=256, precision="float32"),
    )
    result = run_small(recipe, tmp_path / "model")
    assert result.step == 3
    assert [score["metric"] for score in result.scores] == ["BLEU", "chrF2"]
