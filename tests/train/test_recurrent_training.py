"""The RNN translator on the same rails: the same commands train, resume, run, score and describe it."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner, Result
from small_runs import run_small, small_recipe, stop_at, translate, weights, write_corpus
from synthetic import make_pairs, write_pairs

from dragoman.bundle import Bundle, expected_shapes, state_to_weights
from dragoman.cli import dragoman
from dragoman.config import PRESETS, ModelConfig
from dragoman.engine.auto import open_engine
from dragoman.engine.engine import DecodeOptions
from dragoman.errors import ConfigError
from dragoman.model.build import build_model
from dragoman.recipe import Recipe, TrainConfig
from dragoman.train.plan import memory_of, operations_per_target_token
from dragoman.translator import load

LOOKS = ("additive", "dot", "none")


def recurrent(look: str = "additive", **changes: Any) -> dict[str, Any]:
    fixed = {"architecture": "recurrent", "num_heads": 1, "encoder_layers": 1, "decoder_layers": 1}
    return {**fixed, "d_model": 29, "d_ff": 31, "d_k": 23, "d_v": 19, "recurrent_attention": look, **changes}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model folder for each way of looking at the source."""
    folder = tmp_path_factory.mktemp("models")
    corpus = write_corpus(folder)
    for look in LOOKS:
        steps = 20 if look == "additive" else 2
        recipe = small_recipe(corpus, model=recurrent(look), max_steps=steps, validate_steps=steps)
        run_small(recipe, folder / look)
    return {look: folder / look for look in LOOKS}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(dragoman, list(map(str, arguments)))


# Training


def test_the_loss_falls(tmp_path: Path) -> None:
    recipe = small_recipe(write_corpus(tmp_path), model=recurrent(dropout=0.1), max_steps=40, learning_rate=0.01)
    run_small(recipe, tmp_path / "model")
    losses = [json.loads(line) for line in (tmp_path / "model" / "training.jsonl").read_text().splitlines()]
    told = [event["loss"] for event in losses if event["event"] == "step"]
    assert told[-1] < 0.7 * told[0]


@pytest.mark.parametrize(
    "more",
    [{}, {"recurrent_cell": "lstm", "share_embeddings": False, "recurrent_attention": "dot", "encoder_layers": 2}],
)
def test_an_interrupted_run_resumes_with_the_same_bits(tmp_path: Path, more: dict[str, Any]) -> None:
    recipe = small_recipe(
        write_corpus(tmp_path), model=recurrent(dropout=0.2, **more), ema_decay=0.9, optimizer="muon", max_steps=15
    )
    run_small(recipe, tmp_path / "whole")
    stopped = run_small(recipe, tmp_path / "model", trackers=[stop_at(10)])
    assert stopped.reason == "interrupted"
    assert run_small(recipe, tmp_path / "model", resume=True).reason == "finished"
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "model")
    assert whole.keys() == resumed.keys()
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)


def test_training_can_go_on_from_a_recurrent_model(models: dict[str, Path], tmp_path: Path) -> None:
    recipe = small_recipe(write_corpus(tmp_path, 53), max_steps=1, validate_steps=1)
    run_small(recipe, tmp_path / "tuned", init=str(models["dot"]))
    assert Bundle.open(tmp_path / "tuned").model_config.recurrent_attention == "dot"


@pytest.mark.parametrize("setting", [{"lora": 2}, {"shard": True}, {"compile": "on"}])
def test_what_only_blocks_can_do_is_refused_before_anything_is_done(setting: dict[str, Any]) -> None:
    name = next(iter(setting))
    with pytest.raises(
        ConfigError, match=f"train.{name} is for the blocks of a Transformer, a recurrent model has none"
    ):
        Recipe(model=PRESETS["rnn"].model, train=TrainConfig(**setting))


def test_a_preset_is_planned_with_its_own_shape(tmp_path: Path) -> None:
    corpus = write_pairs(tmp_path / "pairs.xx-yy.tsv", make_pairs(61))
    with mock.patch("dragoman.train.run.measure_operations_per_second", return_value=1e10):
        for name in ("rnn-attention", "rnn", "rnn-attention-dot"):
            result = run("train", corpus, "--preset", name, "--set", "model.d_ff=64", "--plan", "--json")
            assert result.exit_code == 0, result.exception
            model = json.loads(result.stdout)["recipe"]["model"]
            assert (model["architecture"], model["d_model"], model["d_ff"]) == ("recurrent", 620, 64)
            assert model["recurrent_attention"] == PRESETS[name].model.recurrent_attention


def test_a_plan_counts_each_matrix_once_and_a_larger_model_costs_more() -> None:
    config = ModelConfig(vocab_size=101, share_embeddings=False, **recurrent(d_ff=30))
    matrices = [np.prod(shape) for name, shape in expected_shapes(config).items() if len(shape) == 2]
    read = 101 * 2 * 29  # the two embeddings are looked up, not multiplied
    assert operations_per_target_token(config) == 6 * (sum(matrices) - read)
    wider = ModelConfig(vocab_size=101, share_embeddings=False, **recurrent(d_ff=60))
    assert operations_per_target_token(wider) > operations_per_target_token(config)
    assert operations_per_target_token(config, source_ratio=2.0) > operations_per_target_token(config)
    assert memory_of(wider, 4096) > memory_of(config, 4096)


