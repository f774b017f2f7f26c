"""An outside reference: the same weights in `torch.nn`'s own modules give the same outputs and gradients."""

from collections.abc import Iterator

import pytest
import torch
from small_shapes import BATCH, SOURCE, TARGET, small_config, source_and_target
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.decoder import Decoder
from dragoman.model.encoder import Encoder
from dragoman.model.mask import causal_mask, padding_mask
from dragoman.model.multi_head import MultiHeadAttention
from dragoman.model.record import Record
from dragoman.model.transformer import Transformer

D_MODEL, HEADS, D_FF = 15, 3, 19
SHAPES = [(order, activation) for order in ("post", "pre") for activation in ("relu", "gelu")]
every_shape = pytest.mark.parametrize(("order", "activation"), SHAPES)


def config(order: str = "post", activation: str = "relu") -> ModelConfig:
    """A shape that torch.nn has as well: heads that divide d_model among them, biases everywhere."""
    return small_config(
        d_model=D_MODEL, num_heads=HEADS, d_k=5, d_v=5, d_ff=D_FF, attention_bias=True,
        norm_order=order, activation=activation, position="learned",
    )  # fmt: skip


def pairs(ours: nn.Module, theirs: nn.Module) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
    """Each of our parameters beside the one of torch.nn that means the same."""
    if isinstance(ours, MultiHeadAttention):
        yield ours.w_qkv, theirs.in_proj_weight
        yield ours.b_qkv, theirs.in_proj_bias
        yield from pairs(ours.w_o, theirs.out_proj)
    elif isinstance(ours, nn.Linear | nn.LayerNorm):
        yield ours.weight, theirs.weight
        yield ours.bias, theirs.bias
    elif isinstance(ours, Encoder | Decoder):
        for our_block, their_block in zip(ours.blocks, theirs.layers, strict=True):
            yield from block_pairs(our_block, their_block)
        if theirs.norm is not None:
            yield from pairs(ours.norm, theirs.norm)
    else:
        yield from pairs(ours.encoder, theirs.encoder)
        yield from pairs(ours.decoder, theirs.decoder)


def block_pairs(ours: nn.Module, theirs: nn.Module) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
    residuals = [ours.self_attention_residual, ours.feed_forward_residual]
    yield from pairs(ours.self_attention, theirs.self_attn)
    if hasattr(ours, "cross_attention"):
        yield from pairs(ours.cross_attention, theirs.multihead_attn)
        residuals.insert(1, ours.cross_attention_residual)
    yield from pairs(ours.feed_forward.w_1, theirs.linear1)
    yield from pairs(ours.feed_forward.w_2, theirs.linear2)
    for number, residual in enumerate(residuals, start=1):
        yield from pairs(residual.norm, getattr(theirs, f"norm{number}"))


@torch.no_grad()
def copy_weights(ours: nn.Module, theirs: nn.Module) -> None:
    """Random weights, biases and norms too, the same in both; every parameter of theirs is reached."""
    reached = 0
    for our_parameter, their_parameter in pairs(ours, theirs):
        our_parameter.add_(torch.randn_like(our_parameter) / 7)
        their_parameter.copy_(our_parameter)
        reached += their_parameter.numel()
    assert reached == sum(parameter.numel() for parameter in theirs.parameters())


def assert_same(ours: nn.Module, theirs: nn.Module, our_output: Tensor, their_output: Tensor) -> None:
    """Outputs agree, and so do the gradients of every weight along a random direction."""
    torch.testing.assert_close(our_output, their_output, atol=1e-5, rtol=1e-5)
    direction = torch.randn_like(our_output)
    (our_output * direction).sum().backward()
    (their_output * direction).sum().backward()
    for our_parameter, their_parameter in pairs(ours, theirs):
        torch.testing.assert_close(our_parameter.grad, their_parameter.grad, atol=1e-5, rtol=1e-5)


def their_heads() -> nn.MultiheadAttention:
    return nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)


def their_encoder(order: str, activation: str) -> nn.TransformerEncoder:
    # Nested tensors are a fast path of evaluation alone, and announce themselves with a warning.
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, dropout=0.0, activation=activation, batch_first=True, norm_first=order == "pre"
    )
    norm = nn.LayerNorm(D_MODEL) if order == "pre" else None
    return nn.TransformerEncoder(layer, num_layers=2, norm=norm, enable_nested_tensor=False)


