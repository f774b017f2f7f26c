"""What a training run was asked for, and the file that lets it be resumed as just that."""

import fcntl
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.bundle.folder import CARD, CONFIG, SCORECARD, TRAINING
from dragoman.errors import ConfigError, TrainingError
from dragoman.recipe import Recipe
from dragoman.settings import differences, fill, read, to_mapping
from dragoman.text.corpus import content_hash
from dragoman.text.known_words import WORDS
from dragoman.text.sentencepiece_tokenizer import FILES as SENTENCEPIECE_FILES
from dragoman.text.tokenizer import TOKENIZER
from dragoman.train import checkpoint
from dragoman.train.plan import Plan
from dragoman.train.schedule import learning_rate

_WRITTEN = (CARD, SCORECARD, TRAINING, TOKENIZER, WORDS, *SENTENCEPIECE_FILES, "curves.png")
"""What may be somebody's own in a folder without a run."""
_LOOKED_AT = 10_000


@dataclass(frozen=True, kw_only=True)
class Request:
    """A recipe, where the model goes, and how to go about it."""

    recipe: Recipe = field(default_factory=Recipe)
    output: Path
    budget_seconds: float = 0.0
    keep_shape: bool = False
    asked: tuple[str, ...] = ()
    init: str = ""
    teachers: tuple[str, ...] = ()
    strict: bool = False
    tensorboard: bool = False
    command: str = field(default_factory=lambda: shlex.join(["dragoman", *sys.argv[1:]]))


def _is_of_a_run(path: Path) -> bool:
    """Whether it is the journal of a run, one that failed before it learned anything."""
    if path.name != TRAINING:
        return False
    with path.open("rb") as file:
        return b'"event":' in file.readline(_LOOKED_AT)


