"""`dragoman doctor`: look a corpus over before hours are spent on it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli._files import check_place, write_text
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dragoman.text.diagnosis import Diagnosis, Finding
    from dragoman.text.sizes import Pieces

_STYLES = {"problem": "bold red", "warning": "yellow", "note": "cyan"}
_PLAIN_COLUMNS = 10_000  # a file or a pipe wraps nothing


@click.command("doctor")
@click.argument("corpora", nargs=-1, metavar="[CORPUS]...")
@click.option("--source", "source_file", metavar="FILE", help="The source side, a sentence a line.")
@click.option("--target", "target_file", metavar="FILE", help="The target side, aligned with --source line by line.")
@click.option("--valid", multiple=True, metavar="CORPUS", help="Pairs to validate on, which must not be in training.")
@click.option("--test", multiple=True, metavar="CORPUS", help="Pairs to test on, which must not be in training.")
@click.option("--from", "source_language", metavar="LANGUAGE", help="The source language, say fr.")
@click.option("--to", "target_language", metavar="LANGUAGE", help="The target language, say en.")
@click.option(
    "--model", metavar="PATH", help="A model folder or tokenizer.json: count real pieces, not estimated ones."
)
@click.option("--no-prediction", is_flag=True, help="Do not measure this machine to say how long training would take.")
@click.option("--strict", is_flag=True, help="Exit with 1 if there are problems.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write an HTML page as well.")
def command(
    corpora: tuple[str, ...],
    source_file: str | None,
    target_file: str | None,
    valid: tuple[str, ...],
    test: tuple[str, ...],
    source_language: str | None,
    target_language: str | None,
    model: str | None,
    no_prediction: bool,
    strict: bool,
    as_json: bool,
    report: str | None,
) -> None:
    """Look parallel text over: what is broken, doubtful or would be dropped, and what to do about it.

    A CORPUS is a file of pairs (TSV, TMX or JSON lines, plain or .gz/.xz/.zst), two aligned files joined by a comma
    (train.fr,train.en), or - for standard input.
    """
    from dragoman.recipe import CorpusConfig
    from dragoman.text.corpus import corpus_of
    from dragoman.text.doctor import examine

    languages = _languages(source_language, target_language)
    train = [corpus_of(corpus, languages) for corpus in corpora]
    if bool(source_file) != bool(target_file):
        given, missing = ("--source", "--target") if source_file else ("--target", "--source")
        raise ConfigError(f"{given} is one of two aligned files: give the other one with {missing}")
    if source_file and target_file:
        train.append(CorpusConfig(path=source_file, target_path=target_file, languages=languages))
    check_place(report, "the report")
    with _Progress() as progress:
        diagnosis = examine(
            train,
            [corpus_of(corpus, languages) for corpus in valid],
            [corpus_of(corpus, languages) for corpus in test],
            tokenizer=_tokenizer(model) if model else None,
            progress=progress.show,
        )
    if not no_prediction:
        diagnosis = _with_prediction(diagnosis)
    if as_json:
        click.echo(json.dumps(diagnosis.to_mapping(), ensure_ascii=False))
    else:
        print_diagnosis(diagnosis)
    if report:
        from dragoman.text.doctor_report import report as page

        write_text(report, "the report", page(diagnosis))
        click.echo(f"report: {report}", err=as_json)
    if strict and diagnosis.problems:
        click.get_current_context().exit(1)


def _with_prediction(diagnosis: Diagnosis) -> Diagnosis:
    """What `dragoman train` would plan for these data on this machine; without torch nothing is predicted."""
    from dragoman.errors import MissingExtraError, require

    try:
        require("torch", "train", "a prediction")
    except MissingExtraError:
        return diagnosis
    from dataclasses import replace

    from dragoman.recipe import Recipe
    from dragoman.train.plan import make_plan, measure_operations_per_second, size_of

    size = size_of(diagnosis)
    if not size.pairs:
        return diagnosis
    plan = make_plan(Recipe(), size, operations_per_second=measure_operations_per_second())
    return replace(diagnosis, predicted_seconds=plan.seconds, predicted_memory_bytes=plan.memory_bytes)


def print_diagnosis(diagnosis: Diagnosis, console: Console | None = None) -> None:
    """The diagnosis for a person: what there is, what would be dropped, what was found and what to do, the verdict."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    if console is None:
        console = Console(highlight=False, width=None if sys.stdout.isatty() else _PLAIN_COLUMNS)
    console.print(Text(" → ".join(diagnosis.languages), style="bold"))
    console.print(_sizes(diagnosis))
    for line in _dropped(diagnosis):
        console.print(Text(line))
    for finding in diagnosis.findings:
        console.print()
        head = Text(f"{finding.severity} in {finding.where}{_share(finding)}: ", style=_STYLES[finding.severity])
        console.print(head.append(finding.what, style="default"))
        console.print(Padding(Text(f"→ {finding.advice}"), (0, 0, 0, 2), expand=False))
        for example in finding.examples:
            console.print(Padding(Text(example.place, style="dim"), (0, 0, 0, 4), expand=False))
            for line in filter(None, (example.source, example.target, example.remark and f"({example.remark})")):
                console.print(Padding(Text(line), (0, 0, 0, 6), expand=False))
    console.print()
    if diagnosis.prediction:
        console.print(Text(f"As planned, {diagnosis.prediction}."))
    console.print(Text(diagnosis.verdict, style="bold red" if diagnosis.problems else "bold green"))


