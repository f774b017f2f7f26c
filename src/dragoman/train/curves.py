"""`curves.png`: what `training.jsonl` tells, as four small charts over the steps."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.errors import DataError, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people who are colour-blind can tell apart.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"

SMOOTHED_POINTS = 60
"""About as many stretches are averaged into a line that has more points; the points stay, faint."""


@dataclass(frozen=True)
class Log:
    """The events with figures, in the order of their steps."""

    steps: tuple[Mapping[str, Any], ...]
    validations: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Series:
    """The known values of one figure, and the steps that they belong to."""

    steps: np.ndarray
    values: np.ndarray


def read_log(path: Path) -> Log:
    """The log as far as it can be read: a line that was cut off is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot read the training log: {error.strerror}") from error
    events: list[Mapping[str, Any]] = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if not isinstance(event, dict) or not isinstance(event.get("step"), int):
            continue
        if event.get("event") == "start":
            # A run that went back to an earlier step goes on from there: what followed it never was.
            events = [earlier for earlier in events if earlier["step"] <= event["step"]] if event["step"] else []
        events.append(event)
    steps, validations = (tuple(e for e in events if e.get("event") == kind) for kind in ("step", "validation"))
    if not steps:
        raise DataError(f"{path} has no training step to draw: expected the training.jsonl of a run that has begun")
    return Log(steps, validations)


def series_of(events: Iterable[Mapping[str, Any]], key: str) -> Series:
    """The values under `key`; events without one are left out."""
    known = [(event["step"], event[key]) for event in events if event.get(key) is not None]
    return Series(np.array([step for step, _ in known]), np.array([value for _, value in known], dtype=float))


def smoothed(series: Series, window: int) -> Series:
    """The running mean over `window` points, each at the middle of its window."""
    kernel = np.ones(window) / window
    return Series(*(np.convolve(values, kernel, "valid") for values in (series.steps, series.values)))


def draw_curves(log_path: Path, png_path: Path) -> None:
    """Draw the log's loss, scores, learning rate and speed; the file is whole or what it was before."""
    log = read_log(log_path)
    require("matplotlib", "train", "drawing curves")
    # The figure and its canvas alone: pyplot would choose a window system and keep every figure it makes.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(11, 7.5), layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15))
    FigureCanvasAgg(figure)
    _draw_panels(figure, log)
    temporary = png_path.with_name(png_path.name + ".part")
    try:
        figure.savefig(temporary, format="png", dpi=120)
        os.replace(temporary, png_path)
    finally:
        temporary.unlink(missing_ok=True)


def _draw_panels(figure: "Figure", log: Log) -> None:
    (loss, scores), (rate, speed) = figure.subplots(2, 2)
    _line(loss, series_of(log.steps, "loss"), BLUE, "training")
    _points(loss, series_of(log.validations, "loss"), ORANGE, "validation")
    _points(scores, series_of(log.validations, "bleu"), GREEN, "BLEU")
    _points(scores, series_of(log.validations, "chrf"), PURPLE, "chrF")
    _line(rate, series_of(log.steps, "learning_rate"), BLUE, smooth=False)
    _line(speed, series_of(log.steps, "target_tokens_per_second"), BLUE)
    titles = ("Loss, nats per target piece", "BLEU and chrF", "Learning rate", "Target tokens per second")
    last = max(event["step"] for event in (*log.steps, *log.validations))
    for axes, title in zip((loss, scores, rate, speed), titles, strict=True):
        _furnish(axes, title, last)
        _minutes(axes, log)
    for axes in (scores, rate, speed):
        axes.set_ylim(bottom=0)
    speed.yaxis.set_major_formatter("{x:,.0f}")
    loss.legend(frameon=False, fontsize=9)
    if scores.lines:
        scores.legend(frameon=False, fontsize=9)
    else:
        scores.text(0.5, 0.5, "no scores yet", transform=scores.transAxes, ha="center", color=GREY)
        scores.set_yticks([])


def _line(axes: "Axes", series: Series, color: str, label: str = "", smooth: bool = True) -> None:
    window = len(series.values) // SMOOTHED_POINTS + 1
    if smooth and window > 1:
        axes.plot(series.steps, series.values, color=color, alpha=0.3, linewidth=0.8)
        series = smoothed(series, window)
    marker = "o" if len(series.values) == 1 else None
    axes.plot(series.steps, series.values, color=color, linewidth=1.6, marker=marker, markersize=4, label=label)


def _points(axes: "Axes", series: Series, color: str, label: str) -> None:
    if len(series.values):
        axes.plot(series.steps, series.values, color=color, linewidth=1.4, marker="o", markersize=3.5, label=label)


def _furnish(axes: "Axes", title: str, last_step: int) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("step", color=GREY)
    axes.set_xlim(0, max(last_step, 1) * 1.02)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=GREY, labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#bbbbbb")


def _minutes(axes: "Axes", log: Log) -> None:
    """A second axis on top: round minutes, at the steps that training had come to by then."""
    times = series_of(sorted((*log.steps, *log.validations), key=lambda event: event["step"]), "seconds")
    # In order of time as well, which interpolation needs; a clock that was set back makes no step back.
    minutes = np.maximum.accumulate(np.concatenate(([0.0], times.values))) / 60
    steps = np.concatenate(([0], times.steps))
    if minutes[-1] <= 0:
        return
    from matplotlib.ticker import MaxNLocator

    ticks = [
        tick for tick in MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(0, minutes[-1]) if 0 <= tick <= minutes[-1]
    ]
    top = axes.secondary_xaxis("top")
    top.set_xticks(np.interp(ticks, minutes, steps).tolist(), labels=[f"{tick:g}" for tick in ticks])
    top.set_xlabel("minutes", color=GREY, fontsize=9)
    top.tick_params(colors=GREY, labelsize=8)
    top.spines["top"].set_color("#bbbbbb")
