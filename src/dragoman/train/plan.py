"""What to train for this data, machine and time: the shape, the vocabulary, the batch and the number of steps.

A plan is a recipe with nothing left open, and the reason for each choice. It counts floating-point operations, divides
by what the machine was just measured to do, and takes the largest model that still gets through the data often enough.
"""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from dragoman.bundle import expected_shapes
from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from dragoman.recipe import Recipe, TrainConfig
from dragoman.settings import fill, to_mapping
from dragoman.text.diagnosis import Diagnosis
from dragoman.text.learning import choose_vocab_size
from dragoman.train.objective import Objective

LADDER = (
    {"d_model": 64, "d_ff": 256, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1},
    {"d_model": 128, "d_ff": 512, "num_heads": 4, "encoder_layers": 3, "decoder_layers": 2},
    {"d_model": 192, "d_ff": 768, "num_heads": 4, "encoder_layers": 4, "decoder_layers": 2},
    {"d_model": 256, "d_ff": 1024, "num_heads": 4, "encoder_layers": 6, "decoder_layers": 2},
    {"d_model": 384, "d_ff": 1536, "num_heads": 6, "encoder_layers": 6, "decoder_layers": 3},
    {"d_model": 512, "d_ff": 2048, "num_heads": 8, "encoder_layers": 6, "decoder_layers": 6},
)
"""Shapes from small to the paper's base. Deep encoders and shallow decoders: reading is parallel, writing is not."""

NORM_ORDER: Literal["pre"] = "pre"
"""Of planned models. With norms after the sublayers, as in the paper, a deep encoder may collapse at a high rate."""

USUAL_LENGTH = 20
"""Pieces of a source, when nothing else is known: an additive look keeps a vector for each of them."""

FEW_PASSES = 4.0
"""Below so many, what dropout keeps from being learned by heart is still being learned at all."""

FEWEST_STEPS = 1200
"""That a batch should leave time for. Muon takes as long for a small one as for a large one: that is time wasted."""

LONG_DECAY = 0.8
"""Share of the steps over which the rate falls where a clock sets the end: no other end will be asked for later."""

ENDING_SHARE = 0.06
"""Of a budget, kept back for the last validation, the averaging and the model folder."""


@dataclass(frozen=True)
class DataSize:
    """What a plan needs to know of the data; pieces are estimates until there is a tokenizer."""

    pairs: int
    source_characters: int
    target_characters: int

    def target_pieces(self, vocab_size: int) -> float:
        """Of one pass: a larger vocabulary has longer pieces."""
        return self.target_characters / characters_per_piece(vocab_size) + self.pairs


def size_of(diagnosis: Diagnosis, both_ways: bool = False) -> DataSize:
    """Of one pass over the training data, both directions counted where both are learned."""
    train = next(summary for summary in diagnosis.sets if summary.name == "train")
    source, target = train.source.characters, train.target.characters
    if both_ways:
        return DataSize(2 * train.kept, source + target, source + target)
    return DataSize(train.kept, source, target)


@dataclass(frozen=True)
class Plan:
    """The recipe to run, how long it should take, and why it is as it is."""

    recipe: Recipe
    target_tokens_per_second: float
    seconds: float
    memory_bytes: int
    passes: float
    reasons: tuple[str, ...]

    def to_mapping(self) -> dict[str, Any]:
        return to_mapping(self)

    @classmethod
    def from_mapping(cls, values: dict[str, Any]) -> "Plan":
        return fill(cls, values)


def characters_per_piece(vocab_size: int) -> float:
    """About 2.6 at a thousand pieces, 3.7 at eight thousand: more by the logarithm."""
    return 2.6 + 0.53 * math.log2(max(vocab_size, 500) / 1000)


def operations_per_target_token(config: ModelConfig, source_ratio: float = 1.0) -> float:
    """Multiplications and additions, forward and backward, for one target piece and its share of the source."""
    assert config.d_k is not None
    assert config.d_v is not None
    if config.architecture == "recurrent":
        return _recurrent_operations(config, source_ratio)
    attention = 2 * config.num_heads * (config.d_k + config.d_v) * config.d_model
    feed_forward = (3 if config.activation == "swiglu" else 2) * config.d_model * config.d_ff
    encoder = config.encoder_layers * (attention + feed_forward) * source_ratio
    cross_source = config.decoder_layers * attention / 2 * source_ratio
    decoder = config.decoder_layers * (1.5 * attention + feed_forward)
    return 6 * (encoder + cross_source + decoder + config.vocab_size * config.d_model)


