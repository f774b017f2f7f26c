"""`dragoman info`: what a model folder holds."""

import json
from pathlib import Path

from click.testing import CliRunner

from dragoman.cli.info import command
from dragoman.errors import BundleError
from tiny_bundle import write_tiny_bundle

SCORECARD = {
    "scores": [{"metric": "BLEU", "score": 41.26, "signature": "nrefs:1|case:mixed", "on": "test, 3 pairs"}],
    "data": [{"name": "pairs.tsv", "pairs": 12345, "sha256": "0123456789abcdef", "licence": "CC-BY 2.0"}],
    "command": "dragoman train pairs.tsv",
    "minutes": 7.5,
}


def test_the_facts_are_printed_a_line_each(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "model", directions=("fr-en", "en-fr"), scorecard=SCORECARD)
    output = CliRunner().invoke(command, [str(tmp_path / "model")]).output
    for line in (
        f"model       {tmp_path / 'model'}",
        "translates  fr to en, en to fr",
        "shape       2 encoder and 3 decoder layers, width 22, 2 heads, feed-forward 37, 331 pieces",
        "search      beam 4, length penalty 0.6",
        "score       BLEU 41.3 (test, 3 pairs) (nrefs:1|case:mixed)",
        "data        pairs.tsv, 12,345 pairs, CC-BY 2.0, sha256 0123456789ab",
        "command     dragoman train pairs.tsv",
        "training    7.5 minutes",
    ):
        assert line in output.splitlines()
    assert "file        model.safetensors 1" in output
    assert "in float32" in output


def test_json_holds_it_all(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "model", scorecard=SCORECARD)
    facts = json.loads(CliRunner().invoke(command, [str(tmp_path / "model"), "--json"]).output)
    assert facts["directions"] == ["fr-en"]
    assert facts["parameters"] == bundle.num_parameters
    assert facts["model"]["d_ff"] == 37
    assert facts["weights"] == {"dtype": "float32", "sha256": bundle.weights_hash()}
    assert facts["scores"] == SCORECARD["scores"]
    assert facts["files"]["model.safetensors"] == bundle.weights_bytes
    assert set(facts["files"]) == {"README.md", "config.json", "model.safetensors", "scorecard.json", "tokenizer.json"}


def test_a_bare_bundle_leaves_out_what_is_not_known(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "model")
    output = CliRunner().invoke(command, [str(tmp_path / "model")]).output
    assert not any(line.startswith(("score", "data", "licence", "command")) for line in output.splitlines())


def test_what_is_no_model_is_told(tmp_path: Path) -> None:
    error = CliRunner().invoke(command, [str(tmp_path)]).exception
    assert isinstance(error, BundleError)
    assert str(error) == f"{tmp_path} lacks config.json, so it is not a whole model folder: copy or train it again"
