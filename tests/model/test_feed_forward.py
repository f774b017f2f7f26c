"""The position-wise feed-forward network, as printed, and its options."""

import math

import pytest
import torch

from dragoman.model.feed_forward import ACTIVATIONS, FeedForward

BATCH, LENGTH, D_MODEL, D_FF = 2, 7, 11, 13


def test_it_is_max_of_zero_and_x_w1_b1_times_w2_b2() -> None:
    network, x_BTD = FeedForward(D_MODEL, D_FF), torch.randn(BATCH, LENGTH, D_MODEL)
    torch.nn.init.normal_(network.w_1.bias)
    torch.nn.init.normal_(network.w_2.bias)
    inner_BTF = torch.clamp(x_BTD @ network.w_1.weight.T + network.w_1.bias, min=0)
    torch.testing.assert_close(network(x_BTD), inner_BTF @ network.w_2.weight.T + network.w_2.bias)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("relu", lambda x: max(0.0, x)),
        ("gelu", lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2)))),
        ("swish", lambda x: x / (1 + math.exp(-x))),
    ],
)
def test_the_nonlinearities(name: str, wanted) -> None:
    for x in (-3.0, -0.5, 0.0, 0.7, 2.0):
        assert ACTIVATIONS[name](torch.tensor(x)).item() == pytest.approx(wanted(x), abs=1e-6)


@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_the_network_uses_the_nonlinearity_that_it_was_given(activation: str) -> None:
    network, x_BTD = FeedForward(D_MODEL, D_FF, activation), torch.randn(BATCH, LENGTH, D_MODEL)
    torch.testing.assert_close(network(x_BTD), network.w_2(ACTIVATIONS[activation](network.w_1(x_BTD))))


def test_swiglu_gates_the_inner_layer() -> None:
    network, x_BTD = FeedForward(D_MODEL, D_FF, "swiglu"), torch.randn(BATCH, LENGTH, D_MODEL)
    assert network.w_gate is not None
    gate_BTF = x_BTD @ network.w_gate.weight.T
    inner_BTF = gate_BTF * torch.sigmoid(gate_BTF) * (x_BTD @ network.w_1.weight.T + network.w_1.bias)
    torch.testing.assert_close(network(x_BTD), network.w_2(inner_BTF))


def test_only_swiglu_has_a_third_matrix() -> None:
    sizes = {name: sum(p.numel() for p in FeedForward(D_MODEL, D_FF, name).parameters()) for name in ACTIVATIONS}
    two_matrices = 2 * D_MODEL * D_FF + D_FF + D_MODEL
    assert sizes == {
        "relu": two_matrices,
        "gelu": two_matrices,
        "swish": two_matrices,
        "swiglu": two_matrices + D_MODEL * D_FF,
    }


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_a_position_does_not_see_another(activation: str) -> None:
    network, x_BTD = FeedForward(D_MODEL, D_FF, activation), torch.randn(BATCH, LENGTH, D_MODEL)
    changed_BTD = x_BTD.clone()
    changed_BTD[:, 3] += 1
    same = (network(x_BTD) == network(changed_BTD)).all(dim=2)
    assert same.all(dim=0).tolist() == [position != 3 for position in range(LENGTH)]


def test_inner_dropout_acts_in_training_only() -> None:
    network, x_BTD = FeedForward(D_MODEL, D_FF, inner_dropout=0.5), torch.randn(BATCH, LENGTH, D_MODEL)
    assert not torch.equal(network(x_BTD), network(x_BTD))
    network.eval()
    torch.testing.assert_close(network(x_BTD), network.w_2(torch.relu(network.w_1(x_BTD))))
