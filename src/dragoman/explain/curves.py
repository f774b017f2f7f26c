"""Two pictures of the paper's training: the learning rate over the steps, and what label smoothing does to the loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dragoman.explain.canvas import BLUE, GREEN, GREY, ORANGE, furnish, new_figure, save, title
from dragoman.train.schedule import paper_rate

SCHEDULES = ((512, 4000, BLUE), (512, 8000, ORANGE), (256, 4000, GREEN))
"""d_model, warmup_steps and colour of each curve."""
SMOOTHINGS = ((0.0, BLUE), (0.1, ORANGE), (0.2, GREEN))
VOCABULARY = 37_000


def draw_learning_rate(path: Path, last_step: int = 20_000) -> Path:
    """d_model^-0.5 min(step^-0.5, step warmup^-1.5): climb in a line, fall as 1 / sqrt(step)."""
    figure = new_figure(7, 4)
    axes = figure.subplots()
    steps = range(1, last_step + 1, 20)
    for d_model, warmup, color in SCHEDULES:
        rates = [1000 * paper_rate(step, d_model, warmup) for step in steps]
        axes.plot(list(steps), rates, color=color, linewidth=1.8, label=f"d_model {d_model}, warmup {warmup:,}")
    furnish(axes, "step", "learning rate, thousandths")
    axes.set_xlim(0, last_step)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, fontsize=9)
    title(axes, "The paper's learning rate")
    return save(figure, path)


def draw_smoothing(path: Path) -> Path:
    """The loss of a piece against the probability that the model gives it, the others sharing the rest alike."""
    figure = new_figure(7, 4)
    axes = figure.subplots()
    # Close together at both ends, where the curves are steep.
    shares = [1 / (1 + math.exp(-place / 20)) for place in range(-120, 281)]
    for smoothing, color in SMOOTHINGS:
        losses = smoothed_losses(shares, smoothing, VOCABULARY)
        axes.plot(shares, losses, color=color, linewidth=1.8, label=f"smoothing {smoothing:g}")
        if smoothing:
            best = min(range(len(losses)), key=losses.__getitem__)
            axes.plot([shares[best]], [losses[best]], "o", color=color, markersize=5)
    furnish(axes, "probability of the right piece", "loss, nats")
    axes.set_xlim(0, 1.01)
    axes.set_ylim(0, 5)
    axes.legend(frameon=False, fontsize=9, loc="upper center")
    axes.annotate("the dots are the lowest points:\nbeing quite sure costs", (0.04, 0.06), xycoords="axes fraction",
                  fontsize=8.5, color=GREY)  # fmt: skip
    title(axes, f"Label smoothing, {VOCABULARY:,} pieces")
    return save(figure, path)


def smoothed_losses(shares: Sequence[float], smoothing: float, num_pieces: int) -> list[float]:
    """-sum q log p, with p the right piece's share and the others alike: q is 1 - smoothing there, and smoothing / V
    everywhere.
    """
    return [
        -(1 - smoothing + smoothing / num_pieces) * math.log(share)
        - smoothing * (num_pieces - 1) / num_pieces * math.log((1 - share) / (num_pieces - 1))
        for share in shares
    ]
