"""The picture of positions: twenty rows of 512 numbers, in both layouts of the sinusoids."""

from __future__ import annotations

from pathlib import Path

from dragoman.explain.canvas import GREY, HEAT, new_figure, quiet, save, title
from dragoman.model.position import sinusoid

POSITIONS, D_MODEL = 20, 512


def draw_positions(path: Path) -> Path:
    """Sine and cosine side by side, as the paper prints them, and all sines, then all cosines."""
    figure = new_figure(9, 6.2)
    layouts = (
        (True, "Sine and cosine side by side: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)"),
        (False, "The same numbers, all sines first, then all cosines"),
    )
    for axes, (interleaved, heading) in zip(figure.subplots(2, 1), layouts, strict=True):
        table_TD = sinusoid(POSITIONS, D_MODEL, interleaved=interleaved).numpy()
        image = axes.imshow(table_TD, cmap=HEAT, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        quiet(axes)
        axes.set_yticks([0, 5, 10, 15, 19])
        axes.set_xticks([0, 128, 256, 384, 511])
        axes.set_ylabel("position", color=GREY)
        title(axes, heading, size=9.5)
    axes.set_xlabel("dimension", color=GREY)
    bar = figure.colorbar(image, ax=figure.axes, aspect=30, pad=0.02, ticks=[-1, 0, 1])
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=GREY, labelsize=8, length=0)
    return save(figure, path)
