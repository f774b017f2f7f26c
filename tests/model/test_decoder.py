"""The decoder: it never sees the future, and its cache changes nothing but the work."""

import itertools

import pytest
import torch
from small_shapes import BATCH, SOURCE, TARGET, small_config, source_and_target
from torch import Tensor

from dragoman.model.decoder import Decoder, DecoderBlock, Memory
from dragoman.model.mask import padding_mask
from dragoman.model.record import Record

D_MODEL = 34
ORDERS = ["post", "pre"]


def decoder_and_inputs(order: str = "post") -> tuple[Decoder, Tensor, Memory]:
    decoder = Decoder(small_config(norm_order=order))
    source_BS, _ = source_and_target()
    memory = decoder.remember(torch.randn(BATCH, SOURCE, D_MODEL), padding_mask(source_BS, padding_id=0))
    return decoder, torch.randn(BATCH, TARGET, D_MODEL), memory


def test_the_stack_has_as_many_blocks_as_the_config_says() -> None:
    assert len(Decoder(small_config(encoder_layers=2, decoder_layers=5)).blocks) == 5


def test_a_post_norm_block_is_the_right_of_figure_1() -> None:
    block, x_BTD = DecoderBlock(small_config()), torch.randn(BATCH, TARGET, D_MODEL)
    memory = block.cross_attention.project_memory(torch.randn(BATCH, SOURCE, D_MODEL))
    query, own = block.self_attention.project(x_BTD)
    y_BTD = block.self_attention_residual.norm(x_BTD + block.self_attention.attend(query, own, causal=True))
    query = block.cross_attention.project_query(y_BTD)
    z_BTD = block.cross_attention_residual.norm(y_BTD + block.cross_attention.attend(query, memory))
    wanted_BTD = block.feed_forward_residual.norm(z_BTD + block.feed_forward(z_BTD))
    torch.testing.assert_close(block(x_BTD, memory)[0], wanted_BTD)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_target_position_never_sees_the_future(order: str, recorded: bool) -> None:
    decoder, x_BTD, memory = decoder_and_inputs(order)
    for position in (1, 5, TARGET - 1):
        changed_BTD = x_BTD.clone()
        changed_BTD[:, position:] = torch.randn(BATCH, TARGET - position, D_MODEL)
        before = decoder(x_BTD, memory, record=Record() if recorded else None).hidden_BTD
        after = decoder(changed_BTD, memory, record=Record() if recorded else None).hidden_BTD
        assert torch.equal(before[:, :position], after[:, :position])
        assert not torch.isclose(before[:, position:], after[:, position:]).all(dim=-1).any()


def test_a_gradient_never_reaches_the_future() -> None:
    decoder, x_BTD, memory = decoder_and_inputs()
    x_BTD.requires_grad_()
    decoder(x_BTD, memory).hidden_BTD[:, 5].square().sum().backward(retain_graph=True)
    assert x_BTD.grad is not None
    assert x_BTD.grad.any(dim=-1).all(dim=0).tolist() == [position <= 5 for position in range(TARGET)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cuts", [list(range(TARGET + 1)), [0, 5, 7, TARGET], [0, 1, TARGET]])
def test_decoding_in_parts_with_a_cache_equals_decoding_at_once(order: str, cuts: list[int]) -> None:
    decoder, x_BTD, memory = decoder_and_inputs(order)
    whole = decoder(x_BTD, memory)
    parts, cache = [], ()
    for start, end in itertools.pairwise(cuts):
        decoded = decoder(x_BTD[:, start:end], memory, cache)
        parts.append(decoded.hidden_BTD)
        cache = decoded.cache
    torch.testing.assert_close(torch.cat(parts, dim=1), whole.hidden_BTD, atol=1e-5, rtol=1e-5)
    for ours, wanted in zip(cache, whole.cache, strict=True):
        torch.testing.assert_close(ours.key_BHKC, wanted.key_BHKC, atol=1e-5, rtol=1e-5)


def test_the_source_is_projected_once_for_every_block() -> None:
    _, _, memory = decoder_and_inputs()
    assert [tuple(block.key_BHKC.shape) for block in memory.blocks] == [(BATCH, 3, SOURCE, 5)] * 3
    assert [tuple(block.value_BHKC.shape) for block in memory.blocks] == [(BATCH, 3, SOURCE, 7)] * 3


def test_what_stands_in_the_sources_padding_does_not_matter() -> None:
    decoder, x_BTD, _ = decoder_and_inputs()
    source_BS, _ = source_and_target()
    mask_B11S, encoded_BSD = padding_mask(source_BS, padding_id=0), torch.randn(BATCH, SOURCE, D_MODEL)
    other_BSD = torch.where(mask_B11S[:, 0, 0, :, None], encoded_BSD, torch.full_like(encoded_BSD, 7.0))
    outputs = [decoder(x_BTD, decoder.remember(each, mask_B11S)).hidden_BTD for each in (encoded_BSD, other_BSD)]
    torch.testing.assert_close(*outputs)


def test_memory_rows_are_selected_with_their_mask() -> None:
    _, _, memory = decoder_and_inputs()
    picked = memory.select(torch.tensor([1, 1, 0]))
    assert torch.equal(picked.mask_B11S, memory.mask_B11S[[1, 1, 0]])
    for ours, whole in zip(picked.blocks, memory.blocks, strict=True):
        assert torch.equal(ours.key_BHKC, whole.key_BHKC[[1, 1, 0]])
        assert torch.equal(ours.value_BHKC, whole.value_BHKC[[1, 1, 0]])


def test_recording_changes_no_number_and_notes_both_attentions() -> None:
    decoder, x_BTD, memory = decoder_and_inputs()
    record = Record()
    recorded = decoder(x_BTD, memory, record=record).hidden_BTD
    torch.testing.assert_close(recorded, decoder(x_BTD, memory).hidden_BTD, atol=1e-5, rtol=1e-5)
    for block in range(3):
        assert record.tensors[f"{block}.self_attention.weights"].shape == (BATCH, 3, TARGET, TARGET)
        assert record.tensors[f"{block}.cross_attention.weights"].shape == (BATCH, 3, TARGET, SOURCE)
        assert not record.tensors[f"{block}.cross_attention.weights"][1, :, :, 7:].any()
