"""Which weights count: those of the last step, their exponential average (EMA), or the mean of the last few (6.1)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.recipe import TrainConfig
from dragoman.train import checkpoint
from dragoman.train.checkpoint import Progress
from dragoman.train.distributed import copy_into, whole
from dragoman.train.lora import merged_state


class Weights:
    """Follows the model's weights during training, and keeps on disk those that the final model may be made of."""

    def __init__(self, model: nn.Module, config: TrainConfig, folder: Path) -> None:
        self.model = model
        self.config = config
        self.folder = folder
        self.parameters = dict(model.named_parameters())
        self.ema = {name: p.detach().clone() for name, p in self.parameters.items()} if config.ema_decay else {}

    def follow(self, step: int) -> None:
        """Take an optimiser step into the exponential average, whose first ones reach less far back: what the weights
        were before they learned anything is soon forgotten.
        """
        if self.ema:
            decay = min(self.config.ema_decay, (1 + step) / (10 + step))
            with torch.no_grad():
                values: list[Tensor] = [self.parameters[name] for name in self.ema]
                torch._foreach_lerp_(list(self.ema.values()), values, 1 - decay)

    def state(self) -> dict[str, Tensor]:
        """The whole model's weights as they count now: averaged where there is an average, adapters worked in.

        Every rank must ask, as each may hold a part.
        """
        with self._averaged():
            return {name: whole(value).clone() for name, value in merged_state(self.model).items()}

    def keep(self, state: Mapping[str, Tensor], progress: Progress, better: bool) -> None:
        """Write down weights: among the last `average`, and as the best if they are better."""
        checkpoint.save(checkpoint.checkpoint_path(self.folder, progress.step), state, progress)
        checkpoint.prune(self.last(), self.config.average)
        if better:
            checkpoint.save(self.best, state, progress)

    @property
    def best(self) -> Path:
        return self.folder / "best.safetensors"

    def last(self) -> list[Path]:
        """The files of the last validations, oldest first."""
        return sorted(self.folder.glob("step-*.safetensors"))

    def tensors(self) -> dict[str, Tensor]:
        return {f"ema.{name}": whole(value) for name, value in self.ema.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        for name, value in self.ema.items():
            copy_into(value, tensors[f"ema.{name}"])

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The model with its averaged weights; its own come back afterwards."""
        if not self.ema:
            yield
            return
        own = {name: p.detach().clone() for name, p in self.parameters.items()}
        try:
            self._put(self.ema)
            yield
        finally:
            self._put(own)

    def _put(self, values: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in values.items():
                self.parameters[name].copy_(value)
