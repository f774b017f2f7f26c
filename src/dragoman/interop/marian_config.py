"""What a transformers `MarianMTModel` says of itself in config.json and generation_config.json, as our settings.

Marian's model is the paper's, with sines and cosines in halves, biases in its attention and on its logits. What our
model cannot express is refused, with the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import ModelConfig
from dragoman.errors import BundleError, ConfigError
from dragoman.recipe import SearchConfig

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}

# Options of old versions that turn Marian's model into another one; transformers has long dropped them.
_OTHER_MODELS = {
    "normalize_before": True,
    "normalize_embedding": True,
    "add_final_layer_norm": True,
    "static_position_embeddings": False,
}


@dataclass(frozen=True)
class MarianConfig:
    """A config that our model can express; `banned` are the pieces that are never written."""

    model: ModelConfig
    search: SearchConfig
    scale_embedding: bool
    banned: tuple[int, ...]


def read_marian_config(config: Mapping[str, Any], generation: Mapping[str, Any], where: Path) -> MarianConfig:
    """Our settings for a model of this config; old folders have the generation settings in config.json too."""
    if config.get("model_type") != "marian":
        raise BundleError(
            f"{where} is a model of type {config.get('model_type')!r}, expected 'marian': "
            f"only Marian and OPUS-MT models can be imported"
        )
    _refuse_what_we_lack(config, where)
    both = {**config, **{key: value for key, value in generation.items() if value is not None}}
    shared = bool(config.get("share_encoder_decoder_embeddings", True))
    vocab_size = _number(config, "vocab_size", where)
    target_size = config.get("decoder_vocab_size") or vocab_size
    if shared and target_size != vocab_size:
        raise BundleError(
            f"{where}: decoder_vocab_size {target_size} is not vocab_size {vocab_size}, yet both share one matrix"
        )
    padding_id = _number(both, "pad_token_id", where)
    try:
        model = ModelConfig(
            vocab_size=target_size,
            source_vocab_size=0 if shared else vocab_size,
            d_model=_number(config, "d_model", where),
            d_ff=_number(config, "encoder_ffn_dim", where),
            num_heads=_number(config, "encoder_attention_heads", where),
            encoder_layers=_number(config, "encoder_layers", where),
            decoder_layers=_number(config, "decoder_layers", where),
            dropout=float(config.get("dropout", 0.1)),
            attention_dropout=float(config.get("attention_dropout", 0.0)),
            activation_dropout=float(config.get("activation_dropout", 0.0)),
            activation=ACTIVATIONS[config["activation_function"]],  # type: ignore[arg-type]
            attention_bias=True,
            position="sinusoid-halves",
            max_length=_number(config, "max_position_embeddings", where),
            share_embeddings=shared,
            output_bias=True,
            padding_id=padding_id,
            begin_id=_number({"decoder_start_token_id": padding_id, **both}, "decoder_start_token_id", where),
            end_id=_one_end(both, where),
        )
        search = SearchConfig(
            beam=int(both.get("num_beams") or 1),
            length_penalty=float(both.get("length_penalty", 1.0)),
            no_repeat_ngram=int(both.get("no_repeat_ngram_size") or 0),
        )
    except (ConfigError, TypeError, ValueError) as error:
        raise BundleError(f"{where} cannot be expressed here: {error}") from error
    banned = _banned(both.get("bad_words_ids") or (), model, where)
    return MarianConfig(model, search, bool(config.get("scale_embedding", False)), banned)


def write_marian_config(config: ModelConfig, search: SearchConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """config.json and generation_config.json of a model that Marian can express."""
    banned = [[id] for id in sorted({config.padding_id, config.begin_id} - {config.end_id})]
    tokens = {
        "pad_token_id": config.padding_id,
        "eos_token_id": config.end_id,
        "decoder_start_token_id": config.begin_id,
        "forced_eos_token_id": config.end_id,
        "bos_token_id": None,
    }
    model = {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": config.num_source_pieces,
        "decoder_vocab_size": config.vocab_size,
        "share_encoder_decoder_embeddings": config.share_embeddings,
        "tie_word_embeddings": True,
        "d_model": config.d_model,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "num_hidden_layers": config.encoder_layers,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "activation_function": config.activation,
        "max_position_embeddings": config.max_length,
        "scale_embedding": True,
        "torch_dtype": "float32",
        **tokens,
    }
    generation = {
        **tokens,
        "num_beams": search.beam,
        "length_penalty": search.length_penalty,
        "max_length": config.max_length,
        "no_repeat_ngram_size": search.no_repeat_ngram,
        "bad_words_ids": banned,
        # What is banned gets no share of the probability, as in CTranslate2 and in Marian itself.
        "renormalize_logits": True,
    }
    return model, generation


def why_not_marian(config: ModelConfig) -> str:
    """What of a model Marian cannot express; empty if it can express all."""
    if config.norm != "layer":
        return "RMSNorm, where Marian has LayerNorm (norm = 'layer')"
    if config.norm_order != "post":
        return "pre-norm, where Marian normalises after each sub-layer (train with --set model.norm_order=post)"
    if config.activation == "swiglu":
        return "SwiGLU, where Marian's feed-forward network has no gate (activation = 'relu', 'gelu' or 'swish')"
    if config.position == "learned":
        return "learned positions, where Marian computes sinusoids (position = 'sinusoid')"
    if config.position_base != ModelConfig.position_base:
        return f"a position_base of {config.position_base:g}, where Marian's is {ModelConfig.position_base:g}"
    if not config.d_k == config.d_v == config.d_model / config.num_heads:
        return f"heads of d_k {config.d_k} and d_v {config.d_v}, where Marian's have d_model / num_heads"
    return ""


def _refuse_what_we_lack(config: Mapping[str, Any], where: Path) -> None:
    for name, other in _OTHER_MODELS.items():
        if config.get(name) is other:
            raise BundleError(f"{where} has {name} {str(other).lower()}, which makes it a model that we do not have")
    for encoder, decoder in (
        ("encoder_attention_heads", "decoder_attention_heads"),
        ("encoder_ffn_dim", "decoder_ffn_dim"),
    ):
        if config.get(encoder) != config.get(decoder):
            raise BundleError(
                f"{where} has {encoder} {config.get(encoder)} and {decoder} {config.get(decoder)}: "
                f"our encoder and decoder have one of them together"
            )
    activation = config.get("activation_function")
    if activation not in ACTIVATIONS:
        raise BundleError(f"{where} has the activation {activation!r}, we have {', '.join(sorted(ACTIVATIONS))}")


def _number(config: Mapping[str, Any], name: str, where: Path) -> int:
    value = config.get(name)
    if type(value) is not int:
        raise BundleError(f"{where} has {name} {value!r}, expected a whole number")
    return value


def _one_end(config: Mapping[str, Any], where: Path) -> int:
    ends = config.get("eos_token_id")
    ends = ends if isinstance(ends, list) else [ends]
    if len(ends) != 1 or type(ends[0]) is not int:
        raise BundleError(f"{where} ends sentences with any of {ends}: our models have one end piece")
    return int(ends[0])


def _banned(bad_words: Sequence[Any], model: ModelConfig, where: Path) -> tuple[int, ...]:
    """The single pieces that must not be written; the padding is one in any case, as Marian itself has none."""
    banned = {model.padding_id} - {model.end_id}
    for word in bad_words:
        if not isinstance(word, list) or len(word) != 1 or type(word[0]) is not int:
            raise BundleError(
                f"{where} forbids the pieces {word} in a row (bad_words_ids): only single pieces can be forbidden here"
            )
        if not 0 <= word[0] < model.vocab_size:
            raise BundleError(f"{where} forbids the piece {word[0]}, outside the {model.vocab_size} of its vocabulary")
        banned.add(word[0])
    return tuple(sorted(banned))
