"""The list of translators in the box."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.bundle import box
from dragoman.cli.models import command
from tiny_bundle import write_tiny_bundle


def test_the_models_in_the_box_are_listed_with_their_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [
        {"metric": "BLEU", "score": 12.34, "on": "test", "signature": "s"},
        {"metric": "TER", "score": 56.78, "on": "test", "signature": "s"},
    ]
    bundle = write_tiny_bundle(tmp_path / "mine", directions=("fr-en", "en-fr"), scorecard={"scores": scores})
    monkeypatch.setattr(box, "BOX", tmp_path)
    shown = CliRunner().invoke(command).output
    for text in ("mine", "fr to en", "en to fr", f"{bundle.num_parameters:,}", "12.3 (test)"):
        assert text in shown
    assert "56.8" not in shown
    (row,) = json.loads(CliRunner().invoke(command, ["--json"]).output)
    assert row["directions"] == ["fr-en", "en-fr"]
    assert row["scores"] == scores


def test_an_empty_box_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path)
    assert CliRunner().invoke(command).output == "the box is empty: train a model, and name its folder with --model\n"