def _recurrent_operations(config: ModelConfig, source_ratio: float) -> float:
    """Matrix products alone; of a look at the source, which grows with its length, those that do not."""
    shapes = expected_shapes(config)
    matrices = {name: math.prod(shape) for name, shape in shapes.items() if len(shape) == 2 and "embedding" not in name}
    of_source = (
        "encoder",
        "decoder.cross_attention.score.u",
        "decoder.cross_attention.w_k",
        "decoder.cross_attention.w_v",
    )
    source = sum(size for name, size in matrices.items() if name.startswith(of_source))
    target = sum(matrices.values()) - source
    return 6 * (source * source_ratio + target + config.vocab_size * config.d_readout)


def memory_of(config: ModelConfig, batch_tokens: int, micro_batches: int = 1) -> int:
    """Bytes for weights, gradients, Adam's two moments and what a backward pass keeps; within a third or so."""
    layers = config.encoder_layers + config.decoder_layers
    parameters = sum(math.prod(shape) for shape in expected_shapes(config).values())
    if config.architecture == "recurrent":
        assert config.d_k is not None
        looks = 3 * USUAL_LENGTH * config.d_k if config.recurrent_attention == "additive" else 0
        per_token = 20 * layers * config.d_ff + 12 * config.d_model + looks
    else:
        per_token = layers * (14 * config.d_model + 3 * config.d_ff)
    kept = per_token * 4 * batch_tokens // micro_batches
    return 300_000_000 + 20 * parameters + kept


def measure_operations_per_second(seconds: float = 2.0, device: torch.device | None = None) -> float:
    """What one process of this machine does in a training step of a small model, right now."""
    config = ModelConfig(vocab_size=4000, **LADDER[3])  # type: ignore[arg-type]
    objective = Objective(Transformer(config), config.padding_id, smoothing=0.1).to(device)
    source_BS, target_BT = torch.randint(3, 4000, (2, 96, 12), device=device).unbind()

    def step() -> None:
        loss = objective(source_BS, target_BT, target_BT).smoothed
        loss.backward()
        loss.item()  # waits for a GPU

    step()
    steps, started = 0, time.perf_counter()
    while steps < 3 or time.perf_counter() - started < seconds:
        step()
        steps += 1
    elapsed = time.perf_counter() - started
    return steps * target_BT.numel() * operations_per_target_token(config) / elapsed


