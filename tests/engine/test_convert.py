"""Conversion to CTranslate2: once, whole, for every shape, and refused where it would spoil the model."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import Bundle, state_to_weights
from dragoman.engine.convert import convert
from dragoman.engine.ctranslate2_engine import CTranslate2Engine
from dragoman.engine.probe import probe_sources
from dragoman.engine.spec import quantise, sinusoid
from dragoman.errors import BundleError, ConfigError
from dragoman.model.position import Position
from dragoman.recipe import SearchConfig
from tiny_bundle import tiny_config, tiny_model, tiny_tokenizer, write_tiny_bundle


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    return


def test_a_second_conversion_is_found_in_the_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bundle = write_tiny_bundle(tmp_path / "model")
    with caplog.at_level(logging.INFO, logger="dragoman.engine"):
        first = convert(bundle)
        assert "converting" in caplog.text
        caplog.clear()
        assert convert(Bundle.open(bundle.path)) == first
        assert "converting" not in caplog.text
    assert tmp_path / "cache" in first.parents


def test_everything_that_matters_is_in_the_key(tmp_path: Path) -> None:
    first = write_tiny_bundle(tmp_path / "first")
    other_weights = write_tiny_bundle(tmp_path / "weights", seed=2)
    other_shape = replace(first, model_config=replace(first.model_config, position_base=9_973.0))
    folders = {convert(first), convert(first, "float32"), convert(other_weights), convert(other_shape)}
    assert len(folders) == 4


def test_the_conversion_says_how_near_it_is_to_float32(tmp_path: Path) -> None:
    folder = convert(write_tiny_bundle(tmp_path / "model"))
    parity = json.loads((folder / "probe.json").read_text(encoding="utf-8"))
    assert parity["num_sentences"] == 24
    assert 0.5 < parity["token_agreement"] <= 1
    assert 0 < parity["score_difference"] < 0.2
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "model.bin", "probe.json", "shared_vocabulary.json",
    ]  # fmt: skip


def test_samples_of_the_scorecard_are_probed_too(tmp_path: Path) -> None:
    samples = [{"source": "Baceba dila.", "target": "x"}, {"target": "no source"}, {"source": "La " * 200}]
    bundle = write_tiny_bundle(tmp_path / "model", languages=("en", "fr"), scorecard={"samples": samples})
    sources = probe_sources(bundle)
    assert len(sources) == 26
    ids = bundle.tokenizer.ids_batch(["Baceba dila."])[0]
    tag = bundle.tokenizer.language_id("en")
    assert sources[24] == [str(id) for id in (tag, *ids, bundle.tokenizer.end_id)]
    assert max(map(len, sources)) == len(sources[25]) == bundle.model_config.max_length


def test_a_model_that_int8_spoils_is_refused_and_float32_is_not(tmp_path: Path) -> None:
    config = tiny_config()
    weights = state_to_weights(tiny_model(config))
    for name, array in weights.items():
        if name.endswith(("w_o.weight", "w_2.weight")):
            # The same for every output, so the norm takes it away; but it leaves the other weights no steps.
            array[:, 0] = 300.0
    bundle = Bundle.write(
        tmp_path / "model", model_config=config, search=SearchConfig(), tokenizer=tiny_tokenizer(), weights=weights,
        directions=["fr-en"],
    )  # fmt: skip
    message = (
        r"^int8 changes this model's scores by \d+\.\d\d a piece, at most 0\.3 is good: use --compute-type float32"
    )
    with pytest.raises(BundleError, match=message):
        convert(bundle)
    assert list((tmp_path / "cache" / "ctranslate2").iterdir()) == []
    assert (convert(bundle, "float32") / "model.bin").exists()


def test_damaged_weights_are_not_converted(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "model")
    path = bundle.path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(BundleError, match="the file is damaged, copy it again"):
        convert(bundle)


def test_an_unknown_compute_type_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown compute type 'int9': did you mean 'int8'"):
        convert(write_tiny_bundle(tmp_path / "model"), "int9")  # type: ignore[arg-type]


def test_converting_and_translating_load_no_torch(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "model")
    code = (
        "import sys; from dragoman.translator import load; t = load(sys.argv[1]); t.translate('Baceba dila.', "
        "align=True, alternatives=2); print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    environment = {**os.environ, "DRAGOMAN_CACHE": str(tmp_path / "fresh")}
    command = [sys.executable, "-c", code, str(bundle.path)]
    for _ in range(2):  # converting, and then from the cache
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("position", ["sinusoid", "sinusoid-halves"])
def test_positions_are_those_of_the_torch_model(position: str) -> None:
    config = tiny_config(position=position, position_base=997.0)
    np.testing.assert_array_equal(sinusoid(config), Position(config).table_TD.numpy())


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 11))
def test_quantised_weights_are_near_and_never_large_enough_to_overflow(seed: int, rows: int, columns: int) -> None:
    draw = np.random.default_rng(seed)
    weight = (draw.normal(size=(rows, columns)) * 10.0 ** draw.integers(-25, 30, (rows, 1))).astype(np.float32)
    weight[0] = 0.0
    whole, scale = quantise(weight)
    # Two products of an unsigned activation and a weight, added in 16 bits.
    assert 2 * 255 * np.abs(whole.astype(int)).max() < 2**15
    steps = np.abs(weight).max(axis=1, keepdims=True) / 64
    assert np.all(np.abs(whole / scale[:, None].astype(np.float64) - weight) <= 0.501 * steps)


@pytest.mark.parametrize("damage", ["gone", "cut short"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    bundle = write_tiny_bundle(tmp_path / "model")
    weights = convert(bundle) / "model.bin"
    whole = weights.read_bytes()
    weights.unlink() if damage == "gone" else weights.write_bytes(whole[: len(whole) // 2])
    CTranslate2Engine.open(bundle, workers=1)
    assert weights.read_bytes() == whole
    assert "is damaged" in caplog.text
