"""One model of several: the mean of their weights, and nothing that would be noise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.bundle import Bundle
from dragoman.bundle.averaging import average
from dragoman.errors import BundleError, ConfigError
from dragoman.text.known_words import KnownWords
from tiny_bundle import write_tiny_bundle


def test_every_weight_is_the_mean(tmp_path: Path) -> None:
    bundles = [write_tiny_bundle(tmp_path / str(seed), seed=seed) for seed in (3, 5, 7)]
    mean = average(bundles, tmp_path / "mean").weights()
    for name, array in mean.items():
        expected = sum(bundle.weights()[name].astype(np.float64) for bundle in bundles) / 3
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-7)
        assert array.dtype == np.float32


def test_the_mean_of_a_model_with_itself_is_the_model(tmp_path: Path) -> None:
    words = KnownWords.collect([("Dila gupo.", "Meni lapo.")] * 5)
    bundle = write_tiny_bundle(tmp_path / "one", known_words=words)
    mean = average([bundle, bundle], tmp_path / "mean")
    assert (mean.directions, mean.search, mean.model_config) == (bundle.directions, bundle.search, bundle.model_config)
    assert mean.tokenizer.fingerprint() == bundle.tokenizer.fingerprint()
    assert mean.known_words == bundle.known_words
    for name, array in mean.weights().items():
        np.testing.assert_array_equal(array, bundle.weights()[name])


def test_the_card_tells_of_all_data_and_forgets_the_scores(tmp_path: Path) -> None:
    score = {"metric": "BLEU", "score": 41.0, "signature": "s", "on": "test"}
    pairs, more = {"name": "pairs.tsv", "pairs": 7}, {"name": "more.tsv", "pairs": 11}
    cards = [
        {"licence": "CC BY 2.0", "data": [pairs], "scores": [score], "minutes": 11.5, "command": "make 1"},
        {"licence": "another", "data": [pairs, more], "scores": [score], "minutes": 34.5, "command": "make 3"},
    ]
    bundles = [
        write_tiny_bundle(tmp_path / str(seed), seed=seed, scorecard=card)
        for seed, card in zip((1, 3), cards, strict=True)
    ]
    mean = average(bundles, tmp_path / "mean", "dragoman average 1 3 --output mean")
    assert mean.scorecard == {
        "licence": "CC BY 2.0",
        "data": [pairs, more],
        "command": "make 1\nmake 3\ndragoman average 1 3 --output mean",
        "minutes": 46.0,
    }
    card = (mean.path / "README.md").read_text(encoding="utf-8")
    assert "\n\n    make 1\n    make 3\n    dragoman average 1 3 --output mean\n\nin 46 minutes.\n" in card
    assert "41.0" not in card


def test_dropout_may_differ(tmp_path: Path) -> None:
    bundles = [write_tiny_bundle(tmp_path / str(share), dropout=share) for share in (0.1, 0.3)]
    assert average(bundles, tmp_path / "mean").model_config.dropout == 0.1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"d_ff": 41}, "two has another shape than one: their weights have no mean"),
        ({"directions": ("de-en",)}, "two translates de-en, one fr-en: average models of the same directions"),
    ],
)
def test_models_without_a_mean_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    bundles = [write_tiny_bundle(tmp_path / "one"), write_tiny_bundle(tmp_path / "two", **changes)]
    with pytest.raises(ConfigError, match=told):
        average(bundles, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_other_pieces_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundles = [write_tiny_bundle(tmp_path / name) for name in ("one", "two")]
    tokenizer = bundles[1].tokenizer
    monkeypatch.setattr(tokenizer, "fingerprint", lambda: "another")
    with pytest.raises(ConfigError, match="two has other pieces than one: average models that were trained on"):
        average(bundles, tmp_path / "mean")


def test_one_model_alone_is_none_to_average(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is nothing to average: name two models or more"):
        average([write_tiny_bundle(tmp_path / "one")], tmp_path / "mean")


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "one")
    before = (tmp_path / "one" / "config.json").read_bytes()
    with pytest.raises(BundleError, match="one is there already: give a new folder with --output"):
        average([bundle, bundle], tmp_path / "one")
    assert Bundle.open(tmp_path / "one")
    assert (tmp_path / "one" / "config.json").read_bytes() == before
