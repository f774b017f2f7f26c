"""Several models as one: the first proposes and the mean of all decides, or all are asked at every step."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dragoman.bundle import Bundle
from dragoman.engine.ctranslate2_engine import CTranslate2Engine
from dragoman.engine.engine import DecodeOptions, Sampling
from dragoman.engine.ensemble import Ensemble, open_ensemble
from dragoman.engine.torch_engine import TorchEngine
from dragoman.errors import ConfigError
from dragoman.recipe import SearchConfig
from dragoman.search import phrases
from dragoman.search.examples import Examples
from dragoman.search.length import length_penalty
from dragoman.translator import load
from tiny_bundle import tiny_texts, write_tiny_bundle

END, ALPHA = 2, 0.6
OPTIONS = DecodeOptions(search=SearchConfig(beam=5, length_penalty=ALPHA, extra_length=7), num_best=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ensemble")


@pytest.fixture(autouse=True)
def _own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(folder / "cache"))
    return


@pytest.fixture(scope="module")
def bundles(folder: Path) -> list[Bundle]:
    return [write_tiny_bundle(folder / f"seed-{seed}", seed=seed) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def engines(bundles: list[Bundle]) -> list[TorchEngine]:
    return [TorchEngine.open(bundle) for bundle in bundles]


def sources(count: int = 23) -> list[list[int]]:
    draw = np.random.default_rng(1)
    return [[*map(int, draw.integers(11, 331, draw.integers(1, 13))), END] for _ in range(count)]


def test_the_best_of_a_beam_is_what_all_models_find_likeliest_in_the_mean(engines: list[TorchEngine]) -> None:
    whole_beam = DecodeOptions(search=OPTIONS.search, num_best=5)
    proposed = engines[0].translate_ids(sources(), whole_beam)
    judged = Ensemble(engines[0], engines[1:]).translate_ids(sources(), OPTIONS)
    changed = 0
    for source, candidates, outputs in zip(sources(), proposed, judged, strict=True):
        wanted = []
        for candidate in candidates:
            rows = [engine.score_ids([source], [candidate.ids])[0] for engine in engines]
            length = len(candidate.ids) + candidate.finished
            mean = sum(sum(row[:length]) for row in rows) / 3
            wanted.append((mean / length_penalty(length, ALPHA), candidate.ids))
        wanted.sort(reverse=True)
        assert [output.score for output in outputs] == pytest.approx([score for score, _ in wanted[:3]], abs=1e-4)
        assert outputs[0].ids == wanted[0][1]
        changed += outputs[0].ids != candidates[0].ids
    assert changed > 1  # else the judges were not heard


def test_a_model_that_judges_itself_changes_nothing(engines: list[TorchEngine]) -> None:
    alone = engines[0].translate_ids(sources(), OPTIONS)
    twice = Ensemble(engines[0], engines[:1]).translate_ids(sources(), OPTIONS)
    assert [[one.ids for one in some] for some in twice] == [[one.ids for one in some] for some in alone]
    for one, other in zip(twice, alone, strict=True):
        assert [output.score for output in one] == pytest.approx([output.score for output in other], abs=1e-4)


def test_examples_change_the_order_and_not_the_scores(
    engines: list[TorchEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phrases, "WEIGHT", 9.0)  # an untrained model's translations are far from each other
    whole_beam = DecodeOptions(search=OPTIONS.search, num_best=5)
    alone = engines[0].translate_ids(sources(), whole_beam)
    lasts = [(*some[-1].ids, END) if some[-1].finished else some[-1].ids for some in alone]
    examples = Examples(sources(), lasts)
    ranked = Ensemble(engines[0], [], examples, begin_id=1).translate_ids(sources(), whole_beam)
    for before, after in zip(alone, ranked, strict=True):
        scores = {output.ids: output.score for output in before}
        assert {output.ids: output.score for output in after} == pytest.approx(scores, abs=1e-4)
    assert sum(after[0].ids == before[-1].ids for before, after in zip(alone, ranked, strict=True)) > 15


def test_examples_that_are_like_nothing_change_nothing(engines: list[TorchEngine]) -> None:
    alone = engines[0].translate_ids(sources(), OPTIONS)
    ranked = Ensemble(engines[0], [], Examples([[5, END]], [[6, END]]), begin_id=1).translate_ids(sources(), OPTIONS)
    assert [[one.ids for one in some] for some in ranked] == [[one.ids for one in some] for some in alone]


def test_what_is_drawn_is_the_first_model_s(engines: list[TorchEngine]) -> None:
    drawn = DecodeOptions(search=OPTIONS.search, sampling=Sampling(seed=5))
    assert Ensemble(engines[0], engines[1:]).translate_ids(sources(), drawn) == engines[0].translate_ids(
        sources(), drawn
    )


def test_both_engines_score_alike(bundles: list[Bundle], engines: list[TorchEngine]) -> None:
    fast = CTranslate2Engine.open(bundles[0], "float32", workers=1)
    targets = [source[:-1][::-1] for source in sources()]
    for ours, theirs in zip(fast.score_ids(sources(), targets), engines[0].score_ids(sources(), targets), strict=True):
        assert ours == pytest.approx(theirs, abs=2e-3)


def test_an_ensemble_s_scores_are_the_mean_and_its_attention_the_first_s(engines: list[TorchEngine]) -> None:
    ensemble, targets = Ensemble(engines[0], engines[1:]), [source[:-1] for source in sources(3)]
    rows = [engine.score_ids(sources(3), targets) for engine in engines]
    np.testing.assert_allclose(ensemble.score_ids(sources(3), targets)[1], np.mean([row[1] for row in rows], axis=0))
    first = engines[0].attend(sources(3), targets)
    assert all(map(np.array_equal, ensemble.attend(sources(3), targets), first))
    assert (ensemble.name, ensemble.compute_type, ensemble.lacks(OPTIONS)) == ("torch", "float32", "")


def test_torch_asks_all_models_at_every_step(bundles: list[Bundle], engines: list[TorchEngine]) -> None:
    together = open_ensemble(bundles[0], bundles[1:], "torch", "float32", 1)
    found = together.translate_ids(sources(), OPTIONS)
    judged = Ensemble(engines[0], engines[1:]).translate_ids(sources(), OPTIONS)
    new = 0
    for source, outputs in zip(sources(), found, strict=True):
        target = outputs[0].ids
        probabilities = [np.exp(engine.score_ids([source], [target])[0]) for engine in engines]
        wanted = np.log(np.mean(probabilities, axis=0))
        np.testing.assert_allclose(together.score_ids([source], [target])[0], wanted, rtol=1e-4)
        assert outputs[0].log_probability == pytest.approx(sum(wanted[: len(target) + outputs[0].finished]), abs=1e-3)
        new += target not in [output.ids for output in judged[sources().index(source)]]
    assert new > 1  # what the first model alone would not have proposed
    assert (together.name, together.compute_type, together.lacks(OPTIONS)) == ("torch", "float32", "")


def test_torch_draws_from_all_models(bundles: list[Bundle], engines: list[TorchEngine]) -> None:
    drawn = DecodeOptions(search=OPTIONS.search, sampling=Sampling(seed=5))
    together = open_ensemble(bundles[0], bundles[1:], "torch", "float32", 1)
    assert together.translate_ids(sources(), drawn) != engines[0].translate_ids(sources(), drawn)


def test_a_translator_of_several_models_scores_by_all_of_them(bundles: list[Bundle]) -> None:
    texts = tiny_texts()[:31]
    alone = load(bundles[0].path, compute_type="float32", workers=1)
    together = load(bundles[0].path, compute_type="float32", workers=1, ensemble=[bundles[1].path, bundles[2].path])
    scores = [[one.score for one in translator.translate(texts, guards=False)] for translator in (alone, together)]
    assert all(np.not_equal(*scores))


def test_models_that_do_not_belong_together_are_refused(folder: Path, bundles: list[Bundle]) -> None:
    tagged = write_tiny_bundle(folder / "tagged", languages=("en", "fr"))
    other_way = write_tiny_bundle(folder / "other-way", directions=("en-fr",))
    shorter = write_tiny_bundle(folder / "shorter", max_length=61)
    for other, message in (
        (tagged, "tagged has other pieces than seed-1: an ensemble takes models that were trained with one"),
        (other_way, "other-way does not translate fr-en, as seed-1 does"),
        (shorter, "shorter takes at most 61 pieces, seed-1 67: name the other one first"),
    ):
        with pytest.raises(ConfigError, match=message):
            open_ensemble(bundles[0], [other], "torch", "float32", 1)