class RunFile:
    """`run.json`: the recipe as it was asked for, the plan that was made of it, and the hash of the data."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        return self.path.exists()

    def check_folder(self, resume: bool) -> None:
        """Refuse a folder that cannot be written, or that holds another run, or a model that is of none."""
        folder = self.path.parent.parent
        if self.exists() and not resume:
            raise TrainingError(
                f"{folder} holds a training run already: add --resume to go on with it, or choose another --output"
            )
        if not self.exists() and checkpoint.latest(self.path.parent):
            raise TrainingError(f"{self.path.parent} has checkpoints but no run.json: choose another --output")
        if not self.exists() and (folder / CONFIG).exists():
            raise TrainingError(
                f"{folder} holds a model already: choose another --output, and add --init {folder} to go on from it"
            )
        there = (path for path in map(folder.joinpath, _WRITTEN) if path.exists() and not _is_of_a_run(path))
        if not self.exists() and (found := next(there, None)):
            raise TrainingError(f"{found} is there already, and would be written over: choose another --output")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            probe = self.path.with_name(f".writable-{os.getpid()}")
            probe.touch()
            probe.unlink(missing_ok=True)
        except OSError as error:
            raise TrainingError(f"cannot write to {folder}: {error.strerror}") from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile no other process trains in this folder: the two would write over each other's checkpoints."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(folder)
            raise TrainingError(f"another process is training in {self.path.parent.parent} now") from error
        except OSError:  # a file system that has no locks
            pass
        try:
            yield
        finally:
            os.close(folder)

    def forget(self) -> None:
        """Of a run that failed before it learned anything: so that the folder is free once the cause is mended."""
        self.path.unlink(missing_ok=True)
        for left in ("held-out.npy", "tokenizer.json", "compiled"):
            (self.path.parent / left).unlink(missing_ok=True)
        shutil.rmtree(self.path.parent / "weights", ignore_errors=True)

    def write(self, request: Request, plan: Plan) -> None:
        """Remember what is about to be trained."""
        values = {
            "asked": to_mapping(request.recipe),
            "init": request.init,
            "teachers": list(request.teachers),
            "budget_seconds": request.budget_seconds,
            "data": content_hash(request.recipe.data.train),
            "command": request.command,
            "plan": plan.to_mapping(),
        }
        self._store(values)

    def end_at(self, request: Request, say: Callable[[str], None]) -> None:
        """Give the run the end that is asked for, if all steps so far would have had the same rates with it."""
        values, steps = read(self.path), request.recipe.train.max_steps
        asked, plan = self._understand(values)
        if steps == asked.train.max_steps:
            return
        moved = replace(asked, train=replace(asked.train, max_steps=steps))
        self._check(request, moved, values)
        if values["budget_seconds"]:
            raise TrainingError("the run has a budget, so the clock says where it ends: train.max_steps cannot change")
        found = checkpoint.latest(self.path.parent)
        if found:
            self._check_end(steps, checkpoint.read_progress(found), plan.recipe)
        for recipe in (values["asked"], values["plan"]["recipe"]):
            recipe["train"]["max_steps"] = steps
        self._store(values)
        say(f"the run is to end at step {steps:,}")

    @staticmethod
    def _check_end(steps: int, progress: checkpoint.Progress, recipe: Recipe) -> None:
        if progress.finished == "patience":
            raise TrainingError("the run ended early, as it got no better: go on from its model with --init")
        if steps <= progress.step:
            raise TrainingError(f"the run is at step {progress.step} already, it cannot end at step {steps}")
        before, after = (
            learning_rate(progress.step, recipe.train, recipe.model.d_model, end)
            for end in (progress.total_steps, steps)
        )
        if before != after:
            raise TrainingError(
                f"at step {progress.step} the learning rate is {before:.4g}, in a run of {steps} steps it would be "
                f"{after:.4g}: keep to {progress.total_steps} steps, and go on from that model with --init"
            )

    def _store(self, values: dict[str, Any]) -> None:
        temporary = self.path.with_suffix(".part")
        temporary.write_text(json.dumps(values, indent=1), encoding="utf-8")
        os.replace(temporary, self.path)

    def read(self, request: Request) -> tuple[Request, Plan]:
        """The run as it was begun; a `TrainingError` if what is asked for now is something else."""
        values = read(self.path)
        asked, plan = self._understand(values)
        self._check(request, asked, values)
        begun = Request(
            recipe=asked,
            output=request.output,
            budget_seconds=float(values["budget_seconds"]),
            init=values["init"],
            teachers=tuple(values.get("teachers", ())),
            keep_shape=True,
            tensorboard=request.tensorboard,
            command=values.get("command") or request.command,
        )
        return begun, plan

    def _check(self, request: Request, asked: Recipe, values: dict[str, Any]) -> None:
        """Refuse another recipe than `asked`, if there is one, and data that are not those of the run."""
        if request.recipe.data.train and all(corpus.path != "-" for corpus in request.recipe.data.train):
            changed = differences(asked, request.recipe)
        else:
            named = tuple(f"{key}:" for key in request.asked)
            changed = [line for line in differences(asked, request.recipe) if line.startswith(named)]
        if changed:
            raise TrainingError(f"the recipe is not that of the run in {self.path.parent.parent}: {changed[0]}")
        for name, now, then in (
            ("--budget", request.budget_seconds, values["budget_seconds"]),
            ("--init", request.init, values["init"]),
            ("--teacher", list(request.teachers), values.get("teachers", [])),
        ):
            if now and now != then:
                raise TrainingError(
                    f"{name} is not that of the run in {self.path.parent.parent}: leave it out to go on"
                )
        if content_hash(asked.data.train) != values["data"]:
            raise TrainingError("the training data have changed since the run began: start anew in another --output")

    def _understand(self, values: dict[str, Any]) -> tuple[Recipe, Plan]:
        try:
            return fill(Recipe, values["asked"]), Plan.from_mapping(values["plan"])
        except (ConfigError, KeyError, TypeError) as error:
            raise TrainingError(f"{self.path} cannot be resumed by this version: {error}") from error
