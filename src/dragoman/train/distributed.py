"""Beyond one process: `torchrun` starts the ranks, this file joins them. On one process everything here is a no-op."""

import os
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from dragoman.errors import TrainingError
from dragoman.model.decoder import DecoderBlock
from dragoman.model.multi_head import KeyValue
from dragoman.train.loss import Loss

_TAKEN_APART: set[type] = set()


@dataclass(frozen=True)
class World:
    """Who takes part: this process' rank, how many there are, and what it computes on."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def is_first_here(self) -> bool:
        """The first of its machine."""
        return self.local_rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """The sum over ranks, on every rank."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def agree(self, flag: bool) -> bool:
        """True on every rank if it is on any."""
        return bool(self.sum(torch.tensor(float(flag), device=self.device)).item()) if self.size > 1 else flag

    def share(self, value: float) -> float:
        """The first rank's value, on every rank."""
        return float(self.sum(torch.tensor(value if self.is_first else 0.0, device=self.device)).item())

    def wait(self) -> None:
        """Until every rank is here."""
        if self.size > 1:
            dist.barrier()


def join_world() -> World:
    """This process' place among those that torchrun started; alone if it did not."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if size == 1:
        return World(device=device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", size))))
    if not dist.is_initialized():
        _meet("nccl" if device.type == "cuda" else "gloo")
    return World(dist.get_rank(), dist.get_world_size(), local_rank, device)


def _meet(backend: str) -> None:
    """Find the other ranks. After a restart torchrun's store still has what the ranks before wrote, addresses of the
    dead among them, so each start has names of its own.
    """
    timeout = timedelta(days=1)  # ranks wait for the first one to prepare the data, which may take hours
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    named = PrefixStore(f"dragoman/{start}", store)
    dist.init_process_group(backend, store=named, rank=rank, world_size=size, timeout=timeout)


def leave_world(world: World) -> None:
    """Let the other ranks go."""
    if world.size > 1 and dist.is_initialized():
        dist.destroy_process_group()


def check_shard(world: World, shard: bool) -> None:
    """Refuse to split a model over one rank."""
    if shard and world.size == 1:
        raise TrainingError("--shard splits a model over ranks, and there is one: start it with torchrun")


def distribute(objective: nn.Module, world: World, shard: bool) -> nn.Module:
    """The same objective, its gradients averaged over ranks (DDP), or its weights split over them too (FSDP2)."""
    check_shard(world, shard)
    if world.size == 1:
        return objective
    if not shard:
        return nn.parallel.DistributedDataParallel(objective)
    _shard(objective)
    return objective


def _shard(objective: nn.Module) -> None:
    """Each block holds its weights together only while it runs; what is outside of blocks, while the pass runs."""
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    for result in (KeyValue, Loss):  # FSDP finds the tensors that come out of a pass by taking results apart
        if result not in _TAKEN_APART:
            torch.export.register_dataclass(result)
            _TAKEN_APART.add(result)
    for module in objective.modules():
        if isinstance(module, nn.ModuleList):
            for block in module:
                fully_shard(block)
                if isinstance(block, DecoderBlock):
                    register_fsdp_forward_method(block, "remember")
    fully_shard(objective)


def whole(tensor: Tensor) -> Tensor:
    """A tensor that may be split over ranks, put together (every rank must ask)."""
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def copy_into(parameter: Tensor, value: Tensor) -> None:
    """Fill a parameter that may be split over ranks from a whole tensor."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    with torch.no_grad():
        if isinstance(parameter, DTensor):
            value = distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)
        parameter.copy_(value)
