"""What Prometheus asks for, of all workers together.

Counts live in memory that the workers share, made before they start. Each worker writes a row of its own, so nothing
is locked; whoever is asked adds the rows up. A worker that takes the place of a dead one goes on in its row, so counts
never fall.
"""

from __future__ import annotations

import bisect
import mmap
from collections.abc import Callable, Iterator, Sequence

ROUTES_AT_MOST = 48
STATUSES = (200, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 405, 408, 411, 413, 415, 422, 429, 431, 456, 499,
            500, 501, 503)  # fmt: skip
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
OTHER = "other"
_CELL_BYTES = 8

_COUNTERS = {
    "dragoman_sentences_total": "Sentences translated.",
    "dragoman_source_tokens_total": "Source pieces translated.",
    "dragoman_characters_total": "Characters that clients sent to be translated.",
    "dragoman_worker_starts_total": "Workers started, those in place of dead ones among them.",
    "dragoman_reloads_total": "Times that models were loaded again.",
    "dragoman_log_lines_lost_total": "Lines of the access log that could not be written.",
}
_GAUGES = {
    "dragoman_queue_requests": "Requests that wait for the engine.",
    "dragoman_batches_running": "Batches that the engine has.",
}
_HISTOGRAMS = {
    "dragoman_batch_sentences": ("Sentences of a batch.", SIZES),
    "dragoman_batch_requests": ("Requests that a batch has sentences of.", SIZES),
    "dragoman_batch_seconds": ("How long a batch took.", SECONDS),
}


def _layout() -> tuple[dict[str, int], int]:
    """The first cell of each thing that is counted, and the number of cells."""
    places: dict[str, int] = {}
    size = 0
    widths = {
        **dict.fromkeys([*_COUNTERS, *_GAUGES], 1),
        **{name: len(bounds) + 2 for name, (_, bounds) in _HISTOGRAMS.items()},
        "requests": ROUTES_AT_MOST * (len(STATUSES) + 1),
        "latency": ROUTES_AT_MOST * (len(SECONDS) + 2),
    }
    for name, width in widths.items():
        places[name] = size
        size += width
    return places, size


_PLACES, _CELLS = _layout()


def table_bytes(workers: int) -> int:
    """The size of the shared memory."""
    return workers * _CELLS * _CELL_BYTES


class Metrics:
    """The counts of a worker, and the sums over all."""

    def __init__(self, table: mmap.mmap, row: int) -> None:
        self._rows = memoryview(table).cast("d")
        self._workers = len(self._rows) // _CELLS
        self._first = row * _CELLS
        self._routes = [OTHER]
        for name in _GAUGES:
            self._rows[self._first + _PLACES[name]] = 0.0

    def name_routes(self, routes: Sequence[str]) -> None:
        """Say what the routes are: the same in every worker; a path that is none of them counts as one more."""
        assert len(routes) < ROUTES_AT_MOST
        self._routes = [*routes, OTHER]

    def count(self, name: str, amount: float = 1.0) -> None:
        self._add(_PLACES[name], amount)

    def gauge(self, name: str, value: float) -> None:
        self._rows[self._first + _PLACES[name]] = value

    def observe(self, name: str, value: float) -> None:
        self._observe(_PLACES[name], _HISTOGRAMS[name][1], value)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request that was answered."""
        number = self._routes.index(route if route in self._routes else OTHER)
        column = STATUSES.index(status) if status in STATUSES else len(STATUSES)
        self._add(_PLACES["requests"] + number * (len(STATUSES) + 1) + column, 1.0)
        self._observe(_PLACES["latency"] + number * (len(SECONDS) + 2), SECONDS, seconds)

    def text(self) -> str:
        """All of it, in Prometheus' text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _add(self, place: int, amount: float) -> None:
        self._rows[self._first + place] += amount

    def _observe(self, place: int, bounds: Sequence[float], value: float) -> None:
        """A bucket each, one for more than all bounds, then the sum."""
        self._add(place + bisect.bisect_left(bounds, value), 1.0)
        self._add(place + len(bounds) + 1, value)

    def _sum(self, place: int) -> float:
        return sum(self._rows[row * _CELLS + place] for row in range(self._workers))

    def _lines(self) -> Iterator[str]:
        yield from _head("dragoman_requests_total", "counter", "Requests answered; 499 hung up before that.")
        for number, route in enumerate(self._routes):
            for column, status in enumerate((*STATUSES, OTHER)):
                total = self._sum(_PLACES["requests"] + number * (len(STATUSES) + 1) + column)
                if total:
                    yield f'dragoman_requests_total{{route="{route}",status="{status}"}} {total:.0f}'
        yield from _head("dragoman_request_seconds", "histogram", "How long requests took, from their first line.")
        for number, route in enumerate(self._routes):
            place = _PLACES["latency"] + number * (len(SECONDS) + 2)
            yield from _histogram("dragoman_request_seconds", f'route="{route}"', place, SECONDS, self._sum)
        for name, (help_text, bounds) in _HISTOGRAMS.items():
            yield from _head(name, "histogram", help_text)
            yield from _histogram(name, "", _PLACES[name], bounds, self._sum)
        for kind, table in (("counter", _COUNTERS), ("gauge", _GAUGES)):
            for name, help_text in table.items():
                yield from _head(name, kind, help_text)
                yield f"{name} {self._sum(_PLACES[name]):.0f}"


def _head(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _histogram(
    name: str, label: str, place: int, bounds: Sequence[float], total_of: Callable[[int], float]
) -> Iterator[str]:
    counts = [total_of(place + number) for number in range(len(bounds) + 1)]
    if not any(counts):
        return
    running = 0.0
    comma = "," if label else ""
    for bound, count in zip((*(f"{bound:g}" for bound in bounds), "+Inf"), counts, strict=True):
        running += count
        yield f'{name}_bucket{{{label}{comma}le="{bound}"}} {running:.0f}'
    braces = f"{{{label}}}" if label else ""
    yield f"{name}_sum{braces} {total_of(place + len(bounds) + 1):.6f}"
    yield f"{name}_count{braces} {running:.0f}"
