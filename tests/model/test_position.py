"""Positions: the paper's sinusoids in two layouts, and learned ones."""

import math

import pytest
import torch
from small_shapes import small_config

from dragoman.model.position import Position, sinusoid

LENGTH, D_MODEL = 23, 34


def test_the_robot_of_the_notes() -> None:
    rows = [[round(number, 2) + 0.0 for number in row] for row in sinusoid(4, 4, base=100.0).tolist()]
    assert rows == [[0.0, 1.0, 0.0, 1.0], [0.84, 0.54, 0.1, 1.0], [0.91, -0.42, 0.2, 0.98], [0.14, -0.99, 0.3, 0.96]]


@pytest.mark.parametrize("base", [100.0, 10_000.0])
def test_each_cell_is_the_printed_formula(base: float) -> None:
    table_TD = sinusoid(LENGTH, D_MODEL, base)
    for position in (0, 1, 7, 19):
        for pair in (0, 1, 5, 16):
            angle = position / base ** (2 * pair / D_MODEL)
            assert table_TD[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table_TD[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_the_default_base_is_the_papers() -> None:
    assert torch.equal(sinusoid(LENGTH, D_MODEL), sinusoid(LENGTH, D_MODEL, 10_000.0))


def test_the_other_layout_has_the_same_columns_all_sines_first() -> None:
    side_by_side, halves = sinusoid(LENGTH, D_MODEL), sinusoid(LENGTH, D_MODEL, interleaved=False)
    assert torch.equal(halves[:, :17], side_by_side[:, 0::2])
    assert torch.equal(halves[:, 17:], side_by_side[:, 1::2])


def test_a_distance_is_the_same_turn_wherever_it_starts() -> None:
    """The paper's reason for sinusoids: PE(pos + k) is a linear function of PE(pos), the same for every pos."""
    sine_TC, cosine_TC = sinusoid(LENGTH, D_MODEL)[:, 0::2], sinusoid(LENGTH, D_MODEL)[:, 1::2]
    sine_5, cosine_5 = sine_TC[5], cosine_TC[5]
    torch.testing.assert_close(sine_TC[5:], sine_TC[:-5] * cosine_5 + cosine_TC[:-5] * sine_5)


def test_far_positions_are_as_exact_as_near_ones() -> None:
    assert sinusoid(50_001, 2)[50_000, 0].item() == pytest.approx(math.sin(50_000), abs=1e-6)


@pytest.mark.parametrize("kind", ["sinusoid", "sinusoid-halves", "learned"])
def test_positions_from_a_start_are_those_of_the_whole(kind: str) -> None:
    position = Position(small_config(position=kind))
    assert position(LENGTH).shape == (LENGTH, D_MODEL)
    assert torch.equal(position(5, start=7), position(LENGTH)[7:12])


def test_the_config_chooses_layout_and_base() -> None:
    printed = Position(small_config(position_base=100.0))
    halves = Position(small_config(position="sinusoid-halves"))
    assert torch.equal(printed(LENGTH), sinusoid(LENGTH, D_MODEL, base=100.0))
    assert torch.equal(halves(LENGTH), sinusoid(LENGTH, D_MODEL, interleaved=False))


def test_sinusoids_have_nothing_to_learn_and_nothing_to_save() -> None:
    position = Position(small_config())
    assert not list(position.parameters())
    assert not position.state_dict()


def test_learned_positions_are_a_parameter_of_every_position() -> None:
    position = Position(small_config(position="learned"))
    assert [tuple(parameter.shape) for parameter in position.parameters()] == [(23, D_MODEL)]
    position(7, start=3).sum().backward()
    assert position.table_TD.grad is not None
    assert position.table_TD.grad.any(dim=1).nonzero().flatten().tolist() == list(range(3, 10))
