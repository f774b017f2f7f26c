"""The shape of a model: the paper's by default, every row of Table 3 by name, and what cannot be."""

import dataclasses
import re
from typing import Any

import pytest

from dragoman.config import PRESETS, ModelConfig, preset
from dragoman.errors import ConfigError
from dragoman.settings import fill, to_mapping

# Table 3: row -> (N, d_model, d_ff, h, d_k, d_v, dropout, label smoothing), perplexity, BLEU, millions of parameters.
TABLE_3 = {
    "base": ((6, 512, 2048, 8, 64, 64, 0.1, 0.1), 4.92, 25.8, 65),
    "A-h1": ((6, 512, 2048, 1, 512, 512, 0.1, 0.1), 5.29, 24.9, None),
    "A-h4": ((6, 512, 2048, 4, 128, 128, 0.1, 0.1), 5.00, 25.5, None),
    "A-h16": ((6, 512, 2048, 16, 32, 32, 0.1, 0.1), 4.91, 25.8, None),
    "A-h32": ((6, 512, 2048, 32, 16, 16, 0.1, 0.1), 5.01, 25.4, None),
    "B-dk16": ((6, 512, 2048, 8, 16, 64, 0.1, 0.1), 5.16, 25.1, 58),
    "B-dk32": ((6, 512, 2048, 8, 32, 64, 0.1, 0.1), 5.01, 25.4, 60),
    "C-N2": ((2, 512, 2048, 8, 64, 64, 0.1, 0.1), 6.11, 23.7, 36),
    "C-N4": ((4, 512, 2048, 8, 64, 64, 0.1, 0.1), 5.19, 25.3, 50),
    "C-N8": ((8, 512, 2048, 8, 64, 64, 0.1, 0.1), 4.88, 25.5, 80),
    "C-d256": ((6, 256, 2048, 8, 32, 32, 0.1, 0.1), 5.75, 24.5, 28),
    "C-d1024": ((6, 1024, 2048, 8, 128, 128, 0.1, 0.1), 4.66, 26.0, 168),
    "C-ff1024": ((6, 512, 1024, 8, 64, 64, 0.1, 0.1), 5.12, 25.4, 53),
    "C-ff4096": ((6, 512, 4096, 8, 64, 64, 0.1, 0.1), 4.75, 26.2, 90),
    "D-drop0": ((6, 512, 2048, 8, 64, 64, 0.0, 0.1), 5.77, 24.6, None),
    "D-drop2": ((6, 512, 2048, 8, 64, 64, 0.2, 0.1), 4.95, 25.5, None),
    "D-smooth0": ((6, 512, 2048, 8, 64, 64, 0.1, 0.0), 4.67, 25.3, None),
    "D-smooth2": ((6, 512, 2048, 8, 64, 64, 0.1, 0.2), 5.47, 25.7, None),
    "E": ((6, 512, 2048, 8, 64, 64, 0.1, 0.1), 4.92, 25.7, None),
    "big": ((6, 1024, 4096, 16, 64, 64, 0.3, 0.1), 4.33, 26.4, 213),
}


@pytest.mark.parametrize("name", TABLE_3)
def test_a_preset_is_its_row_of_table_3(name: str) -> None:
    row = preset(name)
    model = row.model
    shape = (model.encoder_layers, model.d_model, model.d_ff, model.num_heads, model.d_k, model.d_v)
    got = ((*shape, model.dropout, row.label_smoothing), row.perplexity, row.bleu, row.parameters_millions)
    assert got == TABLE_3[name]
    assert model.decoder_layers == model.encoder_layers
    assert model.position == ("learned" if name == "E" else "sinusoid")


