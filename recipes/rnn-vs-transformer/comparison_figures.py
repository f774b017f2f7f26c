"""Figures as SVG files that stand alone: they follow light and dark, and lines differ in more than colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 48, 470, 16, 268
# Okabe and Ito's colours, which people who are colour-blind can tell apart.
COLOURS, DASHES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7"), ("2 4", "8 4", "", "10 3 2 3")
CELL, LETTER = 26, 8.2

STYLE = """<style>
svg { color: #222; background: #fff; font: 13px system-ui, sans-serif }
text { fill: currentColor } .grid { stroke: currentColor; opacity: .15 } .axis { opacity: .75 }
@media (prefers-color-scheme: dark) { svg { color: #ddd; background: #16181c } }
</style>"""


@dataclass(frozen=True)
class Line:
    """A name, and points (x, y) from left to right."""

    name: str
    points: Sequence[tuple[float, float]]


def line_chart(lines: Sequence[Line], ticks: Sequence[tuple[float, str]], x_title: str, y_title: str) -> str:
    """A line each, named at its end; `ticks` are the places on the x axis and what stands under them."""
    top = _round_up(max((y for line in lines for _, y in line.points), default=1.0))
    widest = max((x for x, _ in ticks), default=1.0) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + 14 + (RIGHT - LEFT - 28) * x / widest, BOTTOM - (BOTTOM - TOP) * y / top

    marks = []
    for share in range(6):
        value = top * share / 5
        height = place(0, value)[1]
        marks.append(
            f'<path class="grid" d="M{LEFT} {height:.1f}H{RIGHT}"/>{_text(LEFT - 6, height + 4, f"{value:g}", "end")}'
        )
    marks += [_text(place(x, 0)[0], BOTTOM + 18, label, "middle") for x, label in ticks]
    ends = [place(*line.points[-1])[1] + 4 if line.points else BOTTOM for line in lines]
    for index, (line, y_name) in enumerate(zip(lines, _apart(ends), strict=True)):
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line.points))
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in (place(*point) for point in line.points)
        )
        marks.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
            f'<g fill="{colour}">{dots}</g>'
            f'<text x="{RIGHT + 8}" y="{y_name:.1f}" style="fill:{colour}">{escape(line.name)}</text>'
        )
    marks.append(_text((LEFT + RIGHT) / 2, HEIGHT - 12, x_title, "middle", "axis"))
    marks.append(f'<g transform="rotate(-90 12 {HEIGHT / 2})">{_text(12, HEIGHT / 2, y_title, "middle", "axis")}</g>')
    return _svg(WIDTH, HEIGHT, f"{y_title} by {x_title}", "".join(marks))


def word_grid(weights: Sequence[Sequence[float]], sources: Sequence[str], targets: Sequence[str], title: str) -> str:
    """A row a target word, a column a source word, darker the more it was looked at."""
    left = 12 + LETTER * max(map(len, targets))
    head = 16 + LETTER * max(map(len, sources))
    cells = []
    for row, (word, line) in enumerate(zip(targets, weights, strict=True)):
        y = head + CELL * row
        cells.append(_text(left - 6, y + CELL * 0.65, word, "end"))
        for column, weight in enumerate(line):
            named = escape(f"{word} – {sources[column]}: {weight:.2f}")
            cells.append(
                f'<rect x="{left + CELL * column:.1f}" y="{y:.1f}" width="{CELL - 2}" height="{CELL - 2}" '
                f'fill="{COLOURS[1]}" fill-opacity="{0.04 + 0.96 * min(max(weight, 0), 1):.2f}">'
                f"<title>{named}</title></rect>"
            )
    for column, word in enumerate(sources):
        x = left + CELL * (column + 0.6)
        cells.append(f'<g transform="rotate(-90 {x:.1f} {head - 6:.1f})">{_text(x, head - 6, word, "start")}</g>')
    return _svg(left + CELL * len(sources) + 12, head + CELL * len(targets) + 12, f"alignment: {title}", "".join(cells))


def _apart(heights: Sequence[float], least: float = 16.0) -> list[float]:
    """The same heights, moved down where two names would overlap."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    moved = list(heights)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + least)
    return moved


def _round_up(largest: float) -> float:
    """The next multiple of 5, 10, 25 or 50 that holds it in five steps of round numbers."""
    return next((top for top in (1, 5, 10, 25, 50, 75, 100) if top >= largest), 5 * -(-largest // 5))


def _svg(width: float, height: float, label: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">{STYLE}{body}</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
