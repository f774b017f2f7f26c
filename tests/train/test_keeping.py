"""How the loop keeps to a clock, keeps its checkpoints, and keeps what it has when it is told to stop."""

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import safetensors.torch
from small_loop import START, Slope, slope_loop
from torch import Tensor

from dragoman.errors import TrainingError
from dragoman.train import checkpoint
from dragoman.train.checkpoint import Progress
from dragoman.train.loop import ENDING_SECONDS, ENDING_VALIDATIONS, LOG_STEPS, Loop

# The clock


class Clock(Slope):
    """Every pass takes `step_seconds`, every validation `validation_seconds`."""

    def __init__(self, step_seconds: float, validation_seconds: float = 0.0) -> None:
        super().__init__()
        self.now, self.step_seconds, self.validation_seconds = 1000.0, step_seconds, validation_seconds

    def forward(self, *batch: Tensor) -> Any:
        self.now += self.step_seconds
        return super().forward(*batch)

    def judge(self, state: Mapping[str, Tensor]) -> Mapping[str, Any]:
        self.now += self.validation_seconds
        return {"loss": 1.0}


def clocked(monkeypatch: pytest.MonkeyPatch, clock: Clock, folder: Path, **more: Any) -> Loop:
    monkeypatch.setattr("dragoman.train.loop.time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr("dragoman.train.checkpoint.save", lambda path, tensors, progress: None)
    return slope_loop(folder, objective=clock, judge=clock.judge, **more)


@pytest.mark.parametrize("planned_steps", [40, 100, 400])
@pytest.mark.parametrize(("step_seconds", "validation_seconds"), [(0.9, 0.0), (0.9, 1.3), (0.5, 4.0)])
def test_a_run_with_a_budget_ends_within_it_and_uses_it_whatever_was_planned(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    planned_steps: int,
    step_seconds: float,
    validation_seconds: float,
) -> None:
    clock = Clock(step_seconds, validation_seconds)
    validate_steps = planned_steps // 10
    loop = clocked(
        monkeypatch,
        clock,
        tmp_path,
        steps=planned_steps,
        deadline_seconds=100.0,
        validate_steps=validate_steps,
        decay_share=0.5,
    )
    progress = loop.run()
    assert progress.finished == "finished"
    assert progress.seconds == pytest.approx(clock.now - 1000)
    assert progress.seconds <= 100
    # What may be left over: time for the end, a quarter at most, and the steps until the next look at the clock.
    ending = min(ENDING_SECONDS + ENDING_VALIDATIONS * validation_seconds, 25)
    assert progress.seconds >= 100 - ending - validation_seconds - LOG_STEPS * step_seconds


def test_a_machine_that_gets_faster_takes_more_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1.0)

    def tell(event: Mapping[str, Any]) -> None:
        if event["event"] == "step" and event["step"] == 60:
            clock.step_seconds = 0.5

    loop = clocked(
        monkeypatch, clock, tmp_path, steps=100, deadline_seconds=100.0, validate_steps=10, decay_share=0.5, tell=tell
    )
    progress = loop.run()
    assert progress.step > 120
    assert progress.seconds <= 100


def test_a_resumed_run_has_what_is_left_of_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Progress(step=30, total_steps=300, seconds=30.0, epoch=6)
    loop = clocked(
        monkeypatch, Clock(1.0), tmp_path, progress=begun, deadline_seconds=100.0, validate_steps=10, decay_share=0.5
    )
    progress = loop.run()
    assert (progress.step, progress.seconds) == (100 - ENDING_SECONDS, 100 - ENDING_SECONDS)


def test_with_a_budget_no_more_steps_are_taken_than_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget: dict[str, Any] = {"steps": 40, "deadline_seconds": 100.0, "validate_steps": 10, "decay_share": 0.5}
    assert clocked(monkeypatch, Clock(1.0), tmp_path, **budget, most_steps=57).run().step == 57
    assert clocked(monkeypatch, Clock(1.0), tmp_path, **budget).run().step > 57


def test_without_a_budget_the_steps_are_as_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = clocked(monkeypatch, Clock(1000.0), tmp_path, steps=40, validate_steps=10, decay_share=0.5)
    assert loop.run().step == 40


