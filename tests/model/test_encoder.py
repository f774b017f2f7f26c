"""The encoder: what a stack of self-attention and feed-forward must and must not see."""

import pytest
import torch
from small_shapes import BATCH, SOURCE, small_config, source_and_target
from torch import Tensor

from dragoman.model.encoder import Encoder, EncoderBlock
from dragoman.model.mask import padding_mask
from dragoman.model.record import Record

D_MODEL = 34
ORDERS = ["post", "pre"]


def padded_input() -> tuple[Tensor, Tensor]:
    source_BS, _ = source_and_target()
    return torch.randn(BATCH, SOURCE, D_MODEL), padding_mask(source_BS, padding_id=0)


def test_the_stack_has_as_many_blocks_as_the_config_says() -> None:
    assert len(Encoder(small_config(encoder_layers=5, decoder_layers=3)).blocks) == 5


def test_a_post_norm_block_is_the_left_of_figure_1() -> None:
    block, x_BSD = EncoderBlock(small_config()), torch.randn(BATCH, SOURCE, D_MODEL)
    query, memory = block.self_attention.project(x_BSD)
    y_BSD = block.self_attention_residual.norm(x_BSD + block.self_attention.attend(query, memory))
    torch.testing.assert_close(block(x_BSD), block.feed_forward_residual.norm(y_BSD + block.feed_forward(y_BSD)))


def test_a_pre_norm_block_norms_what_its_sublayers_read() -> None:
    block, x_BSD = EncoderBlock(small_config(norm_order="pre")), torch.randn(BATCH, SOURCE, D_MODEL)
    query, memory = block.self_attention.project(block.self_attention_residual.norm(x_BSD))
    y_BSD = x_BSD + block.self_attention.attend(query, memory)
    torch.testing.assert_close(block(x_BSD), y_BSD + block.feed_forward(block.feed_forward_residual.norm(y_BSD)))


@pytest.mark.parametrize("order", ORDERS)
def test_the_stack_ends_normed_once_and_not_twice(order: str) -> None:
    encoder = Encoder(small_config(norm_order=order))
    output_BSD = encoder(torch.randn(BATCH, SOURCE, D_MODEL))
    torch.testing.assert_close(output_BSD.mean(dim=-1), torch.zeros(BATCH, SOURCE), atol=1e-5, rtol=0)
    norms = [name for name, _ in encoder.named_modules() if name.rpartition(".")[2] == "norm"]
    assert isinstance(encoder.norm, torch.nn.Identity) == (order == "post")
    assert len(norms) == 2 * 2 + 1


@pytest.mark.parametrize("order", ORDERS)
def test_without_positions_it_is_permutation_equivariant(order: str) -> None:
    encoder, x_BSD = Encoder(small_config(norm_order=order)), torch.randn(BATCH, SOURCE, D_MODEL)
    order_S = torch.randperm(SOURCE)
    torch.testing.assert_close(encoder(x_BSD)[:, order_S], encoder(x_BSD[:, order_S]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_what_stands_in_the_padding_does_not_matter(order: str) -> None:
    encoder = Encoder(small_config(norm_order=order))
    x_BSD, mask_B11S = padded_input()
    other_BSD = torch.where(mask_B11S[:, 0, 0, :, None], x_BSD, torch.full_like(x_BSD, 7.0))
    real_BS = mask_B11S[:, 0, 0]
    torch.testing.assert_close(encoder(x_BSD, mask_B11S)[real_BS], encoder(other_BSD, mask_B11S)[real_BS])


def test_a_sentence_does_not_see_its_neighbour_in_the_batch() -> None:
    encoder, (x_BSD, mask_B11S) = Encoder(small_config()), padded_input()
    alone_BSD = encoder(x_BSD[1:, :7])
    torch.testing.assert_close(encoder(x_BSD, mask_B11S)[1:, :7], alone_BSD, atol=1e-5, rtol=1e-5)


def test_recording_changes_no_number_and_notes_every_block() -> None:
    encoder, (x_BSD, mask_B11S) = Encoder(small_config()), padded_input()
    record = Record()
    torch.testing.assert_close(
        encoder(x_BSD, mask_B11S, record.within("encoder")), encoder(x_BSD, mask_B11S), atol=1e-5, rtol=1e-5
    )
    for block in range(2):
        weights_BHQK = record.tensors[f"encoder.{block}.self_attention.weights"]
        assert weights_BHQK.shape == (BATCH, 3, SOURCE, SOURCE)
        assert not weights_BHQK[1, :, :, 7:].any()
        assert f"encoder.{block}.feed_forward_residual.output" in record.tensors
