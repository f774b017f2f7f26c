"""The optimisers: Adam as printed, AdamW as torch has it, Muon's orthogonal updates; each parameter in just one."""

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.recipe import TrainConfig
from dragoman.train.lora import adapt
from dragoman.train.optimizer import BOLDER, NUM_STEPS, Muon, make_optimizers, orthogonal, set_learning_rate

OPTIMIZERS = ("adam", "adamw", "muon")


def make_model(**changes: object) -> Transformer:
    shape = {"d_model": 22, "d_ff": 37, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1}
    return Transformer(ModelConfig(**{"vocab_size": 31, "max_length": 29, **shape, **changes}))


class Plane(nn.Module):
    """One matrix and one vector."""

    def __init__(self, height: int = 3, width: int = 5) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(height, width))
        self.vector = nn.Parameter(torch.randn(7))


def owned(optimizers: list[torch.optim.Optimizer]) -> list[Tensor]:
    return [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("changes", [{}, {"position": "learned", "share_embeddings": False, "attention_bias": True}])
def test_every_parameter_is_owned_by_exactly_one_optimizer(name: str, changes: dict[str, object]) -> None:
    model = make_model(**changes)
    mine = owned(make_optimizers(model, TrainConfig(optimizer=name)))
    assert len(mine) == len({id(p) for p in mine})
    assert {id(p) for p in mine} == {id(p) for p in model.parameters()}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_frozen_is_owned_by_none(name: str) -> None:
    model = make_model()
    adapt(model, rank=3)
    mine = owned(make_optimizers(model, TrainConfig(optimizer=name)))
    assert {id(p) for p in mine} == {id(p) for p in model.parameters() if p.requires_grad}


def test_muon_takes_the_matrices_of_layers_and_leaves_embeddings_and_vectors() -> None:
    model = make_model(position="learned")
    adam, muon = make_optimizers(model, TrainConfig(optimizer="muon"))
    assert isinstance(muon, Muon)
    with_muon = {id(p) for p in owned([muon])}
    for name, parameter in model.named_parameters():
        assert (id(parameter) in with_muon) == (parameter.ndim == 2 and "embedding" not in name), name
    assert type(adam) is torch.optim.AdamW


def test_adam_takes_the_papers_step() -> None:
    """m = (1 - b1) g and v = (1 - b2) g² grow to their running means; the step is rate · m̂ / (√v̂ + epsilon)."""
    model = Plane()
    config = TrainConfig(optimizer="adam", beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.5)
    (optimizer,) = make_optimizers(model, config)
    set_learning_rate([optimizer], 0.03)
    wanted = model.vector.detach().clone()
    first = second = torch.zeros(7)
    for step in (1, 2, 3):
        gradient = torch.randn(7)
        model.vector.grad = gradient.clone()
        optimizer.step()
        first, second = 0.9 * first + 0.1 * gradient, 0.98 * second + 0.02 * gradient**2
        wanted -= 0.03 * (first / (1 - 0.9**step)) / ((second / (1 - 0.98**step)).sqrt() + 1e-9)
        torch.testing.assert_close(model.vector.detach(), wanted)


def test_adamw_first_shrinks_the_weight_by_its_decay() -> None:
    model = Plane()
    (optimizer,) = make_optimizers(model, TrainConfig(optimizer="adamw", weight_decay=0.5, epsilon=1e-9))
    set_learning_rate([optimizer], 0.03)
    before, gradient = model.matrix.detach().clone(), torch.randn(3, 5)
    model.matrix.grad = gradient.clone()
    optimizer.step()
    # Adam's first step is the rate towards the sign of the gradient.
    torch.testing.assert_close(model.matrix.detach(), before * (1 - 0.03 * 0.5) - 0.03 * gradient.sign())


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_matrices_decay_and_vectors_do_not(name: str) -> None:
    model = Plane()
    optimizers = make_optimizers(model, TrainConfig(optimizer=name, weight_decay=0.5))
    set_learning_rate(optimizers, 0.2)
    before = {key: p.detach().clone() for key, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for optimizer in optimizers:
        optimizer.step()
    torch.testing.assert_close(model.matrix.detach(), before["matrix"] * (1 - 0.2 * 0.5))
    torch.testing.assert_close(model.vector.detach(), before["vector"])


@pytest.mark.parametrize("shape", [(13, 13), (7, 29), (29, 7)])
def test_orthogonal_gives_nearly_orthonormal_rows_or_columns(shape: tuple[int, int]) -> None:
    u, _, v = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    singular = torch.linspace(0.3, 1.0, min(shape))
    ours = orthogonal(u @ torch.diag(singular) @ v, num_steps=NUM_STEPS)
    assert ours.shape == shape
    lengths = torch.linalg.svdvals(ours)
    assert lengths.min() > 0.6
    assert lengths.max() < 1.3
    # The directions stay: it is U V^T with singular values that are nearly, not exactly, 1.
    rotated = u.T @ ours @ v.T
    torch.testing.assert_close(rotated, torch.diag(rotated.diagonal()), atol=1e-4, rtol=0)


def test_orthogonal_does_not_depend_on_the_size_of_the_gradient() -> None:
    matrix = torch.randn(11, 17)
    torch.testing.assert_close(
        orthogonal(matrix, NUM_STEPS), orthogonal(1e-3 * matrix, NUM_STEPS), atol=1e-4, rtol=1e-4
    )
    assert not orthogonal(torch.zeros(3, 5), NUM_STEPS).any()


def test_muon_splits_a_fused_w_qkv_and_makes_each_third_orthogonal() -> None:
    model = Plane(height=33, width=11)
    before, gradient = model.matrix.detach().clone(), torch.randn(33, 11)
    # One third of a far larger size would drown the others, were they one matrix.
    gradient[:11] *= 100
    optimizer = Muon([model.matrix], momentum=0.0)
    set_learning_rate([optimizer], 0.1)
    model.matrix.grad = gradient.clone()
    optimizer.step()
    moved = (before - model.matrix.detach()) / (0.1 * BOLDER * 0.2 * 11**0.5)
    for part, its_gradient in zip(moved.chunk(3), gradient.chunk(3), strict=True):
        torch.testing.assert_close(part, orthogonal(its_gradient, NUM_STEPS), atol=1e-4, rtol=1e-4)


def test_matrices_of_many_shapes_each_get_their_own_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.train.optimizer.STACKED_CELLS", 2 * 35 + 1)  # two of 5 by 7 at a time
    shapes = [(5, 7), (11, 11), (7, 3), (5, 7), (5, 7), (7, 3), (11, 11), (5, 7), (5, 7)]
    gradients = [torch.randn(shape) for shape in shapes]
    matrices = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    optimizer = Muon(matrices, momentum=0.0)
    set_learning_rate([optimizer], 0.1)
    for matrix, gradient in zip(matrices, gradients, strict=True):
        matrix.grad = gradient.clone()
    optimizer.step()
    for matrix, gradient in zip(matrices, gradients, strict=True):
        moved = -matrix.detach() / (0.1 * BOLDER * 0.2 * max(matrix.shape) ** 0.5)
        torch.testing.assert_close(moved, orthogonal(gradient, NUM_STEPS), atol=1e-4, rtol=1e-4)


def test_muons_momentum_is_a_running_mean_looked_at_from_one_step_ahead() -> None:
    model = Plane(height=5, width=5)
    optimizer = Muon([model.matrix], momentum=0.75)
    set_learning_rate([optimizer], 0.0)
    first, second = torch.randn(2, 5, 5)
    for gradient in (first, second):
        model.matrix.grad = gradient.clone()
        optimizer.step()
    mean = 0.75 * (0.25 * first) + 0.25 * second
    torch.testing.assert_close(optimizer.state[model.matrix]["momentum"], mean)
    set_learning_rate([optimizer], 1.0)
    before = model.matrix.detach().clone()
    model.matrix.grad = second.clone()
    optimizer.step()
    ahead = 0.25 * second + 0.75 * (0.75 * mean + 0.25 * second)
    moved = (before - model.matrix.detach()) / (BOLDER * 0.2 * 5**0.5)
    torch.testing.assert_close(moved, orthogonal(ahead, NUM_STEPS), atol=1e-4, rtol=1e-4)


def test_a_matrix_without_a_gradient_stays() -> None:
    model = Plane()
    optimizer = Muon([model.matrix])
    set_learning_rate([optimizer], 1.0)
    before = model.matrix.detach().clone()
    optimizer.step()
    torch.testing.assert_close(model.matrix.detach(), before)


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ({"optimizer": "muon"}, [0.75, 0.25]),
        ({"optimizer": "muon", "weight_decay": 0.5}, [0.75, 0.75, 0.25]),
        ({"optimizer": "muon", "embedding_rate": 1.0}, [0.25, 0.25]),
        ({"optimizer": "adamw", "embedding_rate": 3.0}, [0.25]),
        ({"optimizer": "adam", "embedding_rate": 3.0}, [0.25]),
    ],
)
def test_the_rate_is_set_in_every_group_and_what_muon_leaves_has_a_multiple(
    settings: dict[str, object], rates: list[float]
) -> None:
    optimizers = make_optimizers(make_model(), TrainConfig(**settings))
    set_learning_rate(optimizers, 0.25)
    assert [group["lr"] for optimizer in optimizers for group in optimizer.param_groups] == rates


def test_embeddings_decay_as_fast_as_the_matrices_do() -> None:
    optimizers = make_optimizers(make_model(), TrainConfig(optimizer="muon", weight_decay=0.5))
    set_learning_rate(optimizers, 0.25)
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    assert [group["lr"] * group["weight_decay"] for group in groups] == pytest.approx([0.125, 0.0, 0.125])


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_muons_products_have_the_precision_of_the_run(name: str) -> None:
    _, muon = make_optimizers(make_model(), TrainConfig(optimizer="muon", precision=name))
    assert muon.precision == getattr(torch, name)


def test_in_bfloat16_orthogonal_is_about_the_same_and_keeps_the_type_of_the_matrix() -> None:
    matrix = torch.randn(23, 41)
    single, half = orthogonal(matrix, NUM_STEPS), orthogonal(matrix, NUM_STEPS, torch.bfloat16)
    assert half.dtype == torch.float32
    assert not torch.equal(half, single)
    torch.testing.assert_close(half, single, atol=0.05, rtol=0.05)
