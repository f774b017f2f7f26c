"""`torch.compile` takes each stack, and the training step's forward pass, as one graph."""

from collections.abc import Callable, Iterator

import pytest
import torch
from small_shapes import BATCH, SOURCE, TARGET, real_ids, small_config, source_and_target
from torch import Tensor

from dragoman.model.mask import padding_mask
from dragoman.model.transformer import Transformer

# "eager" traces and checks as any backend does, and then runs the graph as it is: quick, and the same numbers.
BACKEND = "eager"


@pytest.fixture(autouse=True)
def _forget_what_was_compiled() -> Iterator[None]:
    yield
    torch.compiler.reset()


def make(**changes: object) -> Transformer:
    return Transformer(small_config(encoder_layers=1, decoder_layers=1, **changes)).eval()


@pytest.mark.parametrize("order", ["post", "pre"])
def test_the_encoder_is_one_graph_with_the_same_numbers(order: str) -> None:
    encoder, (source_BS, _) = make(norm_order=order).encoder, source_and_target()
    x_BSD, mask_B11S = torch.randn(BATCH, SOURCE, 34), padding_mask(source_BS, padding_id=0)
    compiled = torch.compile(encoder, fullgraph=True, backend=BACKEND)
    torch.testing.assert_close(compiled(x_BSD, mask_B11S), encoder(x_BSD, mask_B11S))


@torch.no_grad()
def test_the_decoder_is_one_graph_with_the_same_numbers_with_and_without_a_cache() -> None:
    model, (source_BS, _) = make(), source_and_target()
    memory, x_BTD = model.encode(source_BS).memory, torch.randn(BATCH, TARGET, 34)
    compiled = torch.compile(model.decoder, fullgraph=True, backend=BACKEND)
    whole_BTD = model.decoder(x_BTD, memory).hidden_BTD
    first = compiled(x_BTD[:, :5], memory)
    rest = compiled(x_BTD[:, 5:10], memory, first.cache)
    ours_BTD = torch.cat((first.hidden_BTD, rest.hidden_BTD), dim=1)
    torch.testing.assert_close(ours_BTD, whole_BTD[:, :10], atol=1e-5, rtol=1e-5)


def test_the_whole_model_is_one_graph_for_batches_of_every_shape() -> None:
    """With the same numbers and gradients; lengths become symbols at the second batch, and no later one compiles."""
    model, graphs = make(), []

    def count(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    compiled = torch.compile(model.hidden, fullgraph=True, backend=count)
    for batch, source, target in ((2, 11, 13), (3, 7, 17), (5, 13, 19), (7, 17, 11)):
        ids = real_ids(batch, source), real_ids(batch, target)
        direction_BTD = torch.randn(batch, target, 34)
        eager, graph = (outputs_and_gradients(model, hidden, ids, direction_BTD) for hidden in (model.hidden, compiled))
        for wanted, ours in zip(eager, graph, strict=True):
            torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=1e-5)
    assert len(graphs) == 2


def outputs_and_gradients(
    model: Transformer, hidden: Callable[..., Tensor], ids: tuple[Tensor, Tensor], direction_BTD: Tensor
) -> list[Tensor]:
    model.zero_grad()
    hidden_BTD = hidden(*ids)
    (hidden_BTD * direction_BTD).sum().backward()
    return [hidden_BTD, *(parameter.grad.clone() for parameter in model.parameters())]


def test_training_with_every_dropout_is_one_graph() -> None:
    model = make(dropout=0.3, attention_dropout=0.1, activation_dropout=0.1).train()
    batch = source_and_target()
    hidden = torch.compile(model.hidden, fullgraph=True, backend=BACKEND)
    first, second = hidden(*batch), hidden(*batch)
    assert not torch.equal(first, second)
    first.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
