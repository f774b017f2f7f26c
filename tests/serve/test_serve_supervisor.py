"""Looking after workers: who hangs, what a signal meets, and loading anew; with a clock that the tests turn."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from dragoman.serve import supervisor as supervisor_module
from dragoman.serve import worker
from dragoman.serve.settings import Settings
from dragoman.serve.supervisor import HUNG_SECONDS, Heartbeats, Supervisor


class Clock:
    """What time the tests say."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def look_for(clock: Clock, heartbeats: Heartbeats, seconds: float, beating: tuple[int, ...] = ()) -> list[int]:
    """Time goes by, and a supervisor looks every few seconds; -> who hangs in the end."""
    end = clock.now + seconds
    while clock.now < end:
        clock.now = min(end, clock.now + 5)
        for number in beating:
            heartbeats.beat(number)
        found = heartbeats.hung()
    return found


# Who hangs


def test_a_worker_hangs_that_has_not_beaten_for_long() -> None:
    clock = Clock()
    heartbeats = Heartbeats(3, clock)
    for number in range(3):
        heartbeats.beat(number)
    assert look_for(clock, heartbeats, HUNG_SECONDS, beating=(0, 2)) == []
    assert look_for(clock, heartbeats, 1, beating=(0, 2)) == [1]


def test_a_worker_that_is_still_loading_is_not_judged() -> None:
    clock = Clock()
    heartbeats = Heartbeats(2, clock)
    heartbeats.beat(0)
    heartbeats.forget(0)
    assert look_for(clock, heartbeats, 10 * HUNG_SECONDS) == []


def test_who_was_stopped_with_the_supervisor_gets_time_to_wake() -> None:
    clock = Clock()
    heartbeats = Heartbeats(2, clock)
    for number in range(2):
        heartbeats.beat(number)
    clock.now += 10 * HUNG_SECONDS
    assert heartbeats.hung() == []
    assert look_for(clock, heartbeats, HUNG_SECONDS, beating=(0,)) == []
    assert look_for(clock, heartbeats, 1, beating=(0,)) == [1]


# What a signal meets


class PutAway:
    """A process that `close` was called on."""

    @property
    def pid(self) -> int:
        raise ValueError("process object is closed")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Supervisor, Clock, list[str]]]:
    """A supervisor that has not started its workers, and what it did."""
    clock, done = Clock(), []
    supervisor = Supervisor(
        3,
        lambda number, say: None,
        heartbeats=Heartbeats(3, clock),
        on_ready=lambda line: None,
        on_stop=lambda: done.append("let go"),
    )
    yield supervisor, clock, done
    os.close(supervisor._wake_reader)
    os.close(supervisor._wake_writer)


def test_a_signal_that_finds_workers_just_ended_still_reaches_the_others(
    kept: tuple[Supervisor, Clock, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, _, done = kept
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    processes: list[Any] = [PutAway(), SimpleNamespace(pid=ended.pid), SimpleNamespace(pid=4711)]
    kill = os.kill

    def record(pid: int, number: int) -> None:
        if pid != 4711:
            kill(pid, number)
        done.append(signal.Signals(number).name)

    monkeypatch.setattr(supervisor_module.os, "kill", record)
    for one, process in zip(supervisor._workers, processes, strict=True):
        one.process = process
    supervisor._heed(signal.SIGHUP, None)
    assert done == ["SIGHUP"]
    supervisor._heed(signal.SIGINT, None)
    supervisor._heed(signal.SIGTERM, None)
    assert done == ["SIGHUP", "let go", "SIGTERM", "SIGTERM"]  # what it lets go of, once and first


def test_a_worker_that_hangs_is_killed_once(
    kept: tuple[Supervisor, Clock, list[str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor, clock, done = kept
    monkeypatch.setattr(supervisor_module.os, "kill", lambda pid, number: done.append(f"{pid} {number}"))
    for one in supervisor._workers:
        one.process = SimpleNamespace(pid=4700 + one.number)  # type: ignore[assignment]
        supervisor._heartbeats.beat(one.number)
    look_for(clock, supervisor._heartbeats, HUNG_SECONDS, beating=(0, 2))
    clock.now += 1
    supervisor._end_hung()
    supervisor._end_hung()
    assert done == [f"4701 {int(signal.SIGKILL)}"]
    assert caplog.messages == ["worker 1 has done nothing for 60 seconds: killed"]


@pytest.mark.parametrize(("supervisor", "ends"), [(os.getppid(), False), (os.getppid() + 1, True), (None, False)])
def test_a_worker_ends_whose_supervisor_died_even_before_it_was_up(supervisor: int | None, ends: bool) -> None:
    server = worker._Server(uvicorn.Config(lambda: None), supervisor)
    assert asyncio.run(server.on_tick(1)) is ends


# Loading anew


def test_models_are_loaded_one_after_the_other_and_once_more_if_asked_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running, done = [0], []

    async def reload(service: Any) -> None:
        running[0] += 1
        done.append(running[0])
        for _ in range(5):
            await asyncio.sleep(0)
        running[0] -= 1

    monkeypatch.setattr(worker, "_reload", reload)

    async def run() -> None:
        asked = asyncio.Event()
        asked.set()  # before there was a loop
        service: Any = None
        task = asyncio.create_task(worker._reload_when(asked, service))
        await asyncio.sleep(0)
        asked.set()
        asked.set()
        for _ in range(31):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(run())
    assert done == [1, 1]


def test_whatever_goes_wrong_the_old_models_stay(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load(*arguments: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(worker.Models, "load", load)
    service: Any = SimpleNamespace(settings=Settings(), log=SimpleNamespace(reopen=lambda: None), models="old")
    with caplog.at_level(logging.ERROR):
        asyncio.run(worker._reload(service))
    assert service.models == "old"
    assert caplog.messages == ["not reloaded, what was there stays: RuntimeError('out of memory')"]
