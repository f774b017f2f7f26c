"""Keeps several workers up: starts them on one socket, replaces one that dies or hangs, passes signals on."""

from __future__ import annotations

import contextlib
import logging
import mmap
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType

_LOG = logging.getLogger("dragoman.serve")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 30.0
HUNG_SECONDS = 60.0
"""A worker whose event loop has not turned for so long is replaced: nothing that it does there takes a second."""
_LOOK_SECONDS = 5.0

Work = Callable[[int, Callable[[str], None]], None]
"""What a worker does, given its number and how to say that it is ready."""


class Heartbeats:
    """When the event loop of each worker last turned, in memory that they share with the supervisor."""

    def __init__(self, num_workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._times = memoryview(mmap.mmap(-1, 8 * num_workers)).cast("d")
        self._clock = clock
        self._looked_at = self._awake_since = clock()

    def beat(self, number: int) -> None:
        self._times[number] = self._clock()

    def forget(self, number: int) -> None:
        """The worker is no more; the next one is not judged before it has beaten, for loading may take its time."""
        self._times[number] = 0.0

    def hung(self) -> list[int]:
        """The workers that have stopped beating. Ask often: who was stopped meanwhile, as they may have been, waits."""
        now = self._clock()
        if now - self._looked_at > 3 * _LOOK_SECONDS:
            self._awake_since = now
        self._looked_at = now
        last = (max(then, self._awake_since) if then else now for then in self._times)
        return [number for number, then in enumerate(last) if now - then > HUNG_SECONDS]


class _Worker:
    """A place for a worker, and the process that is in it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: BaseProcess | None = None
        self.ready: Connection | None = None
        self.pause_seconds = _FIRST_PAUSE_SECONDS
        self.start_at = 0.0


class Supervisor:
    """Runs `work` in several processes until a signal says to stop."""

    def __init__(
        self,
        num_workers: int,
        work: Work,
        *,
        heartbeats: Heartbeats,
        on_ready: Callable[[str], None],
        on_stop: Callable[[], None],
    ) -> None:
        """`on_ready` gets what the first worker had to say, when all of them are up; `on_stop` lets go of what the
        workers were given, before they are told to stop.
        """
        self._work = work
        self._heartbeats = heartbeats
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._workers = [_Worker(number) for number in range(num_workers)]
        self._announcement: str | None = None
        self._announced = False
        self._stopping = False
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)

    def run(self) -> int:
        """Serve; -> the exit status: 0, or that of a worker that could not even start."""
        signal.set_wakeup_fd(self._wake_writer)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heed)
        self._start(self._workers[0])  # alone: it finds out what is wrong, and converts the models for the others
        while any(worker.process is not None for worker in self._workers) or not self._stopping:
            self._wait()
            self._end_hung()
            for worker in self._workers:
                self._listen(worker)
                if (status := self._bury(worker)) is not None and self._announcement is None and not self._stopping:
                    return status or 1
                due = worker.process is None and time.monotonic() >= worker.start_at
                if due and self._announcement is not None and not self._stopping:
                    self._start(worker)
        return 0

    def _heed(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGHUP:
            number = signal.SIGTERM
            if not self._stopping:
                self._stopping = True
                self._on_stop()
        for worker in self._workers:
            self._tell(worker, number)

    def _tell(self, worker: _Worker, number: int) -> None:
        """Send a signal. The process may just have ended, and even been put away (ValueError)."""
        with contextlib.suppress(ProcessLookupError, ValueError):
            if worker.process is not None and worker.process.pid is not None:
                os.kill(worker.process.pid, number)

    def _end_hung(self) -> None:
        for number in self._heartbeats.hung():
            _LOG.error("worker %d has done nothing for %g seconds: killed", number, HUNG_SECONDS)
            self._heartbeats.forget(number)
            self._tell(self._workers[number], signal.SIGKILL)

    def _start(self, worker: _Worker) -> None:
        context = multiprocessing.get_context("fork")
        worker.ready, ready = context.Pipe(duplex=False)
        worker.process = context.Process(
            target=self._become, args=(worker.number, ready), name=f"worker {worker.number}"
        )
        heeded = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        # A signal must not find the new process with our handlers still in place.
        signal.pthread_sigmask(signal.SIG_BLOCK, heeded)
        try:
            worker.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, heeded)
        ready.close()
        if self._stopping:  # said while it was being started
            self._tell(worker, signal.SIGTERM)

    def _become(self, number: int, ready: Connection) -> None:
        """What the new process does."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the supervisor says what it means
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nothing is open yet
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        self._work(number, ready.send)

    def _wait(self) -> None:
        """Until something happens, a worker is due to be started again, or it is time to look after all of them."""
        patience = _LOOK_SECONDS
        waiting = [worker.start_at for worker in self._workers if worker.process is None]
        if waiting and not self._stopping and self._announcement is not None:
            patience = min(patience, max(0.0, min(waiting) - time.monotonic()))
        things: list[Connection | int] = [self._wake_reader]
        for worker in self._workers:
            if worker.process is not None:
                things.append(worker.process.sentinel)
            if worker.ready is not None:
                things.append(worker.ready)
        if self._wake_reader in wait(things, patience):
            os.read(self._wake_reader, 512)

    def _listen(self, worker: _Worker) -> None:
        """Hear that a worker is ready."""
        if worker.ready is None or not worker.ready.poll():
            return
        try:
            self._announcement = self._announcement or str(worker.ready.recv())
            worker.pause_seconds = _FIRST_PAUSE_SECONDS
        except EOFError:
            pass
        worker.ready.close()
        worker.ready = None
        everyone = all(one.process is not None and one.ready is None for one in self._workers)
        if everyone and self._announcement is not None and not self._announced:
            self._announced = True
            self._on_ready(self._announcement)

    def _bury(self, worker: _Worker) -> int | None:
        """The exit status of a worker that is dead; it is started again after a pause, longer each time it fails."""
        process = worker.process
        if process is None or process.exitcode is None:
            return None
        status = process.exitcode
        process.join()
        process.close()
        worker.process = None
        self._heartbeats.forget(worker.number)
        if worker.ready is not None:
            worker.ready.close()
            worker.ready = None
        worker.start_at = time.monotonic() + worker.pause_seconds
        worker.pause_seconds = min(2 * worker.pause_seconds, _LONGEST_PAUSE_SECONDS)
        if not self._stopping:
            _LOG.error("worker %d ended with %d: starting another", worker.number, status)
        return status
