"""The loop that trains everything. It alone holds progress, and what it does in a step is a function of the recipe,
the step and the weights: stopped anywhere and resumed, it ends with the same bits.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from dragoman.errors import TrainingError
from dragoman.recipe import TrainConfig
from dragoman.text.batches import Batch
from dragoman.train import checkpoint
from dragoman.train.averaging import Weights
from dragoman.train.checkpoint import Progress, unshared
from dragoman.train.distributed import World, copy_into, whole
from dragoman.train.feed import to_tensors
from dragoman.train.interrupt import StopSignals
from dragoman.train.optimizer import set_learning_rate
from dragoman.train.schedule import learning_rate
from dragoman.train.trackers import Tracker
from dragoman.train.window import Window

LOG_STEPS = 10
KEPT_CHECKPOINTS = 2
MOST_SKIPPED_IN_A_ROW = 20
ENDING_VALIDATIONS, ENDING_SECONDS = 8, 6.0


class Feed(Protocol):
    """Where batches come from; the same (epoch, index) is the same global batch whatever the number of parts."""

    def num_batches(self, epoch: int) -> int: ...

    def parts(self, epoch: int, index: int, first: int, stride: int, count: int) -> list[Batch]:
        """The global batch cut into `count` parts: those numbered first, first + stride, ..."""


class Validator(Protocol):
    """Judges weights: -> metrics by name, among them the one that the recipe goes by."""

    def __call__(self, state: Mapping[str, Tensor]) -> Mapping[str, Any]: ...


OnBetter = Callable[[Mapping[str, Any], Progress], None]
"""Told, on the first rank, when the weights just validated were better than all before."""


class Loop:
    """One training run, from whatever step it stands at to its end."""

    def __init__(
        self,
        *,
        objective: nn.Module,
        model: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        feed: Feed,
        validator: Validator,
        config: TrainConfig,
        d_model: int,
        folder: Path,
        world: World,
        tell: Tracker,
        progress: Progress,
        log_bytes: Callable[[], int] = lambda: 0,
        deadline_seconds: float = 0.0,
        most_steps: int = 0,
        on_better: OnBetter | None = None,
    ) -> None:
        self.objective = objective
        self.model = model
        self.optimizers = optimizers
        self.feed = feed
        self.validator = validator
        self.config = config
        self.d_model = d_model
        self.folder = folder
        self.world = world
        self.tell = tell
        self.progress = progress
        self.log_bytes = log_bytes
        self.deadline_seconds = deadline_seconds
        self.most_steps = most_steps or sys.maxsize
        self.on_better = on_better
        self.weights = Weights(model, config, folder / "weights")
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self._window = Window()
        self._skipped_in_a_row = 0
        self._first_step = progress.step
        self._validation_seconds = 0.0
        self._started = time.monotonic()
        self._seconds_before = progress.seconds
        self._saved_at = self._started

    # -- the run -----------------------------------------------------------------------------------------------------

    def run(self) -> Progress:
        """Train to the end, or to a signal; progress.finished says which."""
        with StopSignals() as signals:
            while not self.progress.finished:
                stop = self._step(signals.received)
                self._update(seconds=self._seconds())
                last = self.progress.step >= self.progress.total_steps
                if last or self.progress.step % self._validate_steps() == 0:
                    self._validate()
                # An end that is reached is one: to go on from it would be a step too many.
                if last:
                    self._update(finished="finished")
                elif self.config.patience and self.progress.validations_since_best >= self.config.patience:
                    self._update(finished="patience")
                elif stop:
                    self._update(finished="interrupted")
                if self.progress.finished or self._save_is_due():
                    self.save()
        return self.progress

    def _step(self, stop_requested: bool) -> bool:
        """One step of the optimiser; -> whether any rank was asked to stop."""
        step, config, world = self.progress.step + 1, self.config, self.world
        torch.manual_seed(draw_seed(config.seed, step, world.rank))
        parts = self.feed.parts(
            self.progress.epoch, self.progress.batch, world.rank, world.size, world.size * config.micro_batches
        )
        counts = torch.tensor([sum(part.num_target_tokens for part in parts), float(stop_requested)])
        num_tokens, stop = world.sum(counts.to(world.device)).tolist()
        plain = torch.zeros((), device=world.device)
        self.objective.train()
        for part in parts:
            loss = self.objective(*to_tensors(part, world.device))
            # Ranks average their gradients, and the loss is a sum: so times ranks, divided by everyone's pieces.
            (loss.smoothed * (world.size / num_tokens)).backward()
            plain += loss.plain
        plain = world.sum(plain)
        rate = learning_rate(step, config, self.d_model, self.progress.total_steps)
        norm = whole(nn.utils.clip_grad_norm_(self.parameters, config.clip_norm or math.inf, foreach=True))
        finite = math.isfinite(norm.item()) and math.isfinite(plain.item())
        if finite:
            set_learning_rate(self.optimizers, rate)
            for optimizer in self.optimizers:
                optimizer.step()
            self.weights.follow(self.progress.step - self.progress.skipped_steps)
        self._count_skipped(finite)
        for parameter in self.parameters:
            parameter.grad = None
        self._advance(int(num_tokens))
        self._window.add(plain.item() / num_tokens if finite else None, int(num_tokens), parts)
        if step % LOG_STEPS == 0 or step == self.progress.total_steps:
            self._log(rate, norm.item())
            if self.deadline_seconds and step < self.progress.total_steps:
                self._keep_to_the_clock()
        return bool(stop > 0)

    def _advance(self, num_tokens: int) -> None:
        epoch, batch = self.progress.epoch, self.progress.batch + 1
        if batch >= self.feed.num_batches(epoch):
            epoch, batch = epoch + 1, 0
        tokens = self.progress.target_tokens + num_tokens
        self._update(step=self.progress.step + 1, epoch=epoch, batch=batch, target_tokens=tokens)

    def _count_skipped(self, finite: bool) -> None:
        if finite:
            self._skipped_in_a_row = 0
            return
        self._skipped_in_a_row += 1
        self._update(skipped_steps=self.progress.skipped_steps + 1)
        if self._skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW:
            raise TrainingError(
                f"the loss was not a number for {MOST_SKIPPED_IN_A_ROW} steps in a row, up to step "
                f"{self.progress.step + 1}; earlier checkpoints are intact: lower train.learning_rate "
                f"or raise train.warmup_steps"
            )

    # -- judging -----------------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        started = time.monotonic()
        state = self.weights.state()
        metrics = dict(self.validator(state)) if self.world.is_first else {}
        metrics[self.config.metric] = self.world.share(metrics.get(self.config.metric, 0.0))
        better = self._is_better(metrics)
        if self.world.is_first:
            self.weights.keep(state, self.progress, better)
            if better and self.on_better:
                self.on_better(metrics, self.progress)
        if better:
            best = {"best": float(metrics[self.config.metric]), "best_step": self.progress.step}
            self._update(**best, validations_since_best=0)
        else:
            self._update(validations_since_best=self.progress.validations_since_best + 1)
        self._update(seconds=self._seconds())
        self.tell({"event": "validation", "step": self.progress.step, **metrics, "better": better,
                   "seconds": self.progress.seconds})  # fmt: skip
        self._validation_seconds = time.monotonic() - started
        self._window.skip_time(self._validation_seconds)

    def _is_better(self, metrics: Mapping[str, Any]) -> bool:
        value, best = metrics[self.config.metric], self.progress.best
        if best is None or (math.isnan(best) and not math.isnan(value)):
            return True
        return bool(value < best if self.config.metric == "loss" else value > best)

    def _keep_to_the_clock(self) -> None:
        """With a budget: set the schedule's end to what the clock allows at the pace so far, up to `most_steps`.

        What comes after the last step, judging and scoring the final weights, takes as long as some validations.
        """
        ending = min(ENDING_SECONDS + ENDING_VALIDATIONS * self._validation_seconds, self.deadline_seconds / 4)
        possible = self.progress.step + (self.deadline_seconds - ending - self._seconds()) / self._pace()
        self._update(total_steps=min(max(self.progress.step + 1, int(self.world.share(possible))), self.most_steps))

    def _pace(self) -> float:
        """Seconds a step, of those that this process took, validations included."""
        return (self._seconds() - self._seconds_before) / max(1, self.progress.step - self._first_step)

    def _validate_steps(self) -> int:
        return self.config.validate_steps or max(1, self.feed.num_batches(0))

    # -- keeping -----------------------------------------------------------------------------------------------------

    def _save_is_due(self) -> bool:
        due = self.progress.step % self._validate_steps() == 0
        if self.config.save_seconds and time.monotonic() - self._saved_at > self.config.save_seconds:
            due = True
        return self.world.agree(due)

    def save(self) -> None:
        """Write a checkpoint (every rank must take part), and forget the oldest."""
        tensors = self._tensors()
        if self.world.is_first:
            self._update(log_bytes=self.log_bytes())
            path = checkpoint.checkpoint_path(self.folder, self.progress.step)
            checkpoint.save(path, tensors, self.progress)
            checkpoint.prune(self.folder.glob("step-*.safetensors"), KEPT_CHECKPOINTS)
        self._saved_at = time.monotonic()
        self.world.wait()

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up weights and optimiser state as `save` left them."""
        for name, value in self.model.state_dict(keep_vars=True).items():
            copy_into(value, tensors[f"model.{name}"])
        for i, optimizer in enumerate(self.optimizers):
            for j, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"]):
                prefix = f"optimizer.{i}.{j}."
                for name in (name for name in tensors if name.startswith(prefix)):
                    value = tensors[name]
                    like = parameter if value.shape == parameter.shape else value
                    kept = torch.empty_like(like, device=parameter.device)  # where a fused one counts its steps
                    copy_into(kept, value)
                    optimizer.state[parameter][name.removeprefix(prefix)] = kept
        self.weights.restore(tensors)

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"model.{name}": whole(value) for name, value in self.model.state_dict().items()}
        for i, optimizer in enumerate(self.optimizers):
            for j, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"]):
                for name, value in optimizer.state[parameter].items():
                    tensors[f"optimizer.{i}.{j}.{name}"] = whole(value)
        return unshared({**tensors, **self.weights.tensors()})

    # -- telling -----------------------------------------------------------------------------------------------------

    def _log(self, rate: float, norm: float) -> None:
        progress = self.progress
        left = progress.total_steps - progress.step
        self._update(seconds=self._seconds())
        self.tell({
            "event": "step",
            "step": progress.step,
            "total_steps": progress.total_steps,
            "epoch": progress.epoch + progress.batch / self.feed.num_batches(progress.epoch),
            "learning_rate": rate,
            "gradient_norm": norm,
            "target_tokens": progress.target_tokens,
            "skipped": progress.skipped_steps,
            "seconds": self.progress.seconds,
            "seconds_left": left * self._pace(),
            **self._window.summary(),
        })  # fmt: skip

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def _update(self, **changes: Any) -> None:
        self.progress = self.progress.with_(**changes)


def draw_seed(seed: int, step: int, rank: int) -> int:
    """What a step's dropout is drawn from: nothing but the recipe's seed, the step and the rank."""
    return ((seed * 1_000_003 + step) * 10_007 + rank) % 2**63
