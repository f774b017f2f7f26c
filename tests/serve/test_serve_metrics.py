"""Metrics that add up over workers, and an access log that tells no text."""

import asyncio
import contextlib
import json
import mmap
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from dragoman.errors import ConfigError
from dragoman.serve.access_log import AccessLog, begin, note
from dragoman.serve.metrics import SECONDS, Metrics, table_bytes
from dragoman.serve.supervisor import Heartbeats
from dragoman.serve.worker import Shared, beat


def workers(count: int) -> list[Metrics]:
    table = mmap.mmap(-1, table_bytes(count))
    found = [Metrics(table, row) for row in range(count)]
    for one in found:
        one.name_routes(["/translate", "/detect"])
    return found


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus' own parser reads."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }


def test_every_worker_tells_the_sums_of_all() -> None:
    first, second = workers(2)
    first.request("/translate", 200, 0.004)
    second.request("/translate", 200, 0.7)
    second.request("/translate", 503, 0.001)
    second.request("/made/up", 404, 0.001)
    first.count("dragoman_sentences_total", 11)
    second.count("dragoman_sentences_total", 31)
    first.gauge("dragoman_queue_requests", 5)
    second.gauge("dragoman_queue_requests", 2)
    second.gauge("dragoman_queue_requests", 3)
    found = samples(first)
    assert found == samples(second)
    assert found["dragoman_requests_total", (("route", "/translate"), ("status", "200"))] == 2
    assert found["dragoman_requests_total", (("route", "/translate"), ("status", "503"))] == 1
    assert found["dragoman_requests_total", (("route", "other"), ("status", "404"))] == 1
    assert found["dragoman_request_seconds_count", (("route", "/translate"),)] == 3
    assert found["dragoman_request_seconds_sum", (("route", "/translate"),)] == pytest.approx(0.705)
    assert found["dragoman_request_seconds_bucket", (("le", "0.5"), ("route", "/translate"))] == 2
    assert found["dragoman_sentences_total", ()] == 42
    assert found["dragoman_queue_requests", ()] == 8


def test_a_status_that_nobody_expected_is_counted_too() -> None:
    (one,) = workers(1)
    one.request("/translate", 418, 0.1)
    assert samples(one)["dragoman_requests_total", (("route", "/translate"), ("status", "other"))] == 1


def test_a_worker_in_the_place_of_a_dead_one_goes_on_counting_but_has_no_queue() -> None:
    table = mmap.mmap(-1, table_bytes(1))
    dead = Metrics(table, 0)
    dead.count("dragoman_sentences_total", 3)
    dead.gauge("dragoman_queue_requests", 7)
    next_one = Metrics(table, 0)
    next_one.count("dragoman_sentences_total", 2)
    found = samples(next_one)
    assert found["dragoman_sentences_total", ()] == 5
    assert found["dragoman_queue_requests", ()] == 0


def test_a_worker_tells_its_queue_without_being_asked() -> None:
    first, second = workers(2)
    heartbeats = Heartbeats(2, clock=lambda: 7.0)
    shared = Shared(socket.socket(), mmap.mmap(-1, 8), mmap.mmap(-1, 8), heartbeats=heartbeats)
    shared.listener.close()
    busy: Any = SimpleNamespace(update_gauges=lambda: second.gauge("dragoman_queue_requests", 5))

    async def run() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(beat(busy, shared, 1), timeout=0.01)

    asyncio.run(run())
    assert samples(first)["dragoman_queue_requests", ()] == 5
    assert list(heartbeats._times) == [0.0, 7.0]


@settings(max_examples=30)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=13))
def test_a_histogram_counts_what_is_at_most_each_bound(values: list[float]) -> None:
    (one,) = workers(1)
    for value in values:
        one.observe("dragoman_batch_seconds", value)
    found = samples(one)
    for bound in SECONDS:
        told = found["dragoman_batch_seconds_bucket", (("le", f"{bound:g}"),)]
        assert told == sum(value <= bound for value in values)
    assert found["dragoman_batch_seconds_bucket", (("le", "+Inf"),)] == len(values)


# The access log


def test_a_line_has_what_was_noted_and_is_json(tmp_path: Path) -> None:
    log = AccessLog(str(tmp_path / "log"))
    notes = begin()
    note(sentences=3)
    log.write(status=200, **notes)
    line = json.loads((tmp_path / "log").read_text(encoding="utf-8"))
    assert (line["status"], line["sentences"]) == (200, 3)
    assert line["time"].endswith("Z")


def test_a_service_without_standard_error_logs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    lost: list[int] = []
    AccessLog("-", on_lost=lambda: lost.append(1)).write(status=200)
    assert not lost


def test_a_file_that_was_moved_away_is_opened_anew(tmp_path: Path) -> None:
    log = AccessLog(str(tmp_path / "log"))
    log.write(status=1)
    (tmp_path / "log").rename(tmp_path / "log.1")
    log.reopen()
    log.write(status=2)
    assert json.loads((tmp_path / "log").read_text(encoding="utf-8"))["status"] == 2
    assert json.loads((tmp_path / "log.1").read_text(encoding="utf-8"))["status"] == 1


def test_no_log_is_written_where_none_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    AccessLog("none").write(status=200)
    assert capfd.readouterr() == ("", "")
    AccessLog("-").write(status=200)
    assert json.loads(capfd.readouterr().err)["status"] == 200


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^cannot write the access log .*: No such file or directory$"):
        AccessLog(str(tmp_path / "missing" / "log"))


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Standard error that somebody else reads, or does not."""
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        os.close(end)


def logging_to(file: int) -> tuple[AccessLog, list[int]]:
    """A log, and a one for each line that it lost."""
    lost: list[int] = []
    log = AccessLog("none", on_lost=lambda: lost.append(1))
    log._file = file
    return log, lost


def fill(writer: int) -> int:
    """-> the bytes that went in."""
    os.set_blocking(writer, False)
    num_bytes = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            num_bytes += os.write(writer, b"x" * select.PIPE_BUF)
    os.set_blocking(writer, True)
    return num_bytes


def test_a_log_that_nobody_reads_loses_lines_and_does_not_stop_the_server(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    log, lost = logging_to(writer)
    num_bytes = fill(writer)
    log.write(status=200)
    log.write(status=201)
    assert len(lost) == 2
    while num_bytes:
        num_bytes -= len(os.read(reader, num_bytes))
    log.write(status=202)
    assert json.loads(os.read(reader, 65_536))["status"] == 202
    assert len(lost) == 2


def test_a_long_line_that_is_cut_off_does_not_spoil_the_next(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    log, lost = logging_to(writer)
    log.write(text="x" * (1 << 20))
    assert len(lost) == 1
    while select.select([reader], [], [], 0)[0]:
        os.read(reader, 65_536)
    log.write(status=202, text="y" * 3 * select.PIPE_BUF)
    log.write(status=203)
    end, *lines = os.read(reader, 65_536).decode().splitlines()
    assert end == ""
    assert [json.loads(line)["status"] for line in lines] == [202, 203]
    assert len(lost) == 1


def test_a_log_whose_reader_is_gone_only_loses_lines() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log, lost = logging_to(writer)
    log.write(status=200)
    os.close(writer)
    assert len(lost) == 1
