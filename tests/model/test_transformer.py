"""The whole model: Figure 1, from ids to logits."""

import re

import pytest
import torch
from small_shapes import BATCH, SOURCE, TARGET, VOCABULARY, real_ids, small_config, source_and_target
from torch import Tensor

from dragoman.errors import DragomanError, LengthError
from dragoman.model.record import Record
from dragoman.model.transformer import State, Transformer

OPTIONS = {
    "as printed": {},
    "pre-norm": {"norm_order": "pre"},
    "RMSNorm": {"norm": "rms", "norm_order": "pre"},
    "learned positions": {"position": "learned"},
    "sines then cosines": {"position": "sinusoid-halves"},
    "biases": {"attention_bias": True, "output_bias": True},
    "separate embeddings": {"share_embeddings": False},
    "GELU": {"activation": "gelu"},
    "SwiGLU": {"activation": "swiglu"},
}
every_option = pytest.mark.parametrize("option", OPTIONS)


def make(**changes: object) -> Transformer:
    return Transformer(small_config(**changes)).eval()


# From ids to logits


@every_option
def test_logits_of_every_piece_at_every_target_position(option: str) -> None:
    assert make(**OPTIONS[option])(*source_and_target()).shape == (BATCH, TARGET, VOCABULARY)


@every_option
def test_gradients_reach_every_parameter(option: str) -> None:
    model = make(**OPTIONS[option]).train()
    (model(*source_and_target()) * torch.randn(BATCH, TARGET, VOCABULARY)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_one_matrix_embeds_source_and_target_and_gives_the_logits() -> None:
    model = make()
    assert model.source_embedding.pieces.weight is model.target_embedding.pieces.weight
    hidden_BTD = torch.randn(BATCH, TARGET, 34)
    torch.testing.assert_close(model.logits(hidden_BTD), hidden_BTD @ model.source_embedding.pieces.weight.T)
    assert model.num_parameters() - model.num_parameters(body=True) == VOCABULARY * 34


def test_separate_embeddings_have_a_matrix_a_side() -> None:
    model = make(share_embeddings=False)
    assert model.source_embedding.pieces.weight is not model.target_embedding.pieces.weight
    assert model.num_parameters() - model.num_parameters(body=True) == 2 * VOCABULARY * 34
    hidden_BTD = torch.randn(BATCH, TARGET, 34)
    torch.testing.assert_close(model.logits(hidden_BTD), hidden_BTD @ model.target_embedding.pieces.weight.T)


def test_pieces_are_multiplied_by_the_root_of_d_model_and_positions_added() -> None:
    model, (source_BS, _) = make(), source_and_target()
    embedding = model.source_embedding
    wanted_BSD = embedding.pieces.weight[source_BS] * 34**0.5 + embedding.position(SOURCE)
    torch.testing.assert_close(embedding(source_BS), wanted_BSD)


def test_embedded_pieces_start_with_unit_variance() -> None:
    model = make(vocab_size=1009)
    scaled_VD = model.source_embedding.pieces.weight * model.source_embedding.scale
    assert scaled_VD.std().item() == pytest.approx(1.0, abs=0.03)


def test_an_output_bias_is_added_to_the_logits() -> None:
    model = make(output_bias=True)
    torch.nn.init.normal_(model.output_bias_V)
    hidden_D = torch.randn(34)
    wanted_V = model.target_embedding.pieces.weight @ hidden_D + model.output_bias_V
    torch.testing.assert_close(model.logits(hidden_D), wanted_V)


def test_dropout_falls_on_embedding_plus_position() -> None:
    model, (source_BS, _) = make(dropout=0.5), source_and_target()
    whole_BSD, dropped_BSD = model.source_embedding(source_BS), model.source_embedding.train()(source_BS)
    kept_BSD = dropped_BSD != 0
    assert 0.3 < kept_BSD.float().mean() < 0.7
    torch.testing.assert_close(dropped_BSD[kept_BSD], 2 * whole_BSD[kept_BSD])


@every_option
def test_training_without_dropout_computes_what_evaluation_does(option: str) -> None:
    model, batch = make(**OPTIONS[option]), source_and_target()
    assert torch.equal(model(*batch), model.train()(*batch))


def test_a_saved_model_is_the_same_model() -> None:
    model, other, batch = make(position="learned"), make(position="learned"), source_and_target()
    assert not torch.equal(model(*batch), other(*batch))
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(*batch), other(*batch))


