"""Keeps several workers up: starts them on one socket, replaces one that dies, passes signals on."""

from __future__ import annotations

import logging
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

Work = Callable[[int, Callable[[str], None]], None]
"""What a worker does, given its number and how to say that it is ready."""


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

    def __init__(self, num_workers: int, work: Work, on_ready: Callable[[str], None]) -> None:
        """`on_ready` gets what the first worker had to say, when all of them are up."""
        self._work = work
        self._on_ready = on_ready
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
            self._stopping, number = True, signal.SIGTERM
        for worker in self._workers:
            if worker.process is not None and worker.process.pid is not None:
                os.kill(worker.process.pid, number)

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
        if self._stopping and worker.process.pid is not None:  # said while it was being started
            os.kill(worker.process.pid, signal.SIGTERM)

    def _become(self, number: int, ready: Connection) -> None:
        """What the new process does."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the supervisor says what it means
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it opens all anew anyway
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        self._work(number, ready.send)

    def _wait(self) -> None:
        """Until something happens, or a worker is due to be started again."""
        waiting = [worker.start_at for worker in self._workers if worker.process is None]
        patience = max(0.0, min(waiting) - time.monotonic()) if waiting and not self._stopping else None
        things: list[Connection | int] = [self._wake_reader]
        for worker in self._workers:
            if worker.process is not None:
                things.append(worker.process.sentinel)
            if worker.ready is not None:
                things.append(worker.ready)
        if self._wake_reader in wait(things, patience if self._announcement is not None else None):
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
        if worker.ready is not None:
            worker.ready.close()
            worker.ready = None
        worker.start_at = time.monotonic() + worker.pause_seconds
        worker.pause_seconds = min(2 * worker.pause_seconds, _LONGEST_PAUSE_SECONDS)
        if not self._stopping:
            _LOG.error("worker %d ended with %d: starting another", worker.number, status)
        return status
