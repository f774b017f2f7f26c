"""How `dragoman translate` shows translations: lines, JSON, alignments; progress and warnings on standard error."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dragoman.translator import Translation

_SHOWN_WARNINGS = 5


def line(source: str, translation: Translation, options: dict[str, Any]) -> str:
    """A translation in one line, alternatives after tabs."""
    if options["as_json"]:
        return json_line(source, translation)
    return "\t".join([translation.text, *translation.alternatives])


def json_line(source: str, translation: Translation) -> str:
    """A translation and all there is to know about it, as JSON in one line."""
    sentences = [
        {
            "source": sentence.source,
            "target": sentence.target,
            "score": round(sentence.score, 4),
            "confidence": round(sentence.confidence, 4),
            "alignment": [[link.source, link.target, link.weight] for link in sentence.alignment],
        }
        for sentence in translation.sentences
    ]
    record = {
        "source": source,
        "text": translation.text,
        "score": round(translation.score, 4),
        "confidence": round(translation.confidence, 4),
        "alternatives": list(translation.alternatives),
        "warnings": list(translation.warnings),
        "sentences": sentences,
    }
    return json.dumps(record, ensure_ascii=False)


def draw(translation: Translation, options: dict[str, Any]) -> None:
    """Draw the alignment of each sentence, if that is asked for."""
    if options["align"] and not options["as_json"]:
        from dragoman.cli._alignment import draw_alignment

        columns = shutil.get_terminal_size().columns
        for sentence in translation.sentences:
            click.echo(f"\n{draw_alignment(sentence, columns)}\n")


class Warnings:
    """Tells the first few warnings of a file line by line, or text by text, and counts the rest."""

    def __init__(self, name: str, silent: bool, what: str = "lines") -> None:
        self.number = 0
        self._name = name
        self._silent = silent
        self._what = what
        self._told = self._untold = 0

    def add(self, translation: Translation) -> None:
        """The translation of the next one."""
        self.number += 1
        if self._silent or not translation.warnings:
            return
        if self._told < _SHOWN_WARNINGS:
            self._told += 1
            where = f":{self.number}" if self._what == "lines" else f", {self._what.removesuffix('s')} {self.number}"
            click.echo(f"dragoman: {self._name}{where}: {'; '.join(translation.warnings)}", err=True)
        else:
            self._untold += 1

    def summarize(self) -> None:
        """Say how many were not told."""
        if self._untold:
            hint = ", --json shows all" if self._what == "lines" else ""
            click.echo(f"dragoman: {self._untold} more {self._what} have warnings{hint}", err=True)


@contextmanager
def progress(total: int | None, done: int = 0, what: str = "lines") -> Iterator[Callable[[int], None]]:
    """A bar on a terminal: how many, how many a second, time left."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("translating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, completed=done, rate="")

        def advance(count: int) -> None:
            bar.advance(task, count)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:.0f} {what}/s" if speed else "")

        yield advance
