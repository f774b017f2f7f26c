"""Both engines do the same: CTranslate2 in float32 finds what the reference finds."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.engine.auto import AutoEngine, open_engine
from dragoman.engine.batching import plan_batches
from dragoman.engine.ctranslate2_engine import CTranslate2Engine
from dragoman.engine.engine import DecodeOptions, Demand, Engine, Output, Sampling, make_output
from dragoman.engine.torch_engine import TorchEngine
from dragoman.errors import ConfigError, LengthError, MissingExtraError
from dragoman.recipe import SearchConfig
from tiny_bundle import write_tiny_bundle

END = 2
SHAPES: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre, rms, swiglu": {"norm_order": "pre", "norm": "rms", "activation": "swiglu"},
    "all options": {
        "attention_bias": True, "output_bias": True, "share_embeddings": False, "position": "learned",
        "activation": "gelu",
    },
    "narrow keys": {"d_k": 5, "d_v": 11, "position": "sinusoid-halves", "norm_order": "pre"},
    "narrow values": {"d_k": 13, "d_v": 7, "activation": "swish", "norm": "rms", "decoder_layers": 1},
}  # fmt: skip


def random_sources(count: int, seed: int = 1) -> list[list[int]]:
    draw = np.random.default_rng(seed)
    return [[*map(int, draw.integers(11, 331, draw.integers(1, 19))), END] for _ in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(autouse=True)
def _own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(folder / "cache"))
    return


@functools.cache
def engines(folder: Path, name: str = "the paper's") -> tuple[CTranslate2Engine, TorchEngine]:
    bundle = write_tiny_bundle(folder / name, **SHAPES[name])
    return CTranslate2Engine.open(bundle, "float32", workers=1), TorchEngine.open(bundle)


def options(beam: int, *, alpha: float = 0.6, num_best: int = 1, **changes: Any) -> DecodeOptions:
    search = SearchConfig(beam=beam, length_penalty=alpha, extra_length=7, **changes)
    return DecodeOptions(search=search, num_best=num_best)


def same_share(first: list[list[Output]], second: list[list[Output]]) -> float:
    """The share of sources whose best translations are the same; their scores must then be so too."""
    same = [one[0].ids == other[0].ids for one, other in zip(first, second, strict=True)]
    for one, other, is_same in zip(first, second, same, strict=True):
        if is_same:
            assert one[0].score == pytest.approx(other[0].score, abs=5e-3)
            assert one[0].finished == other[0].finished
    return sum(same) / len(same)


# The same translations


@pytest.mark.parametrize("name", SHAPES)
def test_greedy_translations_are_the_same(folder: Path, name: str) -> None:
    fast, reference = engines(folder, name)
    sources = random_sources(107)
    found = reference.translate_ids(sources, options(1))
    assert len({outputs[0].ids for outputs in found}) > 20
    assert same_share(fast.translate_ids(sources, options(1)), found) > 0.99


@pytest.mark.parametrize("alpha", [0.6, 0.0, 1.0])
@pytest.mark.parametrize("name", SHAPES)
def test_the_beam_s_translations_are_the_same(folder: Path, name: str, alpha: float) -> None:
    fast, reference = engines(folder, name)
    sources = random_sources(53)
    found = reference.translate_ids(sources, options(4, alpha=alpha))
    assert same_share(fast.translate_ids(sources, options(4, alpha=alpha)), found) > 0.98


def test_finished_and_unfinished_translations_were_both_compared(folder: Path) -> None:
    finished = {
        outputs[0].finished
        for name in SHAPES
        for outputs in engines(folder, name)[1].translate_ids(random_sources(53), options(4))
    }
    assert finished == {True, False}


def test_the_n_best_are_the_same_in_order(folder: Path) -> None:
    fast, reference = engines(folder, "pre, rms, swiglu")
    sources = random_sources(53)
    wanted = options(4, num_best=3)
    first, second = (
        [[output.ids for output in outputs] for outputs in engine.translate_ids(sources, wanted)]
        for engine in (fast, reference)
    )
    assert np.mean([one == other for one, other in zip(first, second, strict=True)]) > 0.95
    assert max(len(outputs) for outputs in second) == 3


def test_the_attention_is_the_same(folder: Path) -> None:
    for name in SHAPES:
        fast, reference = engines(folder, name)
        sources, targets = random_sources(23), [source[:-1] for source in random_sources(23, seed=2)]
        targets[7] = []
        for one, other, source, target in zip(
            fast.attend(sources, targets), reference.attend(sources, targets), sources, targets, strict=True
        ):
            assert one.shape == other.shape == (len(target), len(source))
            np.testing.assert_allclose(one, other, atol=1e-4)
            np.testing.assert_allclose(one.sum(axis=1), 1.0, atol=1e-5)


def test_a_greedy_prefix_is_kept_and_counts(folder: Path) -> None:
    fast, reference = engines(folder)
    sources = random_sources(29)
    demands = [
        Demand(prefix=tuple(source[:-1][:2])) if number % 3 else Demand() for number, source in enumerate(sources)
    ]
    found = fast.translate_ids(sources, options(1), demands)
    for outputs, demand in zip(found, demands, strict=True):
        assert outputs[0].ids[: len(demand.prefix)] == demand.prefix
    assert same_share(found, reference.translate_ids(sources, options(1), demands)) == 1.0


def test_a_prefix_is_kept_by_a_beam(folder: Path) -> None:
    fast, _ = engines(folder)
    sources = random_sources(29)
    demands = [Demand(prefix=tuple(source[:-1][:2])) for source in sources]
    for outputs, demand in zip(fast.translate_ids(sources, options(4), demands), demands, strict=True):
        assert outputs[0].ids[: len(demand.prefix)] == demand.prefix
        assert outputs[0].log_probability > -1e3


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_n_grams_do_not_repeat_when_they_may_not(folder: Path, engine: str) -> None:
    chosen = dict(zip(("ctranslate2", "torch"), engines(folder, "all options"), strict=True))[engine]
    sources = random_sources(13)
    repeats = []
    for forbid in (0, 2):
        found = chosen.translate_ids(sources, options(3, no_repeat_ngram=forbid))
        pairs = [list(zip(outputs[0].ids, outputs[0].ids[1:], strict=False)) for outputs in found]
        repeats.append(sum(len(own) - len(set(own)) for own in pairs))
    assert repeats[0] > 0
    assert repeats[1] == 0


def test_no_translation_is_longer_than_its_source_allows(folder: Path) -> None:
    for engine in engines(folder, "all options"):
        sources = random_sources(31)
        for source, outputs in zip(sources, engine.translate_ids(sources, options(4, num_best=4)), strict=True):
            assert all(len(output.ids) <= len(source) + 7 for output in outputs)


def test_a_translation_does_not_depend_on_its_batch(folder: Path) -> None:
    sources = random_sources(37)
    for engine in engines(folder):
        together = engine.translate_ids(sources, options(4))
        alone = [engine.translate_ids([source], options(4))[0] for source in sources]
        assert same_share(together, alone) == 1.0


def test_workers_and_batches_change_nothing(folder: Path) -> None:
    bundle = write_tiny_bundle(folder / "workers")
    one = CTranslate2Engine.open(bundle, "float32", workers=1)
    several = CTranslate2Engine(one._folder, bundle.model_config, "float32", workers=3, batch_tokens=41)
    sources = random_sources(59)
    pending = [several.submit(sources[part::2], options(4)) for part in range(2)]
    merged: list[list[Output]] = [[] for _ in sources]
    merged[0::2], merged[1::2] = (each.results() for each in pending)
    assert same_share(one.translate_ids(sources, options(4)), merged) == 1.0


# Samples


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_a_seed_repeats_its_samples_and_another_does_not(folder: Path, engine: str) -> None:
    chosen = dict(zip(("ctranslate2", "torch"), engines(folder), strict=True))[engine]
    sources = random_sources(11)
    first, again, other = (
        chosen.translate_ids(sources, DecodeOptions(num_best=2, sampling=Sampling(seed=seed))) for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other
    assert {len(outputs) for outputs in first} == {2}


def test_the_samples_of_a_source_do_not_depend_on_the_others(folder: Path) -> None:
    fast, _ = engines(folder)
    sources = random_sources(5)
    drawing = DecodeOptions(num_best=2, sampling=Sampling(seed=5))
    together = fast.translate_ids(sources, drawing)
    for source, outputs in zip(sources, together, strict=True):
        (alone,) = fast.translate_ids([source], drawing)
        assert [output.ids for output in alone] == [output.ids for output in outputs]


def test_equal_sources_are_drawn_each_for_itself(folder: Path) -> None:
    fast, _ = engines(folder)
    first, other, again = fast.translate_ids(random_sources(2) + random_sources(1), DecodeOptions(sampling=Sampling()))
    assert first != other
    assert first != again


def test_the_score_of_a_sample_is_the_model_s_own(folder: Path) -> None:
    fast, _ = engines(folder)
    (source,) = random_sources(1)
    tame = Sampling(temperature=0.5, top_k=7, top_p=0.9)
    outputs = fast.translate_ids([source], DecodeOptions(num_best=5, sampling=tame))[0]
    for output in outputs:
        expected = sum(fast.score_ids([source], [output.ids])[0][: len(output.ids) + output.finished])
        # Batches of other sizes round float32 sums in another order.
        assert output.log_probability == pytest.approx(expected, rel=1e-5)
        assert output == make_output(output.ids, output.log_probability, output.finished, 0.6)
    assert [output.score for output in outputs] == sorted((output.score for output in outputs), reverse=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0, expected a number above 0"),
        ({"top_k": -1}, "top_k is -1, expected at least 0"),
        ({"top_p": 1.5}, "top_p is 1.5, expected a share above 0, up to 1"),
    ],
)
def test_impossible_sampling_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sampling(**settings)


# What is refused


def test_a_source_that_does_not_fit_is_refused(folder: Path) -> None:
    for engine in engines(folder):
        with pytest.raises(LengthError, match="source has 71 pieces, the model takes at most 67: split the text"):
            engine.translate_ids([[11] * 70 + [END]], options(1))
        with pytest.raises(LengthError, match="a source has no pieces"):
            engine.translate_ids([[]], options(1))


def test_options_and_demands_are_checked(folder: Path) -> None:
    with pytest.raises(ConfigError, match="num_best is 5, the beam holds 4: take a beam of at least 5"):
        options(4, num_best=5)
    with pytest.raises(ConfigError, match="num_best is 0, expected at least 1"):
        options(4, num_best=0)
    for engine in engines(folder):
        with pytest.raises(ConfigError, match="demands has 2 entries for 1 sources: give one a source"):
            engine.translate_ids([[11, END]], options(1), [Demand(), Demand()])


def test_an_unknown_engine_is_named_with_the_nearest(folder: Path) -> None:
    bundle = write_tiny_bundle(folder / "unknown")
    with pytest.raises(ConfigError, match="unknown engine 'ctranslate': did you mean 'ctranslate2'"):
        open_engine(bundle, "ctranslate")  # type: ignore[arg-type]


# The choice of an engine


def test_phrases_that_must_appear_are_left_to_torch(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = open_engine(write_tiny_bundle(folder / "auto"), workers=1)
    assert (engine.name, engine.compute_type) == ("ctranslate2", "int8")
    demands = [Demand(must=((101, 103),), must_not=((107,),))]
    with caplog.at_level("INFO", logger="dragoman.engine"):
        (outputs,) = engine.translate_ids(random_sources(1), options(4), demands)
    assert "CTranslate2 lacks phrases that must appear: the torch engine does that" in caplog.text
    assert (101, 103) in zip(outputs[0].ids, outputs[0].ids[1:], strict=False)
    assert 107 not in outputs[0].ids


def test_without_torch_the_lack_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(write_tiny_bundle(folder / "alone"), workers=1)
    monkeypatch.setattr("dragoman.engine.auto.has_torch", lambda: False)
    demands = [Demand(must=((101,),))]
    assert engine.lacks(options(4), demands) == "phrases that must appear"
    assert engine.lacks(options(4), [Demand(must_not=((101,),))]) == "phrases that must not appear"
    assert engine.lacks(options(4)) == ""
    with pytest.raises(MissingExtraError, match="lacks phrases that must appear, and torch is not installed"):
        engine.translate_ids(random_sources(1), options(4), demands)


def test_each_name_opens_its_engine(folder: Path) -> None:
    bundle = write_tiny_bundle(folder / "names")
    opened: dict[str, Engine] = {
        "torch": open_engine(bundle, "torch"), "ctranslate2": open_engine(bundle, "ctranslate2", "float32", 1),
    }  # fmt: skip
    assert {name: engine.name for name, engine in opened.items()} == {"torch": "torch", "ctranslate2": "ctranslate2"}
    assert {engine.compute_type for engine in opened.values()} == {"float32"}
    assert isinstance(open_engine(bundle, workers=1), AutoEngine)


# Batches


def test_batches_keep_to_their_budget_and_lose_nothing() -> None:
    draw = np.random.default_rng(3)
    lengths = [int(length) for length in draw.integers(1, 61, 211)]
    batches = plan_batches(lengths, 127)
    assert sorted(place for batch in batches for place in batch) == list(range(211))
    for batch in batches:
        assert len(batch) * max(lengths[place] for place in batch) <= 127
    longest = [lengths[batch[0]] for batch in batches]
    assert longest == sorted(longest, reverse=True)


def test_few_sources_are_shared_out_and_a_long_one_stands_alone() -> None:
    assert [len(batch) for batch in plan_batches([5] * 8, 1000, workers=2)] == [4, 4]
    assert plan_batches([3, 300, 3], 100) == [[1], [0, 2]]
    assert plan_batches([], 100, workers=3) == []


def test_asked_by_name_for_what_it_lacks_ctranslate2_says_who_has_it(tmp_path: Path) -> None:
    engine = open_engine(write_tiny_bundle(tmp_path / "model"), "ctranslate2", "float32", 1)
    with pytest.raises(ConfigError, match="CTranslate2 lacks phrases that must appear: use the torch engine"):
        engine.translate_ids([[5, 2]], DecodeOptions(search=SearchConfig()), [Demand(must=((7,),))])
