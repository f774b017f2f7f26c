"""The report's plots: SVG written by hand, coloured by the page's style sheet, so that they follow light and dark.

A plot is as wide as a phone's column and never scaled below it, so its letters stay as large as those around it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 40, 346, 16, 176
BIN = 5
MOST_DOTS = 1500
"""More dots than this hide each other and make the file heavy; every k-th is drawn then."""


@dataclass(frozen=True)
class Bar:
    """A bar's height, what stands under it, and a smaller note under that."""

    label: str
    note: str
    value: float


def bars(rows: Sequence[Bar], title: str, axis: str) -> str:
    """A bar a row, each with its value on top."""
    ticks = _ticks(max(row.value for row in rows))
    slot = (RIGHT - LEFT) / len(rows)
    width = min(46.0, slot * 0.62)
    marks = []
    for i, row in enumerate(rows):
        middle, top = LEFT + slot * (i + 0.5), _y(row.value, ticks[-1])
        marks.append(
            f"<g><title>{escape(f'{row.label}: {row.value:.1f} ({row.note})')}</title>"
            f'<rect class="bar" x="{_n(middle - width / 2)}" y="{_n(top)}" width="{_n(width)}" '
            f'height="{_n(BOTTOM - top)}"/>'
            f"{_text(middle, top - 5, f'{row.value:.1f}', 'middle', 'value')}"
            f"{_text(middle, BOTTOM + 15, row.label, 'middle')}"
            f"{_text(middle, BOTTOM + 27, row.note, 'middle', 'note')}</g>"
        )
    return _plot(title, ticks, "".join(marks), axis)


def histogram(values: Sequence[float], title: str, axis: str) -> str:
    """How many of the values, which lie from 0 to 100, fall into each bin of `BIN`."""
    counts = [0] * (100 // BIN)
    for value in values:
        counts[min(int(value // BIN), len(counts) - 1)] += 1
    ticks = _ticks(max(counts))
    slot = (RIGHT - LEFT) / len(counts)
    marks = []
    for i, count in enumerate(counts):
        top = _y(count, ticks[-1])
        marks.append(
            f'<rect class="bar" x="{_n(LEFT + slot * i + 0.5)}" y="{_n(top)}" width="{_n(slot - 1)}" '
            f'height="{_n(BOTTOM - top)}"><title>{BIN * i} to {BIN * (i + 1)}: {count:,}</title></rect>'
        )
    return _plot(title, ticks, "".join(marks) + _x_axis(range(0, 101, 20), 100), axis)


def scatter(points: Sequence[tuple[float, float]], title: str, axis: str) -> str:
    """A dot a point, (0 to 1, 0 to 100), and a line through the mean height of each tenth that has a few dots."""
    drawn = points[:: max(1, math.ceil(len(points) / MOST_DOTS))]
    dots = "".join(f'<circle cx="{_n(_x(x, 1))}" cy="{_n(_y(y, 100))}" r="2"/>' for x, y in drawn)
    tenths: dict[int, list[tuple[float, float]]] = {}
    for point in points:
        tenths.setdefault(min(9, int(10 * point[0])), []).append(point)
    line = [
        (_x(sum(x for x, _ in tenth) / len(tenth), 1), _y(sum(y for _, y in tenth) / len(tenth), 100))
        for _, tenth in sorted(tenths.items())
        if len(tenth) >= 5
    ]
    path = " ".join(f"{_n(x)},{_n(y)}" for x, y in line)
    means = f'<polyline class="trend" points="{path}"/>' if len(line) > 1 else ""
    body = f'<g class="dots">{dots}</g>{means}{_x_axis([0, 0.25, 0.5, 0.75, 1], 1)}'
    return _plot(title, [0, 25, 50, 75, 100], body, axis)


def _plot(title: str, ticks: Sequence[float], body: str, axis: str) -> str:
    lines = "".join(
        f'<path class="grid" d="M{LEFT} {_n(_y(tick, ticks[-1]))}H{RIGHT}"/>'
        f"{_text(LEFT - 6, _y(tick, ticks[-1]) + 3.5, f'{tick:,g}', 'end')}"
        for tick in ticks
    )
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{lines}{body}{_text((LEFT + RIGHT) / 2, HEIGHT - 4, axis, 'middle', 'axis')}</svg>"
    )


def _x_axis(ticks: Sequence[float], top: float) -> str:
    return "".join(_text(_x(tick, top), BOTTOM + 15, f"{tick:g}", "middle") for tick in ticks)


def _ticks(largest: float) -> list[float]:
    """Round numbers from 0 to the first that is not below `largest`, at most six."""
    rough = max(largest, 1e-9) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    return [step * i for i in range(math.ceil(largest / step - 1e-9) + 1)] if largest > 0 else [0, 1]


def _x(value: float, top: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(max(value / top, 0), 1)


def _y(value: float, top: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * min(max(value / top, 0), 1)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _text(x: float, y: float, text: str, anchor: str, style: str = "tick") -> str:
    return f'<text class="{style}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{escape(text)}</text>'