def test_besides_the_table_there_are_presets_that_it_does_not_print() -> None:
    recurrent = {name for name, row in PRESETS.items() if row.model.architecture == "recurrent"}
    assert recurrent == {"rnn-attention", "rnn-attention-dot", "rnn"}
    assert set(PRESETS) - set(TABLE_3) - recurrent == {"tiny", "small"}
    tiny, small = preset("tiny").model, preset("small").model
    assert (tiny.encoder_layers, tiny.decoder_layers, tiny.d_model, tiny.d_ff, tiny.num_heads) == (4, 4, 128, 256, 4)
    assert small.d_model < ModelConfig().d_model
    assert preset("tiny").bleu is preset("small").bleu is None


def test_the_defaults_are_the_papers_base_model_as_printed() -> None:
    config = ModelConfig()
    assert preset("base").model == config
    assert (config.norm, config.norm_order, config.activation) == ("layer", "post", "relu")
    assert config.share_embeddings
    assert not config.attention_bias
    assert config.attention_dropout == config.activation_dropout == 0


def test_an_unknown_preset_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=re.escape("unknown preset 'bsae': did you mean 'base'?")):
        preset("bsae")
    with pytest.raises(ConfigError, match=re.escape("unknown preset '???': known are A-h1, A-h16, ")):
        preset("???")


def test_heads_share_the_width_unless_they_are_given_their_own() -> None:
    assert (ModelConfig(d_model=34, num_heads=2).d_k, ModelConfig(d_model=34, num_heads=2).d_v) == (17, 17)
    odd = ModelConfig(d_model=34, num_heads=3, d_k=5, d_v=7)
    assert (odd.d_k, odd.d_v) == (5, 7)
    assert (ModelConfig(d_k=16).d_k, ModelConfig(d_k=16).d_v) == (16, 64)


def test_encoder_and_decoder_depth_are_apart() -> None:
    config = ModelConfig(encoder_layers=11, decoder_layers=2)
    assert (config.encoder_layers, config.decoder_layers) == (11, 2)


SIZES = ("vocab_size", "d_model", "d_ff", "num_heads", "d_k", "d_v", "max_length", "encoder_layers", "decoder_layers")


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [0, -3])
def test_a_size_below_one_is_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is {value}, expected at least 1$"):
        ModelConfig(**{name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"d_model": 34, "num_heads": 3},
            "d_model 34 does not divide into num_heads 3 heads: change one of them, or give d_k and d_v",
        ),
        (
            {"d_model": 35, "num_heads": 5},
            "d_model is 35, sinusoids come in pairs of sine and cosine: take an even d_model, or position = 'learned'",
        ),
        (
            {"d_model": 35, "num_heads": 5, "position": "sinusoid-halves"},
            "d_model is 35, sinusoids come in pairs of sine and cosine: take an even d_model, or position = 'learned'",
        ),
        ({"dropout": 1.0}, "dropout is 1.0, expected a share from 0 up to, not including, 1"),
        ({"attention_dropout": -0.1}, "attention_dropout is -0.1, expected a share from 0 up to, not including, 1"),
        ({"activation_dropout": 2.0}, "activation_dropout is 2.0, expected a share from 0 up to, not including, 1"),
        ({"position_base": 1.0}, "position_base is 1.0, expected a number above 1"),
        ({"vocab_size": 31, "end_id": 31}, "end_id is 31, outside the 31 pieces of vocab_size"),
        ({"padding_id": -1}, "padding_id is -1, outside the 37000 pieces of vocab_size"),
        ({"vocab_size": 1}, "begin_id is 1, outside the 1 pieces of vocab_size"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_with_what_to_do(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        ModelConfig(**changes)


def test_learned_positions_take_an_odd_width() -> None:
    assert ModelConfig(d_model=35, num_heads=5, position="learned").d_k == 7


def test_a_config_cannot_be_changed_and_names_every_argument() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig().d_model = 256  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        ModelConfig(37_000)  # type: ignore[misc]


@pytest.mark.parametrize("name", PRESETS)
def test_a_config_comes_back_from_json_as_it_was(name: str) -> None:
    config = preset(name).model
    assert fill(ModelConfig, to_mapping(config)) == config
