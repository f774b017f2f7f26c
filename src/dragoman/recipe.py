"""Everything that makes a training run, one frozen dataclass per concern; TOML files of `recipes/` fill a `Recipe`."""

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Literal

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.settings import at_least, fact, option, share


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """Where pairs come from: one file that holds both sides, or two files that are aligned line by line."""

    path: str = option("", "TSV, TMX or JSON lines, plain or .gz/.xz/.zst, or the source side; - is standard input")
    target_path: str = option("", "the target side, when `path` is the source side alone")
    languages: str = option("", "source-target, say fr-en; read off the file names where they tell")
    weight: float = option(1.0, "how often an epoch goes through this corpus: 2 is twice, 0.5 every other pair")
    swap: bool = option(False, "take a TSV file's pairs the other way round: the right side is the source")
    both_ways: bool = option(False, "learn target to source as well")
    licence: str = fact("", "of the text, for the model card")
    attribution: str = fact("", "whom the licence asks to name, for the model card")

    def __post_init__(self) -> None:
        if self.languages and (self.languages.count("-") != 1 or not all(self.languages.split("-"))):
            raise ConfigError(f"languages is {self.languages!r}, expected source-target, say fr-en")
        if self.weight <= 0:
            raise ConfigError(f"weight is {self.weight}, expected a number above 0")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is trained on, what is watched, and what is dropped."""

    train: tuple[CorpusConfig, ...] = option((), "the corpora to learn from")
    valid: tuple[CorpusConfig, ...] = option((), "the corpora to validate on; some of train is held out if none")
    test: tuple[CorpusConfig, ...] = option((), "corpora that must not occur in train; never looked at in training")
    watch: tuple[CorpusConfig, ...] = option((), "corpora whose loss is told at each validation, to see forgetting")
    valid_pairs: int = option(1000, "how many pairs to hold out when no validation set is given")
    variation: float = option(0.0, "share of pairs met as the careless write: no full stop, accents, new names ...")
    max_ratio: float = option(6.0, "drop pairs of which one side has this many times the other's pieces (and 10 more)")

    def __post_init__(self) -> None:
        at_least(1, "valid_pairs", self.valid_pairs)
        at_least(1, "max_ratio", self.max_ratio)
        share("variation", self.variation)


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes pieces."""

    kind: Literal["bpe", "unigram", "word"] = option(
        "bpe", "byte-pair encoding, a unigram model, or whole words, of which rare ones are spelled"
    )
    vocab_size: int = option(0, "pieces to learn; 0 chooses from the data")
    lowercase: bool = option(False, "lowercase everything, for data that is")
    dropout: float = option(0.0, "BPE-dropout: chance that a merge is left out, in training only")

    def __post_init__(self) -> None:
        at_least(0, "vocab_size", self.vocab_size)
        share("dropout", self.dropout)
        if self.dropout and self.kind != "bpe":
            raise ConfigError("tokenizer.dropout leaves out merges, which only kind = 'bpe' has: set dropout to 0")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a model is trained. The defaults are ours; `recipes/paper-base-en-de.toml` has the paper's."""

    label_smoothing: float = option(0.1, "share of the probability that is spread over all pieces")
    optimizer: Literal["adam", "adamw", "muon"] = option(
        "muon", "Adam, AdamW, or Muon for matrices (where they are not sharded) with AdamW for the rest"
    )
    learning_rate: float = option(0.0, "the peak; 0 takes the schedule's own (the paper's formula, or by width)")
    embedding_start: Literal["neighbours", "random"] = option(
        "neighbours", "embeddings begin with pieces near those that share pairs with them, or drawn, as in the paper"
    )
    embedding_rate: float = fact(
        0.0, "times the rate, for what muon leaves to AdamW: embeddings, norms; 0 is 3, and 1 beside --init"
    )
    beta1: float = fact(0.9, "Adam's first moment")
    beta2: float = option(0.98, "Adam's second moment")
    epsilon: float = fact(1e-9, "Adam's epsilon")
    weight_decay: float = option(0.0, "decay of matrices, with adamw and muon")
    clip_norm: float = option(1.0, "largest norm of a gradient; 0 does not clip")
    schedule: Literal["paper", "inverse-sqrt", "cosine", "wsd"] = option(
        "wsd", "the paper's, its free form, cosine, or warm up, stay, decay"
    )
    warmup_steps: int = option(400, "steps over which the learning rate climbs")
    decay_share: float = option(0.5, "share of the steps over which wsd decays, at the end")
    batch_tokens: int = option(4096, "target pieces in a step, over all micro-batches and ranks")
    micro_batches: int = option(1, "parts that a step's batch is cut into, to save memory")
    max_steps: int = option(0, "steps to train; 0 leaves it to max_epochs")
    max_epochs: float = option(0.0, "passes over the data to train; 0 leaves it to max_steps or the plan")
    validate_steps: int = option(0, "steps between validations; 0 is about once an epoch")
    save_seconds: float = option(
        300.0, "time between checkpoints, besides those at validations; 0 is at validations only"
    )
    patience: int = option(0, "validations without a better one before stopping; 0 never stops early")
    metric: Literal["loss", "bleu", "chrf"] = option("loss", "what 'better' means on the validation set")
    ema_decay: float = option(
        0.0, "decay of an exponential average of the weights, which is then what is kept; 0 is off"
    )
    average: int = option(1, "checkpoints, the last ones at validations, that are averaged into the final model")
    r_drop: float = option(0.0, "weight of R-Drop's agreement between two dropout passes; 0 is off")
    distillation: float = fact(0.5, "share of what --teacher thinks, beside what people wrote")
    precision: Literal["auto", "float32", "bfloat16"] = option("auto", "auto lowers it where hardware gains")
    compile: Literal["auto", "on", "off"] = option("auto", "torch.compile; auto measures at start whether it pays")
    lora: int = option(0, "rank of low-rank adapters for fine-tuning, merged on save; 0 trains every weight")
    shard: bool = option(False, "split weights and optimiser over ranks (FSDP2), for models that do not fit")
    seed: int = option(1, "of everything that is drawn")

    def __post_init__(self) -> None:
        for name in ("label_smoothing", "beta1", "beta2", "ema_decay"):
            share(name, getattr(self, name))
        for name in ("warmup_steps", "batch_tokens", "micro_batches", "average"):
            at_least(1, name, getattr(self, name))
        for name in ("learning_rate", "embedding_rate", "weight_decay", "clip_norm", "max_steps", "max_epochs",
                     "validate_steps", "save_seconds", "patience", "r_drop", "lora", "seed"):  # fmt: skip
            at_least(0, name, getattr(self, name))
        for name in ("decay_share", "distillation"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ConfigError(f"{name} is {value}, expected a share from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How a translation is looked for. The defaults are the paper's."""

    beam: int = option(4, "hypotheses kept open; 1 is greedy")
    length_penalty: float = option(0.6, "alpha of ((5 + length) / 6) ^ alpha, which a hypothesis' score is divided by")
    extra_length: int = option(50, "a translation has at most as many pieces as its source and this many more")
    no_repeat_ngram: int = option(0, "forbid repeating this many pieces in a row; 0 allows it")

    def __post_init__(self) -> None:
        at_least(1, "beam", self.beam)
        at_least(0, "extra_length", self.extra_length)
        at_least(0, "no_repeat_ngram", self.no_repeat_ngram)


@dataclass(frozen=True, kw_only=True)
class CardConfig:
    """What the model card says that nothing else tells."""

    licence: str = fact("", "of the model")
    limits: str = fact("", "what the model is bad at")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole run: the data, the pieces, the model, the training, the search that scores it, and its card."""

    data: DataConfig = dataclass_field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = dataclass_field(default_factory=TokenizerConfig)
    model: ModelConfig = dataclass_field(default_factory=ModelConfig)
    train: TrainConfig = dataclass_field(default_factory=TrainConfig)
    search: SearchConfig = dataclass_field(default_factory=SearchConfig)
    card: CardConfig = dataclass_field(default_factory=CardConfig)

    def __post_init__(self) -> None:
        if self.model.architecture == "recurrent":
            asked = {"lora": self.train.lora > 0, "shard": self.train.shard, "compile": self.train.compile == "on"}
            for name in (name for name, is_asked in asked.items() if is_asked):
                raise ConfigError(
                    f"train.{name} is for the blocks of a Transformer, a recurrent model has none: leave it out"
                )