# Who sees whom


@every_option
def test_a_later_target_piece_changes_no_earlier_output_exactly(option: str) -> None:
    model, (source_BS, target_BT) = make(**OPTIONS[option]), source_and_target()
    changed_BT = target_BT.clone()
    changed_BT[:, 5:] = real_ids(BATCH, TARGET - 5)
    before, after = model(source_BS, target_BT), model(source_BS, changed_BT)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.equal(before[:, 5:], after[:, 5:])


@every_option
def test_padding_does_not_change_a_translation(option: str) -> None:
    model, (source_BS, target_BT) = make(**OPTIONS[option]), source_and_target()
    padded_BS = torch.cat((source_BS, source_BS.new_zeros(BATCH, 5)), dim=1)
    torch.testing.assert_close(model(padded_BS, target_BT), model(source_BS, target_BT), atol=1e-5, rtol=1e-5)


def test_the_padding_piece_is_the_one_of_the_config() -> None:
    model, source_BS, target_BT = make(padding_id=29), real_ids(BATCH, 7) % 29, real_ids(BATCH, TARGET)
    padded_BS = torch.cat((source_BS, torch.full((BATCH, 5), 29)), dim=1)
    torch.testing.assert_close(model(padded_BS, target_BT), model(source_BS, target_BT), atol=1e-5, rtol=1e-5)


def test_a_sentence_is_translated_as_if_it_were_alone() -> None:
    model, (source_BS, target_BT) = make(), source_and_target()
    together = model(source_BS, target_BT)
    torch.testing.assert_close(together[:1], model(source_BS[:1], target_BT[:1]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(together[1:], model(source_BS[1:, :7], target_BT[1:]), atol=1e-5, rtol=1e-5)


def test_positions_make_the_order_of_the_source_matter() -> None:
    model, (source_BS, target_BT) = make(), source_and_target()
    assert not torch.allclose(model(source_BS[:1].flip(1), target_BT[:1]), model(source_BS[:1], target_BT[:1]))


@pytest.mark.parametrize("recorded", [False, True])
def test_a_source_of_padding_alone_makes_no_nan(recorded: bool) -> None:
    model, (source_BS, target_BT) = make().train(), source_and_target()
    whole = model(source_BS, target_BT)
    source_BS[1] = 0
    logits_BTV = model.logits(model.hidden(source_BS, target_BT, Record() if recorded else None))
    (logits_BTV * torch.randn_like(logits_BTV)).sum().backward()
    assert logits_BTV.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    torch.testing.assert_close(logits_BTV[0], whole[0], atol=1e-5, rtol=1e-5)


# Writing piece by piece


def written(model: Transformer, state: State, target_BT: Tensor) -> tuple[Tensor, State]:
    """The logits (B, T, V) after each piece of the target, one step at a time."""
    logits = []
    for last_B in target_BT.T:
        step = model.step(last_B, state)
        logits.append(step.logits_BV)
        state = step.state
    return torch.stack(logits, dim=1), state


@every_option
def test_cached_decoding_equals_decoding_from_scratch(option: str) -> None:
    model, (source_BS, target_BT) = make(**OPTIONS[option]), source_and_target()
    step_by_step, state = written(model, model.encode(source_BS), target_BT)
    torch.testing.assert_close(step_by_step, model(source_BS, target_BT), atol=1e-5, rtol=1e-5)
    assert state.length == TARGET


def test_a_step_leaves_the_state_it_started_from_as_it_was() -> None:
    model, (source_BS, target_BT) = make(), source_and_target()
    _, state = written(model, model.encode(source_BS), target_BT[:, :5])
    first, second = (model.step(target_BT[:, 5], state).logits_BV for _ in range(2))
    assert torch.equal(first, second)
    assert state.length == 5


def test_selecting_rows_of_a_state_reorders_what_is_written() -> None:
    model, (source_BS, target_BT) = make(), source_and_target()
    rows_B = torch.tensor([1, 0, 1])
    _, state = written(model, model.encode(source_BS), target_BT[:, :5])
    rest, _ = written(model, state.select(rows_B), target_BT[rows_B, 5:])
    wanted = model(source_BS[rows_B], target_BT[rows_B])[:, 5:]
    torch.testing.assert_close(rest, wanted, atol=1e-5, rtol=1e-5)


def test_rows_may_be_selected_before_anything_is_written() -> None:
    model, (source_BS, target_BT) = make(), source_and_target()
    state = model.encode(source_BS).select(torch.tensor([1]))
    assert state.length == 0
    torch.testing.assert_close(
        written(model, state, target_BT[1:])[0], model(source_BS[1:], target_BT[1:]), atol=1e-5, rtol=1e-5
    )


# The record


def test_recording_changes_no_number_and_holds_both_stacks() -> None:
    model, batch = make(), source_and_target()
    record = Record()
    torch.testing.assert_close(model.hidden(*batch, record), model.hidden(*batch), atol=1e-5, rtol=1e-5)
    attentions = {name.removesuffix(".weights") for name in record.tensors if name.endswith(".weights")}
    assert attentions == {
        *(f"encoder.{block}.self_attention" for block in range(2)),
        *(f"decoder.{block}.{kind}_attention" for block in range(3) for kind in ("self", "cross")),
    }
    for side, length in (("source", SOURCE), ("target", TARGET)):
        assert record.tensors[f"{side}.pieces"].shape == (BATCH, length, 34)
        assert record.tensors[f"{side}.position"].shape == (length, 34)


def test_two_records_of_two_sentences_hold_nothing_of_each_other() -> None:
    model, (source_BS, target_BT) = make(), source_and_target()
    first, second = Record(), Record()
    model.hidden(source_BS, target_BT, first)
    kept = {name: tensor.clone() for name, tensor in first.tensors.items()}
    model.hidden(source_BS[:, :3], target_BT[:, :3], second)
    assert all(torch.equal(first.tensors[name], tensor) for name, tensor in kept.items())
    assert second.tensors["encoder.0.self_attention.weights"].shape[-1] == 3


# Half precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_runs_forward_and_backward_and_stays_close(dtype: torch.dtype) -> None:
    model, batch = make(), source_and_target()
    exact = model(*batch)
    model.to(dtype)
    half = model(*batch)
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), exact, atol=0.1, rtol=0.1)
    half.float().square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_trains_with_every_dropout_and_no_nan(dtype: torch.dtype) -> None:
    model = make(dropout=0.3, attention_dropout=0.1, activation_dropout=0.1).train().to(dtype)
    source_BS, target_BT = source_and_target()
    source_BS[1] = 0
    logits = model(source_BS, target_BT)
    logits.float().square().mean().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


