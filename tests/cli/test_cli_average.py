"""`dragoman average`: one model of several."""

from pathlib import Path

import numpy as np
from click.testing import CliRunner

from dragoman.bundle import Bundle
from dragoman.cli import dragoman
from dragoman.errors import ConfigError
from tiny_bundle import write_tiny_bundle


def test_the_mean_is_written_and_its_card_says_how(tmp_path: Path) -> None:
    ours = [write_tiny_bundle(tmp_path / str(seed), seed=seed) for seed in (3, 5)]
    arguments = ["average", *(str(one.path) for one in ours), "--output", str(tmp_path / "mean")]
    result = CliRunner().invoke(dragoman, arguments, catch_exceptions=False)
    assert result.output.startswith(f"{tmp_path / 'mean'}: the mean of 2 models, ")
    mean = Bundle.open(tmp_path / "mean")
    name = "encoder.blocks.1.feed_forward.w_1.bias"
    np.testing.assert_allclose(mean.weights()[name], sum(one.weights()[name] for one in ours) / 2, rtol=1e-6)
    assert mean.scorecard["command"] == " ".join(["dragoman", *arguments])


def test_one_model_is_too_few(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "one")
    arguments = ["average", str(tmp_path / "one"), "--output", str(tmp_path / "mean")]
    assert isinstance(CliRunner().invoke(dragoman, arguments).exception, ConfigError)
