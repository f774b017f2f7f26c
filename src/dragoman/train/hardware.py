"""What this machine gains from lower precision and from compiling: measured, not guessed."""

import ctypes
import time
from collections.abc import Callable
from contextlib import suppress

import torch
from torch import nn

from dragoman.errors import TrainingError
from dragoman.recipe import TrainConfig
from dragoman.train.tiles import ISA_VARIABLE, WITHOUT_TILES, hides_its_tiles

WORTHWHILE = 1.1
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # from malloc.h
EARNS_BACK_SECONDS = 1800.0
"""Compiling takes minutes to warm up; a shorter run does not earn them back, so `auto` does not even try."""

LEAST_PRODUCTS, MEASURED_SECONDS = 5, 0.2

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def reuse_memory() -> None:
    """Tell glibc to keep freed memory, and to take large buffers from it too.

    Otherwise every activation of more than 32 MB is mapped and unmapped anew, and each of its pages faults: about a
    twelfth of a step of the paper's base model. For a process that does nothing but train; no other C library minds.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def choose_precision(config: TrainConfig, device: torch.device) -> torch.dtype:
    """The one asked for; for `auto`, bfloat16 where a matrix product is faster in it."""
    if config.precision == "float32":
        return torch.float32
    if device.type == "cpu" and hides_its_tiles():
        if config.precision == "auto":
            return torch.float32
        raise TrainingError(
            "train.precision is bfloat16, of which torch would die here: this (virtual) processor says that it has "
            f"AMX and hides how large its tiles are. Use float32, or set {ISA_VARIABLE}={WITHOUT_TILES}"
        )
    if config.precision != "auto":
        return PRECISIONS[config.precision]
    wide, narrow = (_product_seconds(dtype, device) for dtype in (torch.float32, torch.bfloat16))
    return torch.bfloat16 if wide > WORTHWHILE * narrow else torch.float32


def compile_blocks(model: nn.Module) -> None:
    """Compile each block on its own: they are alike, so one compilation serves all."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            for block in module:
                block.compile(dynamic=True)


def compiling_pays(run_step: Callable[[nn.Module], None], make_model: Callable[[], nn.Module]) -> tuple[bool, str]:
    """Whether a step is so much faster compiled, once both have warmed up, and what was seen."""
    plain, compiled = make_model(), make_model()
    compile_blocks(compiled)
    try:
        without, with_it = _step_seconds(lambda: run_step(plain)), _step_seconds(lambda: run_step(compiled))
    except Exception as error:  # where there is no compiler, or none that torch can use
        return False, f"it does not work here ({_first_line(error)})"
    return without > WORTHWHILE * with_it, f"a step takes {with_it:.2f} s with it, {without:.2f} s without"


def check_compiling(run_step: Callable[[nn.Module], None], make_model: Callable[[], nn.Module]) -> None:
    """Refuse where torch cannot compile, which it would else find out within the first step."""
    compiled = make_model()
    compile_blocks(compiled)
    try:
        run_step(compiled)
    except Exception as error:  # torch raises many kinds
        raise TrainingError(
            f"train.compile is on, and torch.compile does not work here ({_first_line(error)}): "
            "install a C++ compiler, say g++, or set train.compile to auto or off"
        ) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _step_seconds(step: Callable[[], None], rounds: int = 3) -> float:
    step()
    step()
    started = time.perf_counter()
    for _ in range(rounds):
        step()
    return (time.perf_counter() - started) / rounds


def _product_seconds(dtype: torch.dtype, device: torch.device) -> float:
    """The best of the products that fit into a moment: a machine that is busy with other things has a few good ones."""
    matrix = torch.ones(256, 256, dtype=dtype, device=device)
    times: list[float] = []
    while len(times) < LEAST_PRODUCTS or sum(times) < MEASURED_SECONDS:
        started = time.perf_counter()
        (matrix @ matrix).sum().item()
        times.append(time.perf_counter() - started)
    return min(times)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch says that there is no room, on a GPU or, which has no class of its own, in main memory."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