# The folder


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("look", LOOKS)
def test_a_bundle_knows_the_name_and_shape_of_every_weight(look: str, cell: str, shared: bool, layers: int) -> None:
    more = {"recurrent_cell": cell, "share_embeddings": shared, "encoder_layers": layers}
    config = ModelConfig(vocab_size=101, output_bias=True, **recurrent(look, **more))
    stored = state_to_weights(build_model(config))
    assert {name: array.shape for name, array in stored.items()} == expected_shapes(config)


def test_the_folder_gives_back_the_model_that_was_trained(models: dict[str, Path]) -> None:
    sources = [source for source, _ in make_pairs(7, seed=9)]
    translator = load(models["additive"], engine="torch")
    outputs = [one.text for one in translator.translate(sources, guards=False, split_sentences=False)]
    assert outputs == translate(models["additive"], sources)


@pytest.mark.parametrize(
    ("look", "words"),
    [
        ("additive", "additive attention of width 23"),
        ("dot", "dot-product attention of width 23"),
        ("none", "no attention"),
    ],
)
def test_info_tells_what_kind_of_model_it_is(models: dict[str, Path], look: str, words: str) -> None:
    shape = f"recurrent, 1 encoder layer of 31 GRU units each way, a decoder of 31, {words}, embeddings of width 29, "
    result = run("info", models[look])
    assert f"shape       {shape}" in result.stdout
    assert "one embedding matrix" in result.stdout
    assert shape in (models[look] / "README.md").read_text(encoding="utf-8")
    assert json.loads(run("info", models[look], "--json").stdout)["model"]["architecture"] == "recurrent"


# Who runs it


def test_auto_takes_the_torch_engine_and_says_so(models: dict[str, Path], caplog: pytest.LogCaptureFixture) -> None:
    engine = open_engine(Bundle.open(models["additive"]))
    assert engine.name == "torch"
    assert caplog.messages == ["CTranslate2 has no recurrent models: the torch engine runs this one"]
    [[output]] = engine.translate_ids([[17, 19, 2]], DecodeOptions())
    assert len(output.ids) <= 3 + 50


def test_ctranslate2_is_refused_with_what_to_do(models: dict[str, Path]) -> None:
    message = "CTranslate2 has no recurrent models: use the torch engine, or leave the choice to `auto`"
    with pytest.raises(ConfigError, match=f"^{message}$"):
        open_engine(Bundle.open(models["none"]), "ctranslate2")


@pytest.mark.parametrize("format", ["marian", "ctranslate2", "onnx"])
def test_exports_refuse_it_with_the_reason(models: dict[str, Path], tmp_path: Path, format: str) -> None:
    error = run("export", models["additive"], "--format", format, "--output", tmp_path / "out").exception
    assert isinstance(error, ConfigError)
    assert str(error).startswith(f"{format} cannot express this model: it is recurrent, and only Transformers")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("look", ["additive", "dot"])
def test_the_alignment_is_the_attention(models: dict[str, Path], look: str) -> None:
    engine = open_engine(Bundle.open(models[look]), "torch")
    [attention_TS] = engine.attend([[17, 19, 23, 29, 2]], [[31, 37, 41]])
    assert attention_TS.shape == (3, 5)
    np.testing.assert_allclose(attention_TS.sum(axis=1), 1.0, atol=1e-5)


def test_without_attention_there_is_no_alignment_and_the_translation_is_there_all_the_same(
    models: dict[str, Path],
) -> None:
    engine = open_engine(Bundle.open(models["none"]), "torch")
    [attention_TS] = engine.attend([[17, 19, 23, 29, 2]], [[31, 37, 41]])
    assert attention_TS.shape == (0, 5)
    translator = load(models["none"], engine="torch")
    translation = translator.translate("taro ba miku de peli .", align=True, guards=False)
    assert all(sentence.alignment == () for sentence in translation.sentences)
    result = run("translate", "--model", models["none"], "--align", "--no-guards", "taro ba miku de peli .")
    assert result.exit_code == 0, result.exception
    assert "no alignment: the model has no attention to read it off" in result.stdout


# The commands


def test_translate_and_evaluate_run_it_like_any_other(models: dict[str, Path], tmp_path: Path) -> None:
    translated = run("translate", "--model", models["additive"], "--align", "taro ba miku de peli .")
    assert translated.exit_code == 0, translated.exception
    pairs = write_pairs(tmp_path / "test.xx-yy.tsv", make_pairs(5, seed=9))
    for look in ("additive", "none"):
        arguments = ("--test", pairs, "--json", "--report", tmp_path / f"{look}.html")
        result = run("evaluate", "--model", models[look], *arguments)
        assert result.exit_code == 0, result.exception
        summary = json.loads(result.stdout)
        assert (summary["system"]["engine"], summary["num_pairs"]) == ("torch", 5)
        assert (tmp_path / f"{look}.html").stat().st_size > 1000


@pytest.mark.parametrize(("look", "drawn"), [("additive", "Which words looked where"), ("none", "no alignment")])
def test_explain_draws_its_alignment_as_it_does_the_transformers(
    models: dict[str, Path], tmp_path: Path, look: str, drawn: str
) -> None:
    page = tmp_path / "page.html"
    result = run("explain", "--model", models[look], "--html", page, "taro ba miku de peli .")
    assert result.exit_code == 0, result.exception
    assert drawn in result.stdout
    assert page.stat().st_size > 1000