def _sizes(diagnosis: Diagnosis) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    pieces = () if diagnosis.estimated else ("pieces a word",)
    for head in ("set", "pairs", "kept", "side", "words", "median", "95 %", *pieces):
        table.add_column(head, justify="left" if head in ("set", "side") else "right", no_wrap=True)
    for summary in diagnosis.sets:
        cells = [summary.name, f"{summary.pairs:,}", f"{summary.kept:,}"]
        for language, side in zip(diagnosis.languages, (summary.source, summary.target), strict=True):
            cells += [language, f"{side.words:,}", f"{side.median_words:,}", f"{side.percentile95_words:,}"]
            table.add_row(*cells, *([] if side.pieces_per_word is None else [f"{side.pieces_per_word:.2f}"]))
            cells = ["", "", ""]
    return table


def _dropped(diagnosis: Diagnosis) -> list[str]:
    from dragoman.text.diagnosis import REASONS, percent

    return [
        f"dropped from {summary.name}: "
        + ", ".join(
            f"{count:,} {REASONS[reason]} ({percent(count / summary.pairs)})"
            for reason, count in summary.dropped.items()
        )
        for summary in diagnosis.sets
        if summary.dropped
    ]


def _share(finding: Finding) -> str:
    from dragoman.text.diagnosis import percent

    return f", {percent(finding.share)}" if 0 < finding.share < 1 else ""


def _languages(source: str | None, target: str | None) -> str:
    if bool(source) != bool(target):
        given, missing = ("--from", "--to") if source else ("--to", "--from")
        raise ConfigError(f"{given} names one language of two: give the other one with {missing}")
    return f"{source.replace('-', '_')}-{target.replace('-', '_')}" if source and target else ""


def _tokenizer(model: str) -> Pieces:
    from dragoman.text.sentencepiece_tokenizer import load_tokenizer
    from dragoman.text.tokenizer import Tokenizer

    path = Path(model)
    return load_tokenizer(path) if path.is_dir() else Tokenizer.load(path)


class _Progress:
    """A line on standard error that counts pairs, on a terminal only, gone when the work is done."""

    def __init__(self) -> None:
        self._is_seen = sys.stderr.isatty()
        self._next_seconds = 0.0

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_seen:
            click.echo("\r\x1b[K", nl=False, err=True)

    def show(self, num_pairs: int) -> None:
        now = time.monotonic()
        if self._is_seen and now >= self._next_seconds:
            click.echo(f"\rlooking at pair {num_pairs:,}", nl=False, err=True)
            self._next_seconds = now + 0.1