# Keeping


def saved_steps(loop: Loop) -> list[int]:
    """Run, and tell at which steps a checkpoint was written."""
    steps: list[int] = []

    def save(path: Path, tensors: Mapping[str, Tensor], progress: Progress) -> None:
        if path.parent == loop.folder:
            steps.append(progress.step)

    with mock.patch("dragoman.train.loop.checkpoint.save", save), mock.patch.object(loop.weights, "keep"):
        loop.run()
    return steps


def test_checkpoints_are_written_at_validations_and_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = clocked(monkeypatch, Clock(1.0), tmp_path, steps=20, validate_steps=9, save_seconds=3.5)
    assert saved_steps(loop) == [4, 8, 9, 13, 17, 18, 20]


def test_without_save_seconds_checkpoints_are_written_at_validations_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert saved_steps(clocked(monkeypatch, Clock(1e6), tmp_path, steps=20, validate_steps=9)) == [9, 18, 20]


def test_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    slope_loop(tmp_path, steps=20, validate_steps=3).run()
    assert sorted(path.name for path in tmp_path.glob("step-*")) == [
        "step-000000018.safetensors",
        "step-000000020.safetensors",
    ]


def test_a_disk_that_fills_up_stops_the_run_with_the_checkpoint_before_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = safetensors.torch.save_file

    def fill_up(tensors: Any, path: Path, **more: Any) -> None:
        if "000000006" in path.name and path.parent == tmp_path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(tensors, path, **more)

    monkeypatch.setattr("safetensors.torch.save_file", fill_up)
    with pytest.raises(TrainingError, match=r"cannot write the checkpoint of step 6 to .*: no space left on the disk"):
        slope_loop(tmp_path, steps=20, validate_steps=3).run()
    found = checkpoint.latest(tmp_path)
    assert found == checkpoint.checkpoint_path(tmp_path, 3)
    assert checkpoint.load(found)[0]["model.weight"].item() == START - 3 * 0.75
    assert not list(tmp_path.rglob("*.part"))


# Signals


@pytest.fixture
def restored() -> Iterator[Callable[[int, Any], None]]:
    """Sets how a signal is handled, for the test only."""
    before: dict[int, Any] = {}

    def handle(number: int, handler: Any) -> None:
        before.setdefault(number, signal.signal(number, handler))

    yield handle
    for number, handler in before.items():
        signal.signal(number, handler)


def stop_at_ten(*numbers: int) -> Any:
    def tell(event: Mapping[str, Any]) -> None:
        if event["event"] == "step" and event["step"] == 10:
            for number in numbers:
                signal.raise_signal(number)

    return tell


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_stops(tmp_path: Path, number: signal.Signals, restored: Callable[[int, Any], None]) -> None:
    restored(signal.SIGHUP, signal.SIG_DFL)
    before = signal.getsignal(number)
    progress = slope_loop(tmp_path, steps=1000, validate_steps=500, tell=stop_at_ten(number)).run()
    assert (progress.finished, progress.step) == ("interrupted", 11)
    assert signal.getsignal(number) == before
    found = checkpoint.latest(tmp_path)
    assert found is not None
    assert checkpoint.load(found)[1] == progress


def test_a_terminal_that_closes_stops_no_run_that_nohup_started(
    tmp_path: Path, restored: Callable[[int, Any], None]
) -> None:
    restored(signal.SIGHUP, signal.SIG_IGN)
    progress = slope_loop(tmp_path, steps=20, tell=stop_at_ten(signal.SIGHUP)).run()
    assert (progress.finished, progress.step) == ("finished", 20)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT as in a terminal: a shell starts what it puts into the background without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        slope_loop(tmp_path, steps=1000, tell=stop_at_ten(signal.SIGINT, signal.SIGINT)).run()
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


def test_a_loop_runs_in_a_thread_too_where_no_signal_can_be_handled(tmp_path: Path) -> None:
    loop = slope_loop(tmp_path, steps=7)
    thread = threading.Thread(target=loop.run)
    thread.start()
    thread.join()
    assert loop.progress.finished == "finished"
