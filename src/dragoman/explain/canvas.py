"""What the pictures share: a figure without pyplot, quiet axes, files that are whole."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cache import atomic_file
from dragoman.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, and a map, that people who are colour-blind can read.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
INK, GREY, PALE = "#222222", "#666666", "#bbbbbb"
HEAT = "cividis"
DPI = 144


def new_figure(width: float, height: float) -> Figure:
    """A figure of so many inches; pyplot would choose a window system and keep every figure it makes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Write the figure; the file is whole or what it was before."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file, warnings.catch_warnings():
            # A letter that no installed font has is drawn as a box, which says it better.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
            figure.savefig(file, format="png", dpi=DPI)
    except OSError as error:
        raise DataError(f"cannot write the picture {path}: {error.strerror or error}") from error
    return path


def title(axes: Axes, text: str, size: float = 11) -> None:
    """On the left, as it stands: text may have dollar signs."""
    axes.set_title(text, loc="left", fontsize=size, color=INK, parse_math=False)


def quiet(axes: Axes) -> None:
    """Few lines, grey."""
    axes.tick_params(colors=GREY, labelsize=9, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def furnish(axes: Axes, x_label: str, y_label: str) -> None:
    """Axes for curves."""
    axes.set_xlabel(x_label, color=GREY)
    axes.set_ylabel(y_label, color=GREY)
    axes.grid(color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=GREY, labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
