"""What surrounds a sub-layer: the sum, the norm before or after it, and dropout with its cheaper draw."""

import pytest
import torch
import torch.nn.functional as F
from small_shapes import small_config

from dragoman.model.dropout import Dropout, dropout
from dragoman.model.record import Record
from dragoman.model.residual import Residual, make_norm

BATCH, LENGTH, D_MODEL = 2, 7, 34


def residual(**changes: object) -> Residual:
    """With a norm whose weights are not 1, so that they cannot be forgotten."""
    made = Residual(small_config(**changes))
    for parameter in made.norm.parameters():
        torch.nn.init.normal_(parameter)
    return made


# The sum and the norm


def test_post_norm_is_norm_of_x_plus_sublayer_of_x() -> None:
    part, x, y = residual(), torch.randn(BATCH, LENGTH, D_MODEL), torch.randn(BATCH, LENGTH, D_MODEL)
    assert part.before(x) is x
    wanted = F.layer_norm(x + y, (D_MODEL,), part.norm.weight, part.norm.bias)
    torch.testing.assert_close(part.after(x, y), wanted)


def test_pre_norm_is_x_plus_sublayer_of_norm_of_x() -> None:
    part = residual(norm_order="pre")
    x, y = torch.randn(BATCH, LENGTH, D_MODEL), torch.randn(BATCH, LENGTH, D_MODEL)
    torch.testing.assert_close(part.before(x), F.layer_norm(x, (D_MODEL,), part.norm.weight, part.norm.bias))
    assert torch.equal(part.after(x, y), x + y)


def test_layer_norm_leaves_mean_zero_and_variance_one() -> None:
    normed = make_norm(small_config())(5 + 3 * torch.randn(BATCH, LENGTH, D_MODEL))
    torch.testing.assert_close(normed.mean(dim=-1), torch.zeros(BATCH, LENGTH), atol=1e-5, rtol=0)
    torch.testing.assert_close(normed.var(dim=-1, unbiased=False), torch.ones(BATCH, LENGTH), atol=1e-4, rtol=0)


def test_rms_norm_divides_by_the_root_of_the_mean_square_and_has_no_bias() -> None:
    norm, x = make_norm(small_config(norm="rms")), 5 + 3 * torch.randn(BATCH, LENGTH, D_MODEL)
    torch.testing.assert_close(norm(x), x / x.square().mean(dim=-1, keepdim=True).sqrt())
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_record_holds_the_sum_and_the_output(order: str) -> None:
    part, record = residual(norm_order=order), Record()
    x, y = torch.randn(BATCH, LENGTH, D_MODEL), torch.randn(BATCH, LENGTH, D_MODEL)
    output = part.after(x, y, record)
    assert torch.equal(record.tensors["sum"], x + y)
    assert torch.equal(record.tensors["output"], output)


def test_dropout_falls_on_the_sublayers_output_and_not_on_x() -> None:
    part = residual(norm_order="pre", dropout=0.5)
    x, y = torch.zeros(BATCH, LENGTH, D_MODEL), torch.ones(BATCH, LENGTH, D_MODEL)
    assert set(part.after(x, y).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(part.after(y, x), y)


# Dropout

ROWS = 40_009


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_every_lane_of_a_draw_drops_at_the_rate_and_apart_from_the_others(rate: float) -> None:
    """One 64-bit number decides over four elements: none of the four may be favoured, no two may agree."""
    dropped_RL = (dropout(torch.ones(ROWS, 4), rate) == 0).double()
    five_sigma = 5 * (rate * (1 - rate) / ROWS) ** 0.5
    for lane in range(4):
        assert dropped_RL[:, lane].mean().item() == pytest.approx(rate, abs=five_sigma)
    correlation_LL = torch.corrcoef(dropped_RL.T)
    assert (correlation_LL - torch.eye(4)).abs().max().item() < 5 / ROWS**0.5


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_one_draw_does_not_tell_the_next(rate: float) -> None:
    dropped = (dropout(torch.ones(4 * ROWS), rate) == 0).double()
    for distance in (1, 2, 3, 4, 5, 7, ROWS, 2 * ROWS):
        pair = torch.stack((dropped[:-distance], dropped[distance:]))
        assert abs(torch.corrcoef(pair)[0, 1].item()) < 5 / ROWS**0.5


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_what_is_kept_is_scaled_so_that_the_expectation_stays(rate: float) -> None:
    output = dropout(torch.full((7, 11, 2003), 3.0), rate)
    kept = output[output != 0].unique()
    assert kept.numel() == 1
    assert kept.item() == pytest.approx(3.0 / (1 - rate), rel=1e-4)
    five_sigma = 5 * 3.0 * (rate / (1 - rate) / output.numel()) ** 0.5
    assert output.mean().item() == pytest.approx(3.0, abs=five_sigma)


def test_a_gradient_passes_where_its_element_was_kept() -> None:
    x = torch.randn(5, 7, 13, requires_grad=True)
    output = dropout(x, 0.3)
    output.sum().backward()
    assert 0 < (output == 0).sum() < output.numel()
    torch.testing.assert_close(x.grad, output.detach() / x.detach())


def test_a_seed_repeats_the_draw_and_another_does_not() -> None:
    def drawn(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return dropout(torch.ones(7, 11, 13), 0.5)

    assert torch.equal(drawn(3), drawn(3))
    assert not torch.equal(drawn(3), drawn(5))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (5, 7, 11)])
def test_any_number_of_elements_will_do(shape: tuple[int, ...]) -> None:
    output = dropout(torch.ones(shape), 0.5)
    assert output.shape == shape
    assert set(output.flatten().tolist()) <= {0.0, 2.0}


def test_elements_need_not_lie_in_order() -> None:
    x = torch.randn(7, 11).T
    output = dropout(x, 0.5)
    assert torch.equal(output[output != 0], 2 * x[output != 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_kept(dtype: torch.dtype) -> None:
    output = dropout(torch.ones(5, 7, 11, dtype=dtype), 0.5)
    assert output.dtype == dtype
    assert set(output.unique().tolist()) == {0.0, 2.0}


def test_evaluation_and_rate_zero_change_nothing() -> None:
    x = torch.randn(5, 7)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert not torch.equal(Dropout(0.5)(x), x)