def make_plan(
    recipe: Recipe,
    data: DataSize,
    *,
    operations_per_second: float,
    budget_seconds: float = 0.0,
    keep_shape: bool = False,
    asked: Collection[str] = (),
    vocab_size: int = 0,
) -> Plan:
    """Settle what the recipe leaves open.

    `keep_shape` keeps its model, and its batch where no clock asks for another; `asked` names settings to keep even
    where they are the defaults; `vocab_size` is that of given pieces.
    """
    reasons = []
    pieces = vocab_size or recipe.tokenizer.vocab_size
    if not pieces:
        pieces = choose_vocab_size(data.source_characters + data.target_characters, num_reserved=270)
        reasons.append(f"{pieces:,} pieces: so many are seen often enough in {data.pairs:,} pairs")
    source_ratio = data.source_characters / max(1, data.target_characters)
    pass_pieces = data.target_pieces(pieces)
    training_seconds = budget_seconds * (1 - ENDING_SHARE)
    needed = needed_passes(pass_pieces)

    def passes_of(model: ModelConfig) -> float:
        speed = operations_per_second / operations_per_target_token(model, source_ratio)
        return training_seconds * speed / pass_pieces

    if keep_shape:
        model = replace(recipe.model, vocab_size=pieces)
    else:
        ours: dict[str, Any] = {"d_k": None, "d_v": None, "norm_order": NORM_ORDER}
        ours = {name: value for name, value in ours.items() if f"model.{name}" not in asked}
        model = replace(recipe.model, vocab_size=pieces, **ours)
        shapes = [replace(model, **{**ours, **shape}) for shape in LADDER]
        shapes = shapes[: 1 + largest_for(pass_pieces)]
        fitting = [shape for shape in shapes if not budget_seconds or passes_of(shape) >= needed]
        model = fitting[-1] if fitting else shapes[0]
        reasons.append(f"{_shape(model)}: {_why_this_shape(bool(budget_seconds), bool(fitting), needed)}")
    speed = operations_per_second / operations_per_target_token(model, source_ratio)
    train = recipe.train
    usual = TrainConfig()
    batch_given = "train.batch_tokens" in asked or train.batch_tokens != usual.batch_tokens
    batch_given = batch_given or (keep_shape and not budget_seconds)
    batch_tokens = train.batch_tokens if batch_given else batch_for(pass_pieces, budget_seconds * speed)
    affordable = max(20, int(training_seconds * speed / batch_tokens)) if budget_seconds else 0
    steps = _steps(train, pass_pieces / batch_tokens, affordable, needed)
    passes = steps * batch_tokens / pass_pieces
    dropout_given = "model.dropout" in asked or model.dropout != ModelConfig().dropout or train.r_drop or vocab_size
    if budget_seconds and not dropout_given and passes < FEW_PASSES:
        model = replace(model, dropout=0.0)
        reasons.append("no dropout: so few passes learn nothing by heart")
    reasons.append(f"{steps:,} steps of {batch_tokens:,} target pieces: {passes:.1f} passes over the data")
    # A warm-up that is asked for is kept, and so is that of the paper's schedule, whose rate it sets.
    warmup_given = "train.warmup_steps" in asked or train.warmup_steps != usual.warmup_steps
    shortened = not warmup_given and train.schedule != "paper"
    warmup = min(train.warmup_steps, max(1, steps // 10)) if shortened else train.warmup_steps
    decay_given = "train.decay_share" in asked or train.decay_share != usual.decay_share
    decay = LONG_DECAY if budget_seconds and not decay_given else train.decay_share
    validate = train.validate_steps or max(1, min(math.ceil(pass_pieces / batch_tokens), math.ceil(steps / 10)))
    planned = replace(
        recipe,
        tokenizer=replace(recipe.tokenizer, vocab_size=0 if vocab_size else pieces),
        model=model,
        train=replace(
            train,
            batch_tokens=batch_tokens,
            max_steps=steps,
            warmup_steps=warmup,
            decay_share=decay,
            validate_steps=validate,
        ),
    )
    seconds = budget_seconds if steps == affordable else steps * batch_tokens / speed
    memory = memory_of(model, batch_tokens, train.micro_batches)
    return Plan(planned, speed, seconds, memory, passes, tuple(reasons))


def _why_this_shape(budgeted: bool, fits: bool, needed: float) -> str:
    if not budgeted:
        return "what so much data can teach"
    if fits:
        return f"the largest that sees the data {needed:.1f} times in the time"
    return f"the smallest, and still too large to see the data {needed:.1f} times in the time"


def needed_passes(pass_pieces: float) -> float:
    """How often a model should see the data at least: small data many times, a large corpus a few."""
    return min(20.0, max(2.0, 3e6 / pass_pieces))


def largest_for(pass_pieces: float) -> int:
    """The highest rung of the ladder that so much data can teach."""
    return sum(pass_pieces > least for least in (30_000, 120_000, 400_000, 2_500_000, 20_000_000))


def batch_for(pass_pieces: float, affordable_pieces: float) -> int:
    """Target pieces a step: few steps waste data, small batches waste the machine."""
    total = affordable_pieces or 12 * pass_pieces
    return int(min(4096, max(512, 256 * round(total / FEWEST_STEPS / 256))))


def _steps(train: TrainConfig, steps_a_pass: float, affordable: int, needed: float) -> int:
    """What is asked for or what the time affords, whichever is less; without either, what the data need."""
    of_epochs = max(20, math.ceil(train.max_epochs * steps_a_pass)) if train.max_epochs else 0
    wanted = [steps for steps in (train.max_steps, of_epochs, affordable) if steps]
    return min(wanted) if wanted else max(20, math.ceil(2 * needed * steps_a_pass))


def _shape(model: ModelConfig) -> str:
    return f"{model.encoder_layers}+{model.decoder_layers} layers, d_model {model.d_model}, d_ff {model.d_ff}"


def parse_duration(text: str) -> float:
    """`90s`, `30m`, `2h`, `1d` or plain minutes -> seconds."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "m")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ConfigError(f"{text!r} is not a time: write 45m, 2h or 1d")
    return seconds
