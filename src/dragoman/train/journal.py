"""What a run tells: to the person watching, to training.jsonl and curves.png, to TensorBoard and other trackers."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import torch
from torch import nn

from dragoman.recipe import Recipe
from dragoman.text.diagnosis import REASONS, Diagnosis
from dragoman.train.checkpoint import Progress
from dragoman.train.curves import draw_curves
from dragoman.train.distributed import World
from dragoman.train.plan import Plan
from dragoman.train.prepare import Prepared
from dragoman.train.progress import make_progress
from dragoman.train.request import Request
from dragoman.train.trackers import Fanout, JsonLines, TensorBoard, Tracker

SHOWN_FINDINGS = 5


class Journal:
    """Of the first rank; the others' journals say nothing."""

    def __init__(self, request: Request, world: World, trackers: Sequence[Tracker]) -> None:
        self.folder = request.output
        self.silent = not world.is_first
        self._to_people = Fanout([] if self.silent else [make_progress(), *trackers])
        self._to_files: Fanout | None = None
        self._log: JsonLines | None = None
        self._tensorboard = request.tensorboard and world.is_first

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._to_people.close()
        if self._to_files:
            self._to_files.close()

    def say(self, text: str, level: str = "info") -> None:
        """A line for the person watching."""
        self._to_people({"event": "message", "text": text, "level": level})

    def tell(self, event: Mapping[str, Any]) -> None:
        """An event of the loop, for everybody."""
        self._to_people(event)
        if self._to_files:
            self._to_files(event)

    def log_bytes(self) -> int:
        """How long training.jsonl is: a checkpoint remembers it, and a resumed run cuts back to it."""
        return self._log.size() if self._log else 0

    def tell_diagnosis(self, diagnosis: Diagnosis) -> None:
        """The doctor's summary: sizes, what is dropped and why, what was found."""
        for summary in diagnosis.sets:
            dropped = ", ".join(f"{count:,} {REASONS[reason]}" for reason, count in summary.dropped.items() if count)
            self.say(
                f"{summary.name}: {summary.kept:,} pairs of {summary.pairs:,} from {', '.join(summary.files)}"
                + (f" (dropped: {dropped})" if dropped else "")
            )
        for finding in diagnosis.findings[:SHOWN_FINDINGS]:
            if finding.severity != "note":
                self.say(f"{finding.severity}: {finding.what}", "warning" if finding.severity == "problem" else "info")
        if len(diagnosis.findings) > SHOWN_FINDINGS:
            self.say(f"{len(diagnosis.findings)} findings in all; `dragoman doctor` shows them with examples")

    def tell_plan(self, plan: Plan) -> None:
        """The plan with its reasons."""
        for reason in plan.reasons:
            self.say(f"plan: {reason}")
        self.say(
            f"plan: about {plan.seconds / 60:.0f} minutes at {plan.target_tokens_per_second:,.0f} target tokens/s, "
            f"{plan.memory_bytes / 1e9:.1f} GB of memory"
        )

    def start(
        self,
        progress: Progress,
        model: nn.Module,
        prepared: Prepared,
        recipe: Recipe,
        world: World,
        precision: torch.dtype,
        compiled: bool,
    ) -> None:
        """Open the files, cut back to where the checkpoint was written, and say what is being trained."""
        if self.silent:
            return
        event = {
            "event": "start",
            "step": progress.step,
            "total_steps": progress.total_steps,
            "parameters": sum(p.numel() for p in model.parameters()),
            "pieces": prepared.tokenizer.vocab_size,
            "pairs": len(prepared.train),
            "target_tokens_per_epoch": int(prepared.train.target_lengths.sum()),
            "batch_tokens": recipe.train.batch_tokens,
            "device": world.device.type,
            "ranks": world.size,
            "precision": str(precision).removeprefix("torch."),
            "compiled": compiled,
        }
        self._log = JsonLines(self.folder / "training.jsonl", progress.log_bytes)
        boards = [TensorBoard(self.folder / "tensorboard")] if self._tensorboard else []
        self._to_people(event)
        if progress.step == 0:
            self._log(event)
        for board in boards:
            board(event)
        self._to_files = Fanout([self._log, self._draw, *boards])

    def end(self, progress: Progress) -> None:
        """Why the loop stopped."""
        self.tell({"event": "end", "step": progress.step, "seconds": progress.seconds, "reason": progress.finished})

    def _draw(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "end":
            draw_curves(self.folder / "training.jsonl", self.folder / "curves.png")
