"""The shape of a model, validated when it is made, and `PRESETS`: the paper's Table 3 by row name, and what was before
it. No torch here.
"""

from dataclasses import dataclass
from typing import Literal

from dragoman.errors import ConfigError
from dragoman.settings import at_least, fact, nearest, option, share


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of a model. The defaults are the paper's base Transformer.

    A recurrent model (presets rnn-attention, rnn, rnn-attention-dot) reads some sizes in its own way: d_model is the
    width of its embeddings, d_ff the units of each recurrent network, d_k the width of its alignment, d_v that of the
    linear form's values; it has one head and one decoder layer.

    d_k and d_v are filled in when the config is made: to change num_heads or d_model with `dataclasses.replace`, give
    them anew (or as None).
    """

    vocab_size: int = fact(37_000, "pieces in the vocabulary, special ones included")
    source_vocab_size: int = fact(0, "pieces of the source side's own vocabulary; 0 if both sides have one together")
    architecture: Literal["transformer", "recurrent"] = fact("transformer", "what the presets named rnn change")
    recurrent_cell: Literal["gru", "lstm"] = fact("gru", "a recurrent network's units")
    recurrent_attention: Literal["additive", "dot", "none"] = fact(
        "additive", "a recurrent decoder's look at the source: v . tanh(W s + U h), (W_Q s) . (W_K h), or one vector"
    )
    d_model: int = option(512, "width of every layer's input and output; of a recurrent model's embeddings")
    d_ff: int = option(2048, "width inside the feed-forward network; units of a recurrent network")
    num_heads: int = option(8, "attention heads in each layer (h in the paper)")
    d_k: int | None = option(None, "width of a head's queries and keys; d_model / num_heads if not given")
    d_v: int | None = option(None, "width of a head's values; d_model / num_heads if not given")
    encoder_layers: int = option(6, "encoder blocks (N)")
    decoder_layers: int = option(6, "decoder blocks (N)")
    dropout: float = option(0.1, "on each sub-layer's output and on embedding + position (P_drop)")
    attention_dropout: float = option(0.0, "on the attention weights; the paper has none")
    activation_dropout: float = option(0.0, "inside the feed-forward network; the paper has none")
    activation: Literal["relu", "gelu", "swish", "swiglu"] = option("relu", "the feed-forward network's nonlinearity")
    norm: Literal["layer", "rms"] = option("layer", "LayerNorm, or RMSNorm")
    norm_order: Literal["post", "pre"] = option(
        "post", "LayerNorm(x + Sublayer(x)) as printed, or x + Sublayer(Norm(x))"
    )
    attention_bias: bool = option(False, "biases on W_Q, W_K, W_V and W_O; the paper's formulas have none")
    position: Literal["sinusoid", "sinusoid-halves", "learned"] = option(
        "sinusoid", "sines and cosines interleaved as printed, all sines then all cosines, or learned (row E)"
    )
    position_base: float = option(10_000.0, "base of the sinusoids' wavelengths")
    max_length: int = option(512, "pieces that a source or a target may have")
    share_embeddings: bool = option(True, "one matrix for source, target and output, as in the paper; else one a side")
    output_bias: bool = fact(False, "a bias on the logits; the paper has none")
    padding_id: int = fact(0, "id of the padding piece")
    begin_id: int = fact(1, "id that a target begins with")
    end_id: int = fact(2, "id that a sentence ends with")

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "d_ff", "num_heads", "max_length", "encoder_layers", "decoder_layers"):
            at_least(1, name, getattr(self, name))
        for name in ("d_k", "d_v"):
            if getattr(self, name) is None:
                if self.d_model % self.num_heads:
                    raise ConfigError(
                        f"d_model {self.d_model} does not divide into num_heads {self.num_heads} heads: "
                        f"change one of them, or give d_k and d_v"
                    )
                object.__setattr__(self, name, self.d_model // self.num_heads)
            at_least(1, name, getattr(self, name))
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            share(name, getattr(self, name))
        _check_architecture(self)
        if self.architecture == "transformer" and self.position != "learned" and self.d_model % 2:
            raise ConfigError(
                f"d_model is {self.d_model}, sinusoids come in pairs of sine and cosine: "
                f"take an even d_model, or position = 'learned'"
            )
        if self.position_base <= 1:
            raise ConfigError(f"position_base is {self.position_base}, expected a number above 1")
        if self.source_vocab_size and self.share_embeddings:
            raise ConfigError(
                f"source_vocab_size is {self.source_vocab_size}, but one matrix serves both sides: "
                f"set share_embeddings to false, or source_vocab_size to 0"
            )
        for name in ("padding_id", "begin_id", "end_id"):
            if not 0 <= getattr(self, name) < self.vocab_size:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}, outside the {self.vocab_size} pieces of vocab_size"
                )
        at_least(0, "source_vocab_size", self.source_vocab_size)

    @property
    def num_source_pieces(self) -> int:
        """Pieces of the source side."""
        return self.source_vocab_size or self.vocab_size

    @property
    def d_readout(self) -> int:
        """Width of what meets a recurrent model's output matrix: an embedding's where it is one, else half the state's,
        as Bahdanau, Cho and Bengio have it.
        """
        return self.d_model if self.share_embeddings else max(1, self.d_ff // 2)


_OF_TRANSFORMERS = (
    "attention_dropout", "activation_dropout", "activation", "norm", "norm_order", "attention_bias", "position",
    "position_base",
)  # fmt: skip


def _check_architecture(config: ModelConfig) -> None:
    """Refuse what a model of the other kind has, as it would do nothing."""
    if config.architecture == "transformer":
        for name in ("recurrent_cell", "recurrent_attention"):
            if getattr(config, name) != getattr(ModelConfig, name):
                raise ConfigError(
                    f"{name} does nothing in a Transformer: leave it out, or take the preset rnn-attention"
                )
        return
    for name in ("num_heads", "decoder_layers"):
        if getattr(config, name) != 1:
            raise ConfigError(
                f"{name} is {getattr(config, name)}, a recurrent model has one: set it to 1, "
                f"or take the preset rnn-attention"
            )
    for name in _OF_TRANSFORMERS:
        if getattr(config, name) != getattr(ModelConfig, name):
            raise ConfigError(f"{name} does nothing in a recurrent model: leave it out, or take a Transformer")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A model shape by name, with what the paper's Table 3 prints for it (development set, parameters in millions)."""

    model: ModelConfig
    label_smoothing: float = 0.1
    perplexity: float | None = None
    bleu: float | None = None
    parameters_millions: int | None = None


