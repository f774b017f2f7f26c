"""An imported model is one of ours: it is translated with, evaluated, and gone on from."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner

from dragoman.bundle import Bundle
from dragoman.cli.evaluate import command as evaluate
from dragoman.cli.translate import command as translate
from dragoman.interop.marian_import import import_marian
from dragoman.recipe import CorpusConfig, DataConfig, Recipe, SearchConfig, TrainConfig
from dragoman.train.request import Request
from dragoman.train.run import train_model
from interop.marian_models import texts, write_marian


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))


def write_pairs(path: Path) -> str:
    lines = zip(texts(199, seed=3), texts(199, seed=4), strict=True)
    path.write_text("".join(f"{source}\t{target}\n" for source, target in lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("separate", [False, True])
def test_training_goes_on_from_an_imported_model(tmp_path: Path, separate: bool) -> None:
    write_marian(tmp_path / "marian", separate=separate)
    base = import_marian(tmp_path / "marian", tmp_path / "base")
    corpus = CorpusConfig(path=write_pairs(tmp_path / "pairs.fr-en.tsv"))
    recipe = Recipe(
        data=DataConfig(train=(corpus,), valid_pairs=13),
        train=TrainConfig(max_steps=4, validate_steps=4, batch_tokens=199, warmup_steps=2, precision="float32"),
        search=SearchConfig(beam=1),
    )
    with (
        mock.patch("dragoman.train.run.measure_operations_per_second", return_value=1e10),
        mock.patch("dragoman.train.journal.draw_curves"),
    ):
        result = train_model(Request(recipe=recipe, output=tmp_path / "tuned", init=str(tmp_path / "base")))
    assert result.step == 4
    tuned = Bundle.open(tmp_path / "tuned")
    assert tuned.tokenizer.fingerprint() == base.tokenizer.fingerprint()
    assert tuned.model_config.num_source_pieces == base.model_config.num_source_pieces
    name = "encoder.blocks.0.feed_forward.w_1.weight"
    assert not np.array_equal(tuned.weights()[name], base.weights()[name])


def test_an_imported_model_translates_and_is_evaluated(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "ours")
    model = ["--model", str(tmp_path / "ours"), "--compute-type", "float32"]
    translated = CliRunner().invoke(translate, [*model, "Bace di."])
    assert (translated.exit_code, translated.exception) == (0, None)
    scored = CliRunner().invoke(evaluate, [*model, "--test", write_pairs(tmp_path / "test.fr-en.tsv"), "--limit", "17"])
    assert (scored.exit_code, scored.exception) == (0, None)
    assert "BLEU" in scored.output
