"""Training as a person sees it: a live bar on a terminal, plain lines elsewhere (a file, a pipe, a CI log).

What is said is worked out in `wording.py`; the two trackers here only put it on the screen.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dragoman.train.wording import fit, report, step_facts

MAX_BAR_WIDTH = 80
PLAIN_WIDTH = 120


class PlainProgress:
    """A line about every `every_seconds` of training, and for all else that happens."""

    def __init__(self, stream: TextIO, every_seconds: float = 10) -> None:
        self._stream = stream
        self._every_seconds = every_seconds
        self._next_seconds = -math.inf

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["event"] != "step":
            self._write(line.text for line in report(event, PLAIN_WIDTH))
        elif event["seconds"] >= self._next_seconds:
            self._next_seconds = event["seconds"] + self._every_seconds
            self._write(["  ".join(step_facts(event))])

    def _write(self, lines: Iterable[str]) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        for line in lines:
            self._stream.write(line.encode(encoding, "replace").decode(encoding) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """The stream is not ours to close."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TerminalProgress:
    """A bar with the figures of the last step below it; validations and messages scroll by above."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "step":
            self._draw(event)
            return
        if event["event"] == "end":
            self.close()
        lines = report(event, self._console.width)
        if lines:
            # Text, never markup: a sentence with [brackets] or :colons: is shown as it is. In one go, as each print
            # draws the bar anew.
            self._console.print(Text("\n").join(Text(line.text, style=line.style) for line in lines))

    def _draw(self, event: Mapping[str, Any]) -> None:
        width = self._console.width
        # A table, as a bar alone does not end its line.
        view = Table.grid()
        if event.get("total_steps"):
            bar_width = min(width, MAX_BAR_WIDTH)
            bar = ProgressBar(
                event["total_steps"], event["step"], bar_width, complete_style="cyan", finished_style="green"
            )
            view.add_row(bar)
        for line in fit(step_facts(event), width):
            view.add_row(Text(line))
        if self._live is None:
            # Drawn when there is news: no thread takes time from training. Standard output may be a pipe: it stays.
            self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
            self._live.start()
        self._live.update(view, refresh=True)

    def close(self) -> None:
        """Leave the last figures on the screen and give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_progress(stream: TextIO | None = None) -> TerminalProgress | PlainProgress:
    """The live view if `stream` (standard error if None) is a terminal that can show it, plain lines if not."""
    stream = sys.stderr if stream is None else stream
    console = Console(file=stream)
    able = not console.is_dumb_terminal and console.encoding.startswith("utf")
    return TerminalProgress(console) if stream.isatty() and able else PlainProgress(stream)