def their_decoder(order: str, activation: str) -> nn.TransformerDecoder:
    layer = nn.TransformerDecoderLayer(
        D_MODEL, HEADS, D_FF, dropout=0.0, activation=activation, batch_first=True, norm_first=order == "pre"
    )
    return nn.TransformerDecoder(layer, num_layers=3, norm=nn.LayerNorm(D_MODEL) if order == "pre" else None)


def their_mask(mask: Tensor) -> Tensor:
    """In torch.nn, True means "may not look"."""
    return ~mask


def test_multi_head_attention_is_that_of_torch_padded() -> None:
    ours, theirs = MultiHeadAttention(D_MODEL, HEADS, d_k=5, d_v=5, bias=True), their_heads()
    copy_weights(ours, theirs)
    source_BS, _ = source_and_target()
    x_BTD, source_BSD = torch.randn(BATCH, TARGET, D_MODEL), torch.randn(BATCH, SOURCE, D_MODEL)
    mask_B11S = padding_mask(source_BS, padding_id=0)
    output = ours.attend(ours.project_query(x_BTD), ours.project_memory(source_BSD), mask_B11S)
    wanted, _ = theirs(x_BTD, source_BSD, source_BSD, key_padding_mask=their_mask(mask_B11S[:, 0, 0]))
    assert_same(ours, theirs, output, wanted)


def test_multi_head_attention_is_that_of_torch_causal_and_so_are_its_weights() -> None:
    ours, theirs = MultiHeadAttention(D_MODEL, HEADS, d_k=5, d_v=5, bias=True), their_heads()
    copy_weights(ours, theirs)
    x_BTD, record = torch.randn(BATCH, TARGET, D_MODEL), Record()
    query, memory = ours.project(x_BTD)
    ours.attend(query, memory, causal=True, record=record)
    wanted, weights_BHQK = theirs(
        x_BTD, x_BTD, x_BTD, attn_mask=their_mask(causal_mask(TARGET)), average_attn_weights=False
    )
    torch.testing.assert_close(record.tensors["weights"], weights_BHQK, atol=1e-5, rtol=1e-5)
    assert_same(ours, theirs, ours.attend(query, memory, causal=True), wanted)


@every_shape
def test_the_encoder_is_that_of_torch(order: str, activation: str) -> None:
    ours, theirs = Encoder(config(order, activation)), their_encoder(order, activation)
    copy_weights(ours, theirs)
    source_BS, _ = source_and_target()
    x_BSD, mask_B11S = torch.randn(BATCH, SOURCE, D_MODEL), padding_mask(source_BS, padding_id=0)
    wanted = theirs(x_BSD, src_key_padding_mask=their_mask(mask_B11S[:, 0, 0]))
    assert_same(ours, theirs, ours(x_BSD, mask_B11S), wanted)


@every_shape
def test_the_decoder_is_that_of_torch(order: str, activation: str) -> None:
    ours, theirs = Decoder(config(order, activation)), their_decoder(order, activation)
    copy_weights(ours, theirs)
    source_BS, _ = source_and_target()
    x_BTD, encoded_BSD = torch.randn(BATCH, TARGET, D_MODEL), torch.randn(BATCH, SOURCE, D_MODEL)
    mask_B11S = padding_mask(source_BS, padding_id=0)
    output = ours(x_BTD, ours.remember(encoded_BSD, mask_B11S)).hidden_BTD
    wanted = theirs(
        x_BTD,
        encoded_BSD,
        tgt_mask=their_mask(causal_mask(TARGET)),
        memory_key_padding_mask=their_mask(mask_B11S[:, 0, 0]),
    )
    assert_same(ours, theirs, output, wanted)


@every_shape
def test_the_transformer_is_that_of_torch_between_its_embeddings(order: str, activation: str) -> None:
    ours = Transformer(config(order, activation))
    theirs = nn.Transformer(  # its own stacks would end with one more norm in post-norm as well
        D_MODEL,
        HEADS,
        custom_encoder=their_encoder(order, activation),
        custom_decoder=their_decoder(order, activation),
        batch_first=True,
    )
    copy_weights(ours, theirs)
    source_BS, target_BT = source_and_target()
    padding_BS = their_mask(padding_mask(source_BS, padding_id=0)[:, 0, 0])
    embedded = [ours.source_embedding(source_BS), ours.target_embedding(target_BT)]
    wanted = theirs(
        *(each.detach() for each in embedded),
        tgt_mask=their_mask(causal_mask(TARGET)),
        src_key_padding_mask=padding_BS,
        memory_key_padding_mask=padding_BS,
    )
    assert_same(ours, theirs, ours.hidden(source_BS, target_BT), wanted)