# What is refused


def test_a_source_that_is_too_long_is_refused_with_what_to_do() -> None:
    message = "source has 29 pieces, the model takes at most 23: split the text or train with a larger max_length"
    with pytest.raises(LengthError, match=re.escape(message)):
        make().encode(real_ids(BATCH, 29))


def test_a_target_that_is_too_long_is_refused_with_what_to_do() -> None:
    message = "target has 29 pieces, the model takes at most 23: split the text or train with a larger max_length"
    with pytest.raises(LengthError, match=re.escape(message)):
        make()(real_ids(BATCH, SOURCE), real_ids(BATCH, 29))


def test_a_source_and_a_target_of_the_greatest_length_are_taken() -> None:
    assert make()(real_ids(BATCH, 23), real_ids(BATCH, 23)).shape == (BATCH, 23, VOCABULARY)


def test_a_step_beyond_the_greatest_length_is_refused() -> None:
    model, target_BT = make(), real_ids(BATCH, 23)
    _, state = written(model, model.encode(real_ids(BATCH, SOURCE)), target_BT)
    with pytest.raises(LengthError, match="target has 24 pieces, the model takes at most 23"):
        model.step(target_BT[:, 0], state)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("ids", "got"),
    [
        (torch.ones(2, 7), "shape (2, 7) and type torch.float32"),
        (torch.ones(7, dtype=torch.int64), "shape (7,) and type torch.int64"),
        (torch.ones(2, 7, 3, dtype=torch.int64), "shape (2, 7, 3) and type torch.int64"),
    ],
)
def test_what_is_not_a_batch_of_ids_is_refused(side: str, ids: Tensor, got: str) -> None:
    batch = {"source_BS": real_ids(BATCH, SOURCE), "target_BT": real_ids(BATCH, TARGET)}
    batch["source_BS" if side == "source" else "target_BT"] = ids
    message = f"{side} ids have {got}, expected whole numbers of shape (batch, length)"
    with pytest.raises(DragomanError, match=re.escape(message)):
        make()(**batch)
