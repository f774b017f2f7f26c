"""The optimisers (section 5.3): Adam as in the paper, AdamW, and Muon for matrices with AdamW for the rest."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.recipe import TrainConfig
from dragoman.train.distributed import World

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic a x + b x^3 + c x^5 that pulls all singular values towards 1 in few steps."""

NUM_STEPS = 4
"""A fifth step costs a small model some percent of its time, and brings the singular values hardly nearer to 1."""

STACKED_CELLS = 2**18
"""Of matrices that are made orthogonal in one go: sixteen of 128 by 128, which in bfloat16 takes a third of the time
that they take one by one. From 256 by 256 on there is nothing to gain."""

BOLDER = 5.0
EMBEDDING_RATE = 3.0
"""Times the rate, for what Muon leaves to AdamW in a model that begins: most rows of an embedding are met seldom."""


def make_optimizers(model: nn.Module, config: TrainConfig, world: World | None = None) -> list[torch.optim.Optimizer]:
    """One or two optimisers that between them own every trainable parameter."""
    trainable = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    betas = (config.beta1, config.beta2)
    if config.optimizer == "adam":
        parameters = [p for _, p in trainable]
        return [torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=config.epsilon, fused=_can_fuse(parameters))]
    # A matrix that is split over ranks has no one place where it could be made orthogonal.
    with_muon = config.optimizer == "muon" and not config.shard
    matrices = [p for name, p in trainable if with_muon and p.ndim == 2 and not _is_embedding(name)]
    others = [p for name, p in trainable if not any(p is matrix for matrix in matrices)]
    optimizers: list[torch.optim.Optimizer] = []
    if others:
        groups = _groups(others, config.weight_decay, (config.embedding_rate or EMBEDDING_RATE) if matrices else 1.0)
        optimizers.append(torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=config.epsilon, fused=_can_fuse(others)))
    if matrices:
        low = torch.bfloat16 if config.precision == "bfloat16" or matrices[0].is_cuda else torch.float32
        optimizers.append(Muon(matrices, weight_decay=config.weight_decay, precision=low, world=world))
    return optimizers


def set_learning_rate(optimizers: Iterable[torch.optim.Optimizer], rate: float) -> None:
    """The rate of the next step, in every group; some have a multiple of it."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("times", 1.0)


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal, matrix by matrix (Jordan et al.).

    Scaled so that the rate which suits Adam suits it: its steps are `BOLDER` times the size of Adam's, which they can
    be because no direction of the matrix runs ahead of the others.

    torch's own Muon takes its products in bfloat16, which most CPUs only emulate: here they have the `precision` that
    is given. Ranks, which all have the same gradients, share the work.
    """

    def __init__(
        self,
        matrices: Sequence[Tensor],
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        num_steps: int = NUM_STEPS,
        precision: torch.dtype = torch.float32,
        world: World | None = None,
    ):
        super().__init__(matrices, {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay})
        self.num_steps = num_steps
        self.precision = precision
        self.world = world or World()

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            updates = [block for matrix in matrices for block in _blocks(self._update(matrix, group["momentum"]))]
            directions = iter(self._orthogonal(updates))
            for matrix in matrices:
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                for block in _blocks(matrix):
                    scale = BOLDER * 0.2 * max(block.shape) ** 0.5
                    block.sub_(next(directions), alpha=group["lr"] * scale)

    def _update(self, matrix: Tensor, momentum: float) -> Tensor:
        """Nesterov's: the gradient, drawn towards the running mean of all so far."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:
            state["momentum"] = torch.zeros_like(matrix)
        state["momentum"].lerp_(matrix.grad, 1 - momentum)
        return matrix.grad.lerp(state["momentum"], momentum)

    def _orthogonal(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        """Each block made orthogonal; with several ranks each takes its turns, and all get all."""
        directions = [torch.zeros_like(block) for block in blocks]
        for turns in _alike(blocks, range(self.world.rank, len(blocks), self.world.size)):
            stack_NHW = torch.stack([blocks[turn] for turn in turns])
            for turn, direction in zip(turns, orthogonal(stack_NHW, self.num_steps, self.precision), strict=True):
                directions[turn] = direction
        if self.world.size == 1:
            return directions
        everyones = self.world.sum(torch.cat([direction.flatten() for direction in directions]))
        parts = everyones.split([block.numel() for block in blocks])
        return [part.view_as(block) for part, block in zip(parts, blocks, strict=True)]


def _blocks(matrix: Tensor) -> Sequence[Tensor]:
    """The rows of a fused W_Q, W_K, W_V are three matrices; square blocks of them are made orthogonal."""
    height, width = matrix.shape
    return matrix.chunk(height // width if height % width == 0 else 1)


def _alike(blocks: Sequence[Tensor], turns: Iterable[int]) -> Iterator[Sequence[int]]:
    """The turns of blocks of one shape together, a few at a time: small products are slow one by one."""
    by_shape: dict[torch.Size, list[int]] = {}
    for turn in turns:
        by_shape.setdefault(blocks[turn].shape, []).append(turn)
    for shape, alike in by_shape.items():
        count = max(1, STACKED_CELLS // shape.numel())
        yield from (alike[start : start + count] for start in range(0, len(alike), count))


def orthogonal(matrices: Tensor, num_steps: int, precision: torch.dtype = torch.float32) -> Tensor:
    """U V^T, roughly, of every matrix = U S V^T of (..., H, W), by Newton-Schulz steps, whose products have this
    precision.
    """
    a, b, c = NEWTON_SCHULZ
    x_NHW = matrices.to(precision).reshape(-1, *matrices.shape[-2:])
    tall = x_NHW.shape[1] > x_NHW.shape[2]
    x_NHW = x_NHW.mT if tall else x_NHW
    x_NHW = x_NHW / x_NHW.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(num_steps):
        gram_NHH = x_NHW @ x_NHW.mT
        polynomial_NHH = torch.baddbmm(gram_NHH, gram_NHH, gram_NHH, beta=b, alpha=c)
        x_NHW = torch.baddbmm(x_NHW, polynomial_NHH, x_NHW, beta=a)
    return (x_NHW.mT if tall else x_NHW).to(matrices.dtype).reshape(matrices.shape)


def _groups(parameters: Sequence[Tensor], weight_decay: float, times: float) -> list[dict[str, Any]]:
    """Matrices decay; biases and norms do not. Where nothing decays there is one group, in the model's order. All have
    so many `times` the rate.
    """
    if not weight_decay:
        return [{"params": list(parameters), "weight_decay": 0.0, "times": times}]
    decaying, still = [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim < 2]
    groups = [
        # What decays by rate · decay would decay so many times as fast as the matrices that Muon has.
        {"params": decaying, "weight_decay": weight_decay / times, "times": times},
        {"params": still, "weight_decay": 0.0, "times": times},
    ]
    return [group for group in groups if group["params"]]


def _is_embedding(name: str) -> bool:
    return "embedding" in name


def _can_fuse(parameters: Sequence[Tensor]) -> bool:
    return all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in parameters)
