"""A grown model: it starts as the model that it was, its further layers learn, and it is a model folder like others."""

from pathlib import Path

import pytest
import torch
from small_runs import run_small, small_recipe, weights, write_corpus

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig, preset
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from dragoman.train.growth import grown, take_over

SHAPE = {"d_model": 22, "d_ff": 37, "num_heads": 2, "encoder_layers": 3, "decoder_layers": 2, "dropout": 0.0}


def make_config(**changes: object) -> ModelConfig:
    return ModelConfig(**{"vocab_size": 31, "max_length": 29, "norm_order": "pre", **SHAPE, **changes})


@pytest.mark.parametrize("changes", [{}, {"activation": "swiglu", "attention_bias": True, "norm": "rms"}])
def test_a_grown_model_starts_as_the_model_it_was(changes: dict[str, object]) -> None:
    config = make_config(**changes)
    before, after = Transformer(config), Transformer(grown(config, 5))
    source_BS, target_BT = torch.randint(3, 31, (5, 11)), torch.randint(3, 31, (5, 7))
    take_over(after, before.state_dict())
    assert len(after.encoder.blocks) == 5
    assert torch.equal(after(source_BS, target_BT), before(source_BS, target_BT))


def test_the_further_layers_learn() -> None:
    model = Transformer(grown(make_config(), 4))
    take_over(model, Transformer(make_config()).state_dict())
    model(torch.randint(3, 31, (5, 11)), torch.randint(3, 31, (5, 7))).square().sum().backward()
    new = model.encoder.blocks[3]
    assert new.self_attention.w_o.weight.grad.any()
    assert new.feed_forward.w_2.weight.grad.any()


@pytest.mark.parametrize("config", [make_config(norm_order="post"), preset("rnn-attention").model])
def test_a_model_that_further_layers_would_change_is_refused(config: ModelConfig) -> None:
    with pytest.raises(ConfigError, match="adds layers to a Transformer with its norms before the sublayers"):
        grown(config, 7)


def test_a_shallower_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="encoder_layers is 2, the model that --init names has 3: it can get more"):
        grown(make_config(), 2)


def test_a_run_grows_the_model_it_goes_on_from(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    run_small(small_recipe(corpus, max_steps=2, model={"norm_order": "pre"}), tmp_path / "small")
    recipe = small_recipe(corpus, max_steps=3, model={"encoder_layers": 3})
    run_small(recipe, tmp_path / "grown", init=str(tmp_path / "small"), asked=("model.encoder_layers",))
    assert Bundle.open(tmp_path / "grown").model_config.encoder_layers == 3
    last = weights(tmp_path / "grown")["encoder.blocks.2.feed_forward.w_2.weight"]
    assert last.any()
    run_small(small_recipe(corpus, max_steps=1), tmp_path / "tuned", init=str(tmp_path / "grown"))
    assert Bundle.open(tmp_path / "tuned").model_config.encoder_layers == 3
