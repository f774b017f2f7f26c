"""Where embeddings begin: words near their translations, rows of unit length, the rest drawn."""

import json
from collections.abc import Sequence
from itertools import product
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_runs import run_small, small_recipe, weights, write_corpus

from dragoman.text.dataset import PairIds
from dragoman.train import neighbours
from dragoman.train.neighbours import neighbouring

END, FIRST, WORDS = 2, 3, 23
VOCABULARY = FIRST + 2 * WORDS + 5
"""The last five are in no pair."""


class Pairs:
    """Ids as a mixture has them. Word w is FIRST + w to the left, and that many again further on to the right."""

    def __init__(self, sentences: Sequence[Sequence[int]]) -> None:
        self.pairs = [
            PairIds(
                np.array([*(FIRST + word for word in words), END], np.uint16),
                np.array([*(FIRST + WORDS + word for word in reversed(words)), END], np.uint16),
            )
            for words in sentences
        ]

    def __len__(self) -> int:
        return len(self.pairs)

    def pair(self, index: int) -> PairIds:
        return self.pairs[index]


def sentences(number: int, seed: int = 0) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    return [generator.integers(0, WORDS, generator.integers(1, 7)).tolist() for _ in range(number)]


def begin(pairs: Pairs, d_model: int = 17, seed: int = 1) -> torch.Tensor:
    return neighbouring(pairs, VOCABULARY, d_model, seed)  # type: ignore[arg-type]


def test_the_nearest_of_a_word_is_its_translation() -> None:
    vectors_VD = F.normalize(begin(Pairs(sentences(997))))
    likeness_VV = vectors_VD @ vectors_VD.T
    likeness_VV.fill_diagonal_(-1)
    nearest_V = likeness_VV.argmax(1)
    for word in range(WORDS):
        assert nearest_V[FIRST + word] == FIRST + WORDS + word
        assert nearest_V[FIRST + WORDS + word] == FIRST + word


@pytest.mark.parametrize("d_model", [5, 17, 89])
def test_rows_are_about_as_long_as_drawn_ones(d_model: int) -> None:
    lengths_V = begin(Pairs(sentences(499)), d_model).norm(dim=1)
    assert 0.8 < lengths_V.mean() < 1.2


def test_pieces_that_say_nothing_of_their_company_are_drawn() -> None:
    one, other = (begin(Pairs(sentences(499, seed))) for seed in (3, 5))
    drawn = [0, 1, END, *range(VOCABULARY - 5, VOCABULARY)]
    torch.testing.assert_close(one[drawn], other[drawn])
    assert not torch.allclose(one[FIRST], other[FIRST])
    assert len({tuple(row.tolist()) for row in one}) == VOCABULARY


def test_the_same_seed_gives_the_same_and_nobody_elses_draws_change() -> None:
    pairs = Pairs(sentences(199))
    torch.manual_seed(7)
    first = begin(pairs)
    drawn_after = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), drawn_after)
    assert torch.equal(begin(pairs), first)
    assert not torch.equal(begin(pairs, seed=2), first)


@pytest.mark.parametrize(("at_once", "company"), [(4096, 4096), (7, 4096), (7, 11)])
def test_association_is_what_counting_pair_by_pair_gives(
    monkeypatch: pytest.MonkeyPatch, at_once: int, company: int
) -> None:
    monkeypatch.setattr(neighbours, "AT_ONCE", at_once)
    monkeypatch.setattr(neighbours, "MOST_COMPANY", company)
    pairs = Pairs(sentences(53))
    sets = [{*map(int, source), *map(int, target)} for source, target in pairs.pairs]
    count = {piece: sum(piece in met for met in sets) for piece in range(VOCABULARY)}
    columns = sorted(count, key=lambda piece: (-count[piece], piece))[:company]
    count_V, pmi_VJ = neighbours._association(pairs, VOCABULARY)  # type: ignore[arg-type]
    assert count_V.tolist() == list(count.values())
    assert pmi_VJ.shape == (VOCABULARY, min(company, VOCABULARY))
    for piece, (column, other) in product(range(VOCABULARY), enumerate(columns)):
        both = sum({piece, other} <= met for met in sets)
        wanted = max(0.0, log(53 * both / (count[piece] * count[other]))) if both else 0.0
        assert pmi_VJ[piece, column].item() == pytest.approx(wanted, abs=1e-5)


def test_of_very_many_pairs_some_from_all_over_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MOST_PAIRS", 100)
    many = Pairs(sentences(299))
    some = Pairs([])
    some.pairs = many.pairs[::3]
    assert torch.equal(begin(many), begin(some))


@pytest.mark.parametrize("shared", [True, False])
def test_a_run_begins_with_neighbours_unless_it_is_told_to_draw(tmp_path: Path, shared: bool) -> None:
    def after_a_step_of_nothing(start: str) -> dict[str, torch.Tensor]:
        still = {"embedding_start": start, "max_steps": 1, "validate_steps": 1, "learning_rate": 1e-9}
        recipe = small_recipe(write_corpus(tmp_path, 97), model={"share_embeddings": shared}, **still)
        run_small(recipe, tmp_path / start)
        return {name: torch.tensor(value) for name, value in weights(tmp_path / start).items()}

    near, drawn = after_a_step_of_nothing("neighbours"), after_a_step_of_nothing("random")
    assert near.keys() == drawn.keys()
    for name, value in near.items():
        assert ("embedding" in name) != torch.allclose(value, drawn[name], atol=1e-6), name


def test_a_model_that_goes_on_keeps_its_embeddings_and_their_rate(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, 97)
    run_small(small_recipe(corpus, max_steps=3), tmp_path / "base")
    run_small(small_recipe(corpus, max_steps=1, learning_rate=1e-9), tmp_path / "on", init=str(tmp_path / "base"))
    before, after = weights(tmp_path / "base"), weights(tmp_path / "on")
    for name, value in before.items():
        np.testing.assert_allclose(after[name], value, atol=1e-6)
    plan = json.loads((tmp_path / "on" / "run" / "run.json").read_text(encoding="utf-8"))["plan"]
    assert plan["recipe"]["train"]["embedding_rate"] == 1.0
