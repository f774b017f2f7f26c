"""Who is told what happens in training.

The loop tells everything as events: plain mappings with `event` (start, step, validation, message, end),
mostly with `step`, and with figures. A tracker is any callable that takes one; it may have a `close()`.
"""

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.errors import require

Tracker = Callable[[Mapping[str, Any]], None]

STEP_SCALARS = ("loss", "learning_rate", "gradient_norm", "target_tokens_per_second", "padding", "epoch", "skipped")
VALIDATION_SCALARS = ("loss", "perplexity", "bleu", "chrf", "watched_loss")


class Fanout:
    """Tells several trackers. One that raises is dropped with a warning to the others: training goes on."""

    def __init__(self, trackers: Iterable[Tracker]) -> None:
        self._trackers = list(trackers)

    def __call__(self, event: Mapping[str, Any]) -> None:
        failures: list[str] = []
        for tracker in tuple(self._trackers):
            try:
                tracker(event)
            except Exception as error:
                self._trackers.remove(tracker)
                _close(tracker)
                failures.append(f"{_name(tracker)} failed ({str(error) or type(error).__name__}): going on without it")
        # Told only now, so that everybody hears of the event itself first. Each failure removes one, so this ends.
        for text in failures:
            self({"event": "message", "level": "warning", "text": text})

    def close(self) -> None:
        """Close those that can be closed."""
        for tracker in self._trackers:
            _close(tracker)


class JsonLines:
    """`training.jsonl`: a JSON object a line. A figure that is not finite becomes null, as JSON has no word for it."""

    def __init__(self, path: Path, resume_bytes: int | None = None) -> None:
        """`resume_bytes` is what `size()` said when the run was saved: all after it is cut off. None keeps all.

        A last line that is not whole goes either way. Nothing is touched before the first event.
        """
        self._path = path
        self._resume_bytes = resume_bytes
        self._trimmed = False

    def __call__(self, event: Mapping[str, Any]) -> None:
        self._trim()
        line = json.dumps(_finite(event), ensure_ascii=False, default=str) + "\n"
        # Opened for each line: nothing is left open or unwritten, whatever becomes of the run. Half a surrogate pair,
        # which UTF-8 cannot hold, becomes a backslash escape, which JSON reads back.
        with self._path.open("ab") as file:
            file.write(line.encode("utf-8", "backslashreplace"))

    def size(self) -> int:
        """The bytes written so far, those before a resume included."""
        self._trim()
        return self._path.stat().st_size if self._path.exists() else 0

    def _trim(self) -> None:
        if not self._trimmed and self._path.exists():
            kept = self._path.read_bytes()[: self._resume_bytes]
            os.truncate(self._path, kept.rfind(b"\n") + 1)
        self._trimmed = True


class TensorBoard:
    """Figures and sample translations for TensorBoard; after a resume it hides what came after the save."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None
        with warnings.catch_warnings():
            # What the packages say about each other's age is nothing that a person who trains can mend.
            warnings.simplefilter("ignore")
            require("tensorboard", "tensorboard", "a TensorBoard log")
            self._module = require("torch.utils.tensorboard", "train", "a TensorBoard log")

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "end":
            self.close()
        if kind not in ("start", "step", "validation"):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._write(kind, event)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, kind: str, event: Mapping[str, Any]) -> None:
        step = int(event["step"])
        if self._writer is None:
            purge_step = step + 1 if kind == "start" and step else None
            self._writer = self._module.SummaryWriter(str(self._folder), purge_step=purge_step, flush_secs=10)
        scalars = {"start": (), "step": STEP_SCALARS, "validation": VALIDATION_SCALARS}[kind]
        group = "train" if kind == "step" else "valid"
        for name in scalars:
            if event.get(name) is not None:
                self._writer.add_scalar(f"{group}/{name}", event[name], step)
        for number, sample in enumerate(event.get("samples") or (), start=1):
            # Indented text is shown as it is; anything else would be read as markdown.
            lines = (f"    {name:<9}  {' '.join(str(text).split())}" for name, text in sample.items())
            self._writer.add_text(f"sample/{number}", "\n".join(lines), step)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _name(tracker: Tracker) -> str:
    return getattr(tracker, "__name__", type(tracker).__name__)


def _close(tracker: Tracker) -> None:
    """What fails while it is closed has nothing more to say that would help."""
    with suppress(Exception):
        getattr(tracker, "close", lambda: None)()