def _row(
    perplexity: float, bleu: float, millions: int | None = None, *, label_smoothing: float = 0.1, **changes: object
) -> Preset:
    model = ModelConfig(**changes)  # type: ignore[arg-type]
    return Preset(
        model=model,
        label_smoothing=label_smoothing,
        perplexity=perplexity,
        bleu=bleu,
        parameters_millions=millions,
    )


def _recurrent(attention: str, **changes: object) -> Preset:
    """The sizes of Bahdanau, Cho and Bengio: 620 wide embeddings, 1000 units each way, alignment of 1000."""
    sizes = {"d_model": 620, "d_ff": 1000, "num_heads": 1, "d_k": 1000, "encoder_layers": 1, "decoder_layers": 1}
    shape = {"vocab_size": 30_000, "share_embeddings": False, "recurrent_attention": attention, **sizes, **changes}
    return Preset(model=ModelConfig(architecture="recurrent", **shape), label_smoothing=0.1)  # type: ignore[arg-type]


PRESETS: dict[str, Preset] = {
    "base": _row(4.92, 25.8, 65),
    "A-h1": _row(5.29, 24.9, num_heads=1, d_k=512, d_v=512),
    "A-h4": _row(5.00, 25.5, num_heads=4, d_k=128, d_v=128),
    "A-h16": _row(4.91, 25.8, num_heads=16, d_k=32, d_v=32),
    "A-h32": _row(5.01, 25.4, num_heads=32, d_k=16, d_v=16),
    "B-dk16": _row(5.16, 25.1, 58, d_k=16),
    "B-dk32": _row(5.01, 25.4, 60, d_k=32),
    "C-N2": _row(6.11, 23.7, 36, encoder_layers=2, decoder_layers=2),
    "C-N4": _row(5.19, 25.3, 50, encoder_layers=4, decoder_layers=4),
    "C-N8": _row(4.88, 25.5, 80, encoder_layers=8, decoder_layers=8),
    "C-d256": _row(5.75, 24.5, 28, d_model=256, d_k=32, d_v=32),
    "C-d1024": _row(4.66, 26.0, 168, d_model=1024, d_k=128, d_v=128),
    "C-ff1024": _row(5.12, 25.4, 53, d_ff=1024),
    "C-ff4096": _row(4.75, 26.2, 90, d_ff=4096),
    "D-drop0": _row(5.77, 24.6, dropout=0.0),
    "D-drop2": _row(4.95, 25.5, dropout=0.2),
    "D-smooth0": _row(4.67, 25.3, label_smoothing=0.0),
    "D-smooth2": _row(5.47, 25.7, label_smoothing=0.2),
    "E": _row(4.92, 25.7, position="learned"),
    "big": _row(4.33, 26.4, 213, d_model=1024, d_ff=4096, num_heads=16, dropout=0.3),
    "tiny": Preset(
        model=ModelConfig(
            vocab_size=10_000, encoder_layers=4, decoder_layers=4, d_model=128, d_ff=256, num_heads=4, dropout=0.3
        )
    ),
    "rnn-attention": _recurrent("additive"),
    "rnn-attention-dot": _recurrent("dot", d_v=1000),
    "rnn": _recurrent("none"),
    "small": Preset(
        model=ModelConfig(vocab_size=8_000, encoder_layers=3, decoder_layers=3, d_model=256, d_ff=1024, num_heads=4)
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name, or an error with the nearest one."""
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}{nearest(name, PRESETS)}")
    return PRESETS[name]
