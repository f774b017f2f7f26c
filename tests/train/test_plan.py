"""A plan: the largest model that the data can teach and the time allows, with its reasons."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelConfig, preset
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from dragoman.recipe import Recipe, TokenizerConfig, TrainConfig
from dragoman.train.plan import (
    FEW_PASSES,
    LADDER,
    LONG_DECAY,
    DataSize,
    Plan,
    largest_for,
    make_plan,
    measure_operations_per_second,
    memory_of,
    needed_passes,
    operations_per_target_token,
    parse_duration,
)

LEAST_STEPS = 20
RUNGS = [shape["d_model"] for shape in LADDER]

sizes = st.builds(
    lambda pairs, source, target: DataSize(pairs, pairs * source, pairs * target),
    st.integers(53, 5_000_000),
    st.integers(7, 211),
    st.integers(7, 211),
)
speeds = st.floats(1e9, 1e14)
budgets = st.floats(60, 1e6)


def plan_of(data: DataSize, operations_per_second: float = 1e11, recipe: Recipe | None = None, **more: object) -> Plan:
    return make_plan(recipe or Recipe(), data, operations_per_second=operations_per_second, **more)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86_400), ("45", 2700), ("1.5h", 5400), ("0.5", 30)],
)
def test_a_time_is_a_number_and_a_unit_or_plain_minutes(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "soon", "-5m", "0", "0s", "1e999h", "nan", "inf", "5 weeks", "1h30"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_duration(text)
    assert str(caught.value) == f"{text!r} is not a time: write 45m, 2h or 1d"


@given(sizes, speeds, budgets, budgets)
def test_a_larger_budget_never_gives_a_smaller_model(data: DataSize, speed: float, one: float, other: float) -> None:
    small, large = (plan_of(data, speed, budget_seconds=budget).recipe.model for budget in sorted((one, other)))
    assert RUNGS.index(small.d_model) <= RUNGS.index(large.d_model)


@given(sizes, speeds, speeds, budgets)
def test_a_faster_machine_never_gets_a_smaller_model(data: DataSize, one: float, other: float, budget: float) -> None:
    small, large = (plan_of(data, speed, budget_seconds=budget).recipe.model for speed in sorted((one, other)))
    assert RUNGS.index(small.d_model) <= RUNGS.index(large.d_model)


@given(sizes, speeds, budgets)
def test_a_plan_fits_its_budget_by_its_own_figures(data: DataSize, speed: float, budget: float) -> None:
    plan = plan_of(data, speed, budget_seconds=budget)
    train, model = plan.recipe.train, plan.recipe.model
    source_ratio = data.source_characters / data.target_characters
    seconds = train.max_steps * train.batch_tokens * operations_per_target_token(model, source_ratio) / speed
    assert seconds <= 0.94 * budget * (1 + 1e-9) or train.max_steps == LEAST_STEPS
    assert plan.seconds == budget


@given(sizes, speeds, budgets)
def test_steps_that_are_asked_for_hold_beside_a_budget(data: DataSize, speed: float, budget: float) -> None:
    free = plan_of(data, speed, budget_seconds=budget)
    bound = plan_of(data, speed, Recipe(train=TrainConfig(max_steps=31)), budget_seconds=budget)
    assert bound.recipe.train.max_steps == min(31, free.recipe.train.max_steps)
    assert bound.seconds < budget or bound.recipe.train.max_steps == free.recipe.train.max_steps


@given(sizes, speeds, budgets)
def test_a_larger_model_would_not_see_the_data_often_enough_or_is_more_than_they_can_teach(
    data: DataSize, speed: float, budget: float
) -> None:
    plan = plan_of(data, speed, budget_seconds=budget)
    rung = RUNGS.index(plan.recipe.model.d_model)
    pass_pieces = data.target_pieces(plan.recipe.model.vocab_size)
    if rung < largest_for(pass_pieces):
        larger = replace(plan.recipe.model, d_k=None, d_v=None, **LADDER[rung + 1])
        operations = operations_per_target_token(larger, data.source_characters / data.target_characters)
        assert 0.94 * budget * speed / operations / pass_pieces < needed_passes(pass_pieces)


@given(sizes, speeds, st.none() | budgets)
def test_a_plan_leaves_nothing_open_and_says_why(data: DataSize, speed: float, budget: float | None) -> None:
    plan = plan_of(data, speed, budget_seconds=budget or 0.0)
    train, model = plan.recipe.train, plan.recipe.model
    assert train.max_steps >= LEAST_STEPS
    assert train.validate_steps >= 1
    assert train.max_steps >= 9 * train.validate_steps or train.max_steps < 100
    assert 512 <= train.batch_tokens <= 4096
    assert plan.recipe.tokenizer.vocab_size == model.vocab_size > 0
    assert plan.memory_bytes > 0
    assert plan.passes == pytest.approx(train.max_steps * train.batch_tokens / data.target_pieces(model.vocab_size))
    pieces, shape, *forgetful, steps = plan.reasons
    few = bool(budget) and plan.passes < FEW_PASSES
    assert forgetful == ["no dropout: so few passes learn nothing by heart"] * few
    assert model.dropout == (0.0 if few else ModelConfig().dropout)
    assert pieces == f"{model.vocab_size:,} pieces: so many are seen often enough in {data.pairs:,} pairs"
    layers = f"{model.encoder_layers}+{model.decoder_layers} layers, d_model {model.d_model}, d_ff {model.d_ff}: "
    budgeted = ("the largest that sees the data ", "the smallest, and still too large to see the data ")
    assert shape.removeprefix(layers).startswith(budgeted if budget else "what so much data can teach")
    assert steps == (
        f"{train.max_steps:,} steps of {train.batch_tokens:,} target pieces: {plan.passes:.1f} passes over the data"
    )


@given(sizes, sizes, speeds)
def test_more_data_never_gets_a_smaller_model_when_time_does_not_matter(
    one: DataSize, other: DataSize, speed: float
) -> None:
    recipe = Recipe(tokenizer=TokenizerConfig(vocab_size=4001))
    small, large = sorted((one, other), key=lambda data: data.target_pieces(4001))
    rungs = [RUNGS.index(plan_of(data, speed, recipe).recipe.model.d_model) for data in (small, large)]
    assert rungs[0] <= rungs[1]


@given(sizes, speeds, budgets)
def test_a_given_shape_and_batch_are_kept(data: DataSize, speed: float, budget: float) -> None:
    shape = {"d_model": 34, "d_ff": 67, "num_heads": 2, "encoder_layers": 3, "decoder_layers": 2}
    model = ModelConfig(**shape, norm_order="pre", dropout=0.2)
    recipe = Recipe(model=model, train=TrainConfig(batch_tokens=1031))
    plan = plan_of(data, speed, recipe, budget_seconds=budget, keep_shape=True)
    assert replace(plan.recipe.model, vocab_size=model.vocab_size) == model
    assert plan.recipe.train.batch_tokens == 1031


def test_a_given_shape_gets_a_batch_that_leaves_enough_steps_in_the_time() -> None:
    data, short = DataSize(160_001, 6 * 10**6, 5 * 10**6), {"budget_seconds": 600.0, "keep_shape": True}
    planned = plan_of(data, 1e11, Recipe(model=preset("small").model), **short).recipe.train
    assert 512 <= planned.batch_tokens < 4096
    assert planned.max_steps > 1000
    asked = plan_of(data, 1e11, Recipe(model=preset("small").model), **short, asked=("train.batch_tokens",))
    assert asked.recipe.train.batch_tokens == 4096


@pytest.mark.parametrize(
    ("recipe", "more"),
    [
        (Recipe(), {"asked": ("model.dropout",)}),
        (Recipe(train=TrainConfig(r_drop=3.0)), {}),
        (Recipe(), {"vocab_size": 8009}),  # a model that goes on
        (Recipe(), {"budget_seconds": 0.0}),
    ],
)
def test_few_passes_keep_a_dropout_that_something_needs(recipe: Recipe, more: dict[str, object]) -> None:
    data, short = DataSize(160_001, 6 * 10**6, 5 * 10**6), {"budget_seconds": 600.0, "keep_shape": True}
    recipe = replace(recipe, model=preset("small").model)
    assert plan_of(data, 1e11, recipe, **short).recipe.model.dropout == (0.1 if recipe.train.r_drop else 0.0)
    assert plan_of(data, 1e11, recipe, **{**short, **more}).recipe.model.dropout == 0.1


@pytest.mark.parametrize(
    ("settings", "more", "share"),
    [
        ({}, {"budget_seconds": 600.0}, LONG_DECAY),
        ({}, {}, 0.5),
        ({}, {"budget_seconds": 600.0, "asked": ("train.decay_share",)}, 0.5),
        ({"decay_share": 0.3}, {"budget_seconds": 600.0}, 0.3),
    ],
)
def test_the_rate_falls_for_longer_where_the_clock_sets_the_end(
    settings: dict[str, float], more: dict[str, object], share: float
) -> None:
    data = DataSize(160_001, 6 * 10**6, 5 * 10**6)
    assert plan_of(data, recipe=Recipe(train=TrainConfig(**settings)), **more).recipe.train.decay_share == share


def test_a_batch_that_was_asked_for_is_kept_when_the_shape_is_planned() -> None:
    recipe = Recipe(train=TrainConfig(batch_tokens=1031))
    assert plan_of(DataSize(100_003, 10**7, 10**7), recipe=recipe).recipe.train.batch_tokens == 1031


def test_what_is_not_a_matter_of_size_is_kept_when_the_shape_is_planned() -> None:
    recipe = Recipe(model=ModelConfig(norm_order="pre", activation="swiglu", dropout=0.3, d_k=13))
    model = plan_of(DataSize(100_003, 10**7, 10**7), recipe=recipe).recipe.model
    assert (model.norm_order, model.activation, model.dropout) == ("pre", "swiglu", 0.3)
    assert model.d_k == model.d_model // model.num_heads


def test_what_was_asked_for_is_kept_even_where_it_is_the_default() -> None:
    asked = ("model.norm_order", "model.d_k", "train.batch_tokens", "train.warmup_steps")
    recipe = Recipe(model=ModelConfig(norm_order="post", d_k=13))
    plan = plan_of(DataSize(10_007, 10**6, 10**6), 1e10, budget_seconds=100.0, recipe=recipe, asked=asked)
    assert (plan.recipe.model.norm_order, plan.recipe.model.d_k) == ("post", 13)
    assert (plan.recipe.train.batch_tokens, plan.recipe.train.warmup_steps) == (4096, 400)


@pytest.mark.parametrize(
    ("settings", "steps"),
    [({"max_steps": 137}, 137), ({"max_epochs": 3.0}, None), ({"max_steps": 137, "max_epochs": 3.0}, 137)],
)
def test_steps_or_epochs_that_were_asked_for_are_kept(settings: dict[str, float], steps: int | None) -> None:
    data = DataSize(100_003, 10**7, 10**7)
    plan = plan_of(data, recipe=Recipe(train=TrainConfig(**settings)), keep_shape=True)
    wanted = steps or math.ceil(3 * data.target_pieces(plan.recipe.model.vocab_size) / 4096)
    assert plan.recipe.train.max_steps == wanted


def test_validations_that_were_asked_for_are_kept() -> None:
    plan = plan_of(DataSize(100_003, 10**7, 10**7), recipe=Recipe(train=TrainConfig(validate_steps=37)))
    assert plan.recipe.train.validate_steps == 37


def test_a_short_run_leaves_its_warmup_without_a_budget_too() -> None:
    plan = plan_of(DataSize(1_000_003, 10**8, 10**8), recipe=Recipe(train=TrainConfig(max_steps=60)))
    assert plan.recipe.train.warmup_steps == plan.recipe.train.max_steps // 10


def test_in_a_short_budget_the_warmup_is_no_longer_than_a_tenth() -> None:
    plan = plan_of(DataSize(10_007, 10**6, 10**6), 1e10, budget_seconds=100.0)
    train = plan.recipe.train
    assert train.max_steps < 4000
    assert train.warmup_steps == train.max_steps // 10


@pytest.mark.parametrize("given", [TrainConfig(warmup_steps=3000), TrainConfig(schedule="paper")])
def test_a_warmup_that_is_asked_for_or_sets_the_rate_is_kept(given: TrainConfig) -> None:
    plan = plan_of(DataSize(10_007, 10**6, 10**6), 1e10, budget_seconds=100.0, recipe=Recipe(train=given))
    assert plan.recipe.train.warmup_steps == given.warmup_steps


def test_given_pieces_are_not_learned_again() -> None:
    plan = plan_of(DataSize(10_007, 10**6, 10**6), keep_shape=True, vocab_size=1009)
    assert plan.recipe.model.vocab_size == 1009
    assert plan.recipe.tokenizer.vocab_size == 0
    assert not any("pieces:" in reason and "seen often" in reason for reason in plan.reasons)


def test_a_plan_comes_back_from_its_mapping() -> None:
    plan = plan_of(DataSize(10_007, 10**6, 10**6), budget_seconds=600.0)
    assert Plan.from_mapping(plan.to_mapping()) == plan


@pytest.mark.parametrize("lengths", [(11, 13), (5, 13), (13, 5)])
@pytest.mark.parametrize("changes", [{}, {"activation": "swiglu"}, {"share_embeddings": False}])
def test_operations_are_those_that_torch_counts(lengths: tuple[int, int], changes: dict[str, object]) -> None:
    shape = {"d_model": 34, "d_ff": 67, "num_heads": 2, "encoder_layers": 3, "decoder_layers": 2, "dropout": 0.0}
    config = ModelConfig(vocab_size=211, **{**shape, **changes})
    model = Transformer(config)
    source, target = lengths
    source_BS, target_BT = (torch.randint(3, 211, (7, length)) for length in lengths)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(source_BS, target_BT).flatten(0, 1), target_BT.flatten()).backward()
    # Within what the attention scores take, which grow with the length and are small for sentences.
    counted = counter.get_total_flops() / target_BT.numel()
    assert operations_per_target_token(config, source / target) == pytest.approx(counted, rel=0.05)


def test_memory_grows_with_the_batch_and_shrinks_with_micro_batches() -> None:
    config = ModelConfig(vocab_size=8009, **LADDER[3])
    assert memory_of(config, 4096) > memory_of(config, 2048) == memory_of(config, 4096, micro_batches=2)


@pytest.mark.parametrize("changes", [{}, {"share_embeddings": False, "position": "learned", "attention_bias": True}])
def test_memory_holds_every_weight_its_gradient_and_two_moments(changes: dict[str, object]) -> None:
    shape = {"d_model": 34, "d_ff": 67, "num_heads": 2, "encoder_layers": 3, "decoder_layers": 2}
    small, large = (ModelConfig(vocab_size=vocab_size, **shape, **changes) for vocab_size in (211, 10_007))
    more = Transformer(large).num_parameters() - Transformer(small).num_parameters()
    # And once more, for what a step makes on its way.
    assert memory_of(large, 512) - memory_of(small, 512) == 5 * 4 * more


def test_the_machine_is_measured_in_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.train.plan.LADDER", LADDER[:1] * len(LADDER))  # the smallest takes no time
    assert 1e7 < measure_operations_per_second(seconds=0.0) < 1e16
