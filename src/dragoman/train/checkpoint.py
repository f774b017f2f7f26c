"""Checkpoints: one safetensors file each, whole or not there at all.

A file is written under a temporary name, flushed to the disk, then renamed; its header carries the run's progress as
JSON. There is no pickle, and no random state: whatever is drawn in a step is drawn from (seed, step, rank).
"""

import errno
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from dragoman.cache import flush
from dragoman.errors import TrainingError
from dragoman.settings import fill


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands: all that the loop knows besides tensors."""

    step: int = 0
    total_steps: int = 0
    epoch: int = 0
    batch: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    skipped_steps: int = 0
    best: float | None = None
    best_step: int = 0
    validations_since_best: int = 0
    log_bytes: int = 0
    finished: str = ""

    def with_(self, **changes: Any) -> "Progress":
        return replace(self, **changes)


def save(path: Path, tensors: Mapping[str, Tensor], progress: Progress) -> None:
    """Write a checkpoint, or leave what was there before."""
    temporary = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        safetensors.torch.save_file(whole, temporary, metadata={"progress": json.dumps(asdict(progress))})
        flush(temporary)  # a rename must not reach the disk before what it names
        os.replace(temporary, path)
        flush(path.parent)
    except (OSError, safetensors.SafetensorError) as error:
        with suppress(OSError):
            temporary.unlink()
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
        what = "no space left on the disk" if full else str(error)
        raise TrainingError(
            f"cannot write the checkpoint of step {progress.step} to {path.parent}: {what}; "
            f"earlier checkpoints are intact: make room, then run the same command with --resume"
        ) from error


def load(path: Path) -> tuple[dict[str, Tensor], Progress]:
    """The tensors and the progress of a checkpoint."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, read_progress(path)  # noqa: SIM118
    except (OSError, safetensors.SafetensorError) as error:
        raise TrainingError(f"{path} is not a whole checkpoint: {error}") from error


def read_progress(path: Path) -> Progress:
    """The progress of a checkpoint alone."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return fill(Progress, json.loads((file.metadata() or {})["progress"]))
    except (OSError, KeyError, ValueError, safetensors.SafetensorError) as error:
        raise TrainingError(f"{path} is not a whole checkpoint: {error}") from error


def latest(folder: Path) -> Path | None:
    """The newest checkpoint that is whole; a damaged one is passed over."""
    for path in sorted(folder.glob("step-*.safetensors"), reverse=True):
        try:
            with safetensors.safe_open(path, framework="pt"):
                return path
        except (OSError, safetensors.SafetensorError):
            continue
    return None


def checkpoint_path(folder: Path, step: int) -> Path:
    """Names that sort as the steps do."""
    return folder / f"step-{step:09d}.safetensors"


def prune(paths: Iterable[Path], keep: int) -> None:
    """Remove all but the last `keep`."""
    for path in sorted(paths)[:-keep]:
        path.unlink(missing_ok=True)


def average(paths: Iterable[Path]) -> dict[str, Tensor]:
    """The mean of the weights in several files (section 6.1), added up in float64."""
    total: dict[str, Tensor] = {}
    count = 0
    for path in paths:
        count += 1
        for name, tensor in load(path)[0].items():
            wide = tensor.to(torch.float64)
            total[name] = total[name] + wide if name in total else wide
    return {name: (tensor / count).to(torch.float32) for name, tensor in total.items()}


def unshared(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tied weights as copies: a file holds each name's tensor on its own."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        result[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
        seen.add(tensor.data_ptr())
    return result
