"""The RNN translator: its parts against torch's and against the equations, and what it shares with the Transformer."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from small_shapes import BATCH, SOURCE, TARGET, VOCABULARY, real_ids, source_and_target
from torch import Tensor, nn

from dragoman.config import PRESETS, ModelConfig
from dragoman.errors import ConfigError, DragomanError, LengthError
from dragoman.model.attention import attention, dot_product
from dragoman.model.build import build_model
from dragoman.model.record import Record
from dragoman.model.recurrent import RecurrentTranslator
from dragoman.model.recurrent_attention import AdditiveAttention
from dragoman.model.recurrent_cell import CELLS, Carry
from dragoman.model.recurrent_decoder import RecurrentState, maxout
from dragoman.model.recurrent_encoder import Annotations, BidirectionalEncoder
from dragoman.model.transformer import Transformer
from dragoman.recipe import SearchConfig
from dragoman.search.beam import search

KINDS = [(cell, look) for cell in ("gru", "lstm") for look in ("additive", "dot", "none")]
any_kind = pytest.mark.parametrize(("cell", "look"), KINDS)
PADDING, BEGIN, END = 0, 1, 2


def recurrent_config(cell: str = "gru", look: str = "additive", **changes: Any) -> ModelConfig:
    """19 units each way, embeddings of 13, an alignment of 7 and values of 11."""
    shape = {"vocab_size": VOCABULARY, "d_model": 13, "d_ff": 19, "d_k": 7, "d_v": 11, "dropout": 0.0, "max_length": 23}
    fixed = {"architecture": "recurrent", "num_heads": 1, "encoder_layers": 1, "decoder_layers": 1}
    return ModelConfig(**{**shape, **fixed, "recurrent_cell": cell, "recurrent_attention": look, **changes})


def make(cell: str = "gru", look: str = "additive", **changes: Any) -> RecurrentTranslator:
    model = build_model(recurrent_config(cell, look, **changes))
    assert isinstance(model, RecurrentTranslator)
    return model.eval()


def written(model: RecurrentTranslator, state: RecurrentState, target_BT: Tensor) -> tuple[Tensor, RecurrentState]:
    """The logits of each step of writing a target piece by piece, and the last state."""
    rows = []
    for last_B in target_BT.unbind(1):
        step = model.step(last_B, state)
        rows.append(step.logits_BV)
        state = step.state
    return torch.stack(rows, dim=1), state


# The cells


@pytest.mark.parametrize("cell", CELLS)
def test_a_step_is_that_of_torchs_cell_with_the_same_weights(cell: str) -> None:
    theirs = {"gru": nn.GRUCell, "lstm": nn.LSTMCell}[cell](5, 7)
    x, state, memory = torch.randn(3, 5), torch.randn(3, 7), torch.randn(3, 7)
    carry: Carry = (state,) if cell == "gru" else (state, memory)
    input_BG = nn.functional.linear(x, theirs.weight_ih, theirs.bias_ih)
    hidden_BG = nn.functional.linear(state, theirs.weight_hh, theirs.bias_hh)
    ours = CELLS[cell].step(input_BG, hidden_BG, carry)
    expected = theirs(x, state) if cell == "gru" else theirs(x, (state, memory))
    for one, other in zip(ours, expected if cell == "lstm" else (expected,), strict=True):
        torch.testing.assert_close(one, other)


def test_a_gru_whose_gate_keeps_all_stays_and_one_whose_gate_keeps_nothing_takes_the_new() -> None:
    state = torch.tensor([[0.25, -0.5]])
    for gate, expected in ((60.0, state), (-60.0, torch.tanh(torch.tensor([[1.0, 2.0]])))):
        input_BG = torch.tensor([[-60.0, -60.0, gate, gate, 1.0, 2.0]])  # nothing of the state passes the reset gate
        hidden_BG = torch.tensor([[0.0, 0.0, 0.0, 0.0, 9.0, 9.0]])
        torch.testing.assert_close(CELLS["gru"].step(input_BG, hidden_BG, (state,))[0], expected)


# The encoder


def read_by_hand(encoder: BidirectionalEncoder, cell: str, x_SD: Tensor) -> Tensor:
    """Both directions of one unpadded sentence, a step at a time: (S, J)."""
    directions = []
    for end, order in (("", x_SD), ("_reverse", x_SD.flip(0))):
        weights = {
            kind: getattr(encoder.rnn, f"{kind}_l0{end}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
        carry = CELLS[cell].begin(torch.zeros(1, weights["weight_hh"].shape[1]))
        states = []
        for x_D in order:
            input_BG = nn.functional.linear(x_D[None], weights["weight_ih"], weights["bias_ih"])
            hidden_BG = nn.functional.linear(carry[0], weights["weight_hh"], weights["bias_hh"])
            carry = CELLS[cell].step(input_BG, hidden_BG, carry)
            states.append(carry[0][0])
        directions.append(torch.stack(states if not end else states[::-1]))
    return torch.cat(directions, dim=-1)


@pytest.mark.parametrize("cell", CELLS)
def test_the_annotations_are_the_states_of_both_directions_whatever_the_padding(cell: str) -> None:
    encoder = BidirectionalEncoder(recurrent_config(cell))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(std=0.5)
    x_BSD = torch.randn(BATCH, SOURCE, 13)
    mask_BS = torch.arange(SOURCE) < torch.tensor([[SOURCE], [7]])
    h_BSJ = encoder(x_BSD, mask_BS).h_BSJ
    for row, length in enumerate((SOURCE, 7)):
        torch.testing.assert_close(h_BSJ[row, :length], read_by_hand(encoder, cell, x_BSD[row, :length]))
    assert h_BSJ[1, 7:].eq(0).all()


def test_the_annotations_are_those_of_torchs_bidirectional_gru_with_copied_weights() -> None:
    encoder, theirs = BidirectionalEncoder(recurrent_config()), nn.GRU(13, 19, batch_first=True, bidirectional=True)
    encoder.rnn.load_state_dict(theirs.state_dict())
    x_BSD = torch.randn(BATCH, SOURCE, 13)
    mask_BS = torch.arange(SOURCE) < torch.tensor([[SOURCE], [5]])
    h_BSJ = encoder(x_BSD, mask_BS).h_BSJ
    torch.testing.assert_close(h_BSJ[0], theirs(x_BSD[:1])[0][0])
    torch.testing.assert_close(h_BSJ[1, :5], theirs(x_BSD[1:, :5])[0][0])


def test_the_last_words_of_both_networks_are_found_behind_padding() -> None:
    h_BSJ = torch.arange(2 * 3 * 4.0).view(2, 3, 4)
    annotations = Annotations(h_BSJ, torch.tensor([[True, True, True], [True, False, False]]))
    assert annotations.last_forward_BU.tolist() == [[8.0, 9.0], [12.0, 13.0]]
    assert annotations.first_backward_BU.tolist() == [[2.0, 3.0], [14.0, 15.0]]


# The decoder


def test_the_decoder_is_the_printed_equations() -> None:
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    decoder, source_S, target_T = model.decoder, real_ids(1, SOURCE), real_ids(1, 3)
    h_SJ = model.encoder(model.source_embedding(source_S), source_S > 0).h_BSJ[0]
    look = decoder.cross_attention
    assert isinstance(look, AdditiveAttention)
    w, u, v = look.score.w, look.score.u, look.score.v
    state = torch.tanh(decoder.w_start(h_SJ[0, 19:]))
    expected = []
    for y in model.target_embedding(target_T)[0]:
        energy_S = torch.stack([v @ torch.tanh(w(state) + u(h)) for h in h_SJ])
        context = (energy_S.softmax(0)[:, None] * h_SJ).sum(0)
        x_r, x_z, x_n = (decoder.w_input(y) + decoder.w_context(context)).chunk(3)
        h_r, h_z, h_n = decoder.w_state(state).chunk(3)
        reset, keep = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        state = (1 - keep) * torch.tanh(x_n + reset * h_n) + keep * state
        t = decoder.w_readout(torch.cat((state, y, context)))
        expected.append(torch.stack([torch.max(t[2 * j], t[2 * j + 1]) for j in range(13)]))
    torch.testing.assert_close(model.hidden(source_S, target_T)[0], torch.stack(expected))


def test_maxout_takes_the_larger_of_two_neighbours() -> None:
    assert maxout(torch.tensor([[1.0, 2.0, 5.0, -3.0], [-1.0, -2.0, 0.0, 0.0]])).tolist() == [[2.0, 5.0], [-1.0, 0.0]]


def test_the_linear_form_is_attention_with_the_plain_dot_product() -> None:
    model, (source_BS, target_BT) = make("gru", "dot"), source_and_target()
    record = Record()
    model.hidden(source_BS, target_BT, record)
    tensors = {name: record.tensors[f"decoder.0.cross_attention.{name}"][:, 0] for name in ("key", "value", "weights")}
    before_BTU = torch.cat(
        (model.encode(source_BS).carry[0][:, None], record.tensors["decoder.0.state"][:, :-1]), dim=1
    )
    query_BTA = model.decoder.cross_attention.w_q(before_BTU)
    attended = attention(query_BTA, tensors["key"], tensors["value"], (source_BS != PADDING)[:, None], dot_product)
    torch.testing.assert_close(attended.weights, tensors["weights"])
    torch.testing.assert_close(attended.values, record.tensors["decoder.0.cross_attention.mixed"][:, 0])


def test_without_attention_the_source_is_the_last_words_of_both_networks_and_nothing_else() -> None:
    model, (source_BS, _) = make("gru", "none"), source_and_target()
    annotations = model.encoder(model.source_embedding(source_BS), source_BS != PADDING)
    memory = model.encode(source_BS).memory
    assert memory.value_BSC.shape == (BATCH, 1, 2 * 19)
    torch.testing.assert_close(
        memory.value_BSC[1, 0], torch.cat((annotations.h_BSJ[1, 6, :19], annotations.h_BSJ[1, 0, 19:]))
    )


# The same promises as the Transformer's


@any_kind
def test_teacher_forcing_equals_decoding_step_by_step(cell: str, look: str) -> None:
    model, (source_BS, target_BT) = make(cell, look), source_and_target()
    logits_BTV, state = written(model, model.encode(source_BS), target_BT)
    torch.testing.assert_close(logits_BTV, model(source_BS, target_BT))
    assert state.length == TARGET


@any_kind
def test_padding_does_not_change_a_result(cell: str, look: str) -> None:
    model, (source_BS, target_BT) = make(cell, look, encoder_layers=2), source_and_target()
    together = model(source_BS, target_BT)
    torch.testing.assert_close(model(source_BS[1:, :7], target_BT[1:]), together[1:])
    wide_BS = torch.cat((source_BS, source_BS.new_zeros(BATCH, 5)), dim=1)
    torch.testing.assert_close(model(wide_BS, target_BT), together)


@any_kind
def test_a_target_position_never_sees_the_future(cell: str, look: str) -> None:
    model, (source_BS, target_BT) = make(cell, look), source_and_target()
    changed_BT = target_BT.clone()
    changed_BT[:, 5:] = real_ids(BATCH, TARGET - 5)
    before, after = model(source_BS, target_BT), model(source_BS, changed_BT)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.equal(before[:, 5:], after[:, 5:])


@any_kind
def test_selected_rows_go_on_as_if_they_had_always_stood_there(cell: str, look: str) -> None:
    model, (source_BS, target_BT) = make(cell, look), source_and_target()
    rows_B = torch.tensor([1, 1, 0])
    _, state = written(model, model.encode(source_BS), target_BT[:, :3])
    moved, _ = written(model, state.select(rows_B), target_BT[rows_B, 3:])
    torch.testing.assert_close(moved, model(source_BS[rows_B], target_BT[rows_B])[:, 3:])


@any_kind
def test_it_is_searched_with_a_beam(cell: str, look: str) -> None:
    model, source_BS = make(cell, look), source_and_target()[0]
    found = search(model, source_BS, SearchConfig(beam=3, extra_length=2), padding_id=PADDING, begin_id=BEGIN,
                   end_id=END, num_best=2)  # fmt: skip
    for row, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            ids = [*hypothesis.ids, END] if hypothesis.finished else list(hypothesis.ids)
            with torch.inference_mode():
                logits_TV = model(source_BS[row : row + 1], torch.tensor([[BEGIN, *ids[:-1]]]))[0]
            log_probs = logits_TV.log_softmax(-1)[range(len(ids)), ids]
            assert list(hypothesis.piece_log_probabilities) == pytest.approx(log_probs.tolist(), abs=1e-4)


@any_kind
def test_every_weight_learns(cell: str, look: str) -> None:
    model, (source_BS, target_BT) = make(cell, look, output_bias=True, share_embeddings=False), source_and_target()
    model(source_BS, target_BT).logsumexp(-1).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_a_source_that_is_all_padding_is_read_without_a_nan() -> None:
    for look in ("additive", "dot", "none"):
        source_BS, target_BT = source_and_target()
        source_BS[0] = PADDING
        assert make("gru", look)(source_BS, target_BT).isfinite().all()


def test_dropout_is_drawn_in_training_only() -> None:
    model, (source_BS, target_BT) = make(dropout=0.3), source_and_target()
    assert torch.equal(model(source_BS, target_BT), model(source_BS, target_BT))
    model.train()
    assert not torch.equal(model(source_BS, target_BT), model(source_BS, target_BT))


@any_kind
def test_in_bfloat16_it_comes_out_about_the_same(cell: str, look: str) -> None:
    model, (source_BS, target_BT) = make(cell, look), source_and_target()
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(source_BS, target_BT)
    torch.testing.assert_close(rough.float(), model(source_BS, target_BT), atol=0.1, rtol=0.1)


# Recording


@pytest.mark.parametrize("look", ["additive", "dot"])
def test_the_weights_are_recorded_under_the_transformers_names(look: str) -> None:
    model, (source_BS, target_BT) = make("gru", look), source_and_target()
    record = Record()
    recorded_BTL = model.hidden(source_BS, target_BT, record)
    assert torch.equal(recorded_BTL, model.hidden(source_BS, target_BT))
    weights_BHTS = record.tensors["decoder.0.cross_attention.weights"]
    assert weights_BHTS.shape == (BATCH, 1, TARGET, SOURCE)
    torch.testing.assert_close(weights_BHTS.sum(-1), torch.ones(BATCH, 1, TARGET))
    assert weights_BHTS[1, ..., 7:].eq(0).all()
    scores_BHTS = record.tensors["decoder.0.cross_attention.scores"]
    torch.testing.assert_close(scores_BHTS[0].softmax(-1), weights_BHTS[0])
    others = {
        "source.pieces": 13,
        "target.pieces": 13,
        "encoder.annotations": 38,
        "decoder.0.state": 19,
        "decoder.0.readout": 13,
    }
    assert {name: record.tensors[name].shape[-1] for name in others} == others


def test_without_attention_no_weights_are_recorded() -> None:
    record = Record()
    make("gru", "none").hidden(*source_and_target(), record)
    assert not any("cross_attention" in name for name in record.tensors)
    assert record.tensors["decoder.0.state"].shape == (BATCH, TARGET, 19)


# Shapes


def test_one_matrix_serves_source_target_and_output_or_each_has_its_own() -> None:
    shared, apart = make(), make(share_embeddings=False)
    assert shared.output_weight_VD is shared.source_embedding.pieces.weight is shared.target_embedding.pieces.weight
    matrices = {
        id(weight)
        for weight in (
            apart.output_weight_VD,
            apart.source_embedding.pieces.weight,
            apart.target_embedding.pieces.weight,
        )
    }
    assert len(matrices) == 3
    assert apart.output_weight_VD.shape == (VOCABULARY, 19 // 2)


def by_formula(d_model: int, units: int, alignment: int, readout: int) -> int:
    """The weights of the paper's appendix, written out for GRUs with torch's two biases and additive attention."""
    encoder = 2 * 3 * (units * (d_model + units) + 2 * units)
    aligning = alignment * units + alignment + alignment * 2 * units + alignment
    gates = 3 * units * (d_model + units + 2 * units) + 2 * 3 * units
    start, reading_out = units * units + units, 2 * readout * (units + d_model + 2 * units) + 2 * readout
    return encoder + aligning + gates + start + reading_out


def test_the_preset_has_the_sizes_of_bahdanau_cho_and_bengio() -> None:
    config = PRESETS["rnn-attention"].model
    assert (config.d_model, config.d_ff, config.d_k, config.d_readout) == (620, 1000, 1000, 500)
    with torch.device("meta"):
        model = build_model(config)
    assert model.num_parameters(body=True) == by_formula(620, 1000, 1000, 500)
    assert model.num_parameters() == by_formula(620, 1000, 1000, 500) + 30_000 * (620 + 620 + 500)


def test_the_presets_differ_in_their_look_at_the_source() -> None:
    looks = {name: PRESETS[name].model.recurrent_attention for name in ("rnn-attention", "rnn-attention-dot", "rnn")}
    assert looks == {"rnn-attention": "additive", "rnn-attention-dot": "dot", "rnn": "none"}
    assert isinstance(
        build_model(ModelConfig(vocab_size=31, d_model=8, d_ff=7, num_heads=2, encoder_layers=1, decoder_layers=1)),
        Transformer,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 13}, "num_heads is 13, a recurrent model has one: set it to 1, or take the preset rnn-attent"),
        ({"decoder_layers": 2}, "decoder_layers is 2, a recurrent model has one: set it to 1"),
        ({"norm": "rms"}, "norm does nothing in a recurrent model: leave it out, or take a Transformer"),
        ({"attention_dropout": 0.1}, "attention_dropout does nothing in a recurrent model"),
        (
            {"architecture": "transformer", "d_model": 26, "recurrent_cell": "lstm"},
            "recurrent_cell does nothing in a Transformer: leave it out, or take the preset rnn-attention",
        ),
    ],
)  # fmt: skip
def test_a_setting_of_the_other_architecture_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        recurrent_config(**changes)


def test_what_is_too_long_or_no_ids_is_refused_as_by_the_transformer() -> None:
    model = make()
    with pytest.raises(LengthError, match="source has 29 pieces, the model takes at most 23: split the text"):
        model(real_ids(1, 29), real_ids(1, 3))
    with pytest.raises(LengthError, match="target has 24 pieces, the model takes at most 23"):
        written(model, model.encode(real_ids(1, 3)), real_ids(1, 24))
    with pytest.raises(DragomanError, match=re.escape("source ids have shape (5,) and type torch.int64")):
        model(real_ids(1, 5)[0], real_ids(1, 3))


# What attention was invented for


def reversal_batches(length: int, num_steps: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Random pieces, and the same from the last to the first with the begin piece before them."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(num_steps):
        source_BS = torch.randint(3, VOCABULARY, (32, length), generator=draw)
        yield source_BS, torch.cat((torch.full((32, 1), BEGIN), source_BS.flip(1)), dim=1)


def reversal_accuracy(look: str, length: int = 30, num_steps: int = 260) -> float:
    """Learn to reverse, then the share of pieces of unseen sources that are right."""
    torch.manual_seed(3)
    model = make("gru", look, d_model=32, d_ff=48, d_k=48, max_length=64).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    for source_BS, target_BT in reversal_batches(length, num_steps, seed=1):
        logits_BTV = model(source_BS, target_BT[:, :-1])
        loss = nn.functional.cross_entropy(logits_BTV.flatten(0, 1), target_BT[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    source_BS, target_BT = next(reversal_batches(length, 1, seed=2))
    with torch.no_grad():
        right = model.eval()(source_BS, target_BT[:, :-1]).argmax(-1) == target_BT[:, 1:]
    return right.float().mean().item()


def test_with_attention_it_learns_to_reverse_thirty_pieces() -> None:
    assert reversal_accuracy("additive") > 0.9


def test_one_vector_cannot_hold_thirty_pieces() -> None:
    assert reversal_accuracy("none", length=3) > 0.9
    assert reversal_accuracy("none") < 0.3
