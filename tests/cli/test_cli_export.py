"""`dragoman export`: a model for elsewhere."""

import json
from pathlib import Path

from click.testing import CliRunner

from dragoman.cli import dragoman
from dragoman.cli.export import describe
from dragoman.errors import ConfigError
from dragoman.interop.parity import Parity
from tiny_bundle import write_tiny_bundle


def test_an_export_says_how_much_it_agrees(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "ours")
    arguments = ["export", str(tmp_path / "ours"), "--format", "ctranslate2", "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(dragoman, arguments)
    assert result.output.startswith(f"{tmp_path / 'out'}: 100.0 % of ")
    assert json.loads((tmp_path / "out" / "parity.json").read_text(encoding="utf-8"))["token_agreement"] == 1.0
    assert {"model.bin", "tokenizer.json", "README.md"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_what_cannot_be_expressed_is_told(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "ours", norm="rms")
    arguments = ["export", str(tmp_path / "ours"), "--format", "marian", "--output", str(tmp_path / "out")]
    error = CliRunner().invoke(dragoman, arguments).exception
    assert isinstance(error, ConfigError)
    assert "Marian cannot express this model: it has RMSNorm" in str(error)


def test_the_line_has_what_was_measured() -> None:
    parity = Parity(
        num_sentences=3,
        num_pieces=17,
        token_agreement=0.995,
        largest_logit_difference=0.00012,
        tokenizer_agreement=0.99,
        bleu=30.0,
        exported_bleu=29.87,
        bleu_difference=-0.13,
    )
    assert describe(parity) == (
        "99.5 % of 17 pieces the same, logits differ by at most 0.00012, "
        "99.0 % of sentences cut into the same pieces, BLEU 29.9, -0.13"
    )
