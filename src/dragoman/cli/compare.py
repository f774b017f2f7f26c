"""`dragoman compare`: is one model, or output, better than another, or is it chance?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli._scoring import (
    Model,
    open_model,
    progress,
    read_test,
    score_options,
    scoring_options,
    stdout_console,
)
from dragoman.errors import ConfigError
from dragoman.text.lines import STANDARD_INPUT

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dragoman.evaluate.compare import Change, Comparison
    from dragoman.evaluate.testset import TestSet


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@scoring_options
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=100),
    default=1000,
    show_default=True,
    help="Draws of the test set.",
)
@click.option("--seed", metavar="N", type=click.IntRange(min=0), default=12345, show_default=True, help="Of the draws.")
@click.option(
    "--changes", type=click.IntRange(min=0), default=5, show_default=True, help="Changed lines to show, a side."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    first: str,
    second: str,
    test_file: str | None,
    source_file: str | None,
    target_file: str | None,
    source_language: str | None,
    target_language: str | None,
    limit: int | None,
    swap: bool,
    lowercase: bool,
    tokenize: str,
    beam: int | None,
    engine: str | None,
    compute_type: str | None,
    samples: int,
    seed: int,
    changes: int,
    as_json: bool,
) -> None:
    """Compare A and B on a test set. Each is a model (its folder or name) or an output (a file, a line a sentence).

    BLEU and chrF of both, the difference with its 95 % interval, and a p-value by paired bootstrap resampling; then
    the lines where B gained most and lost most.
    """
    from dragoman.evaluate.compare import CompareOptions, compare_outputs
    from dragoman.evaluate.testset import read_hypotheses

    idle = [name for name, given in (("--beam", beam), ("--engine", engine), ("--compute-type", compute_type)) if given]
    if idle and _is_output(first) and _is_output(second):
        raise ConfigError(f"{idle[0]} does nothing to outputs that exist already: leave it out")
    scoring = score_options(lowercase, tokenize)
    options = CompareOptions(samples=samples, seed=seed, changes=changes)
    test = read_test(test_file, source_file, target_file, source_language, target_language, limit, swap)
    # Both are opened before one is translated: a typing error in B should not cost the time of A.
    opened = [
        read_hypotheses(one, test, limit or 0)
        if _is_output(one)
        else open_model(one, languages=test.languages, engine=engine, compute_type=compute_type, beam=beam)
        for one in (first, second)
    ]
    outputs = [_translated(one, test) if isinstance(one, Model) else one for one in opened]
    comparison = compare_outputs(outputs[0], outputs[1], test, options, scoring, names=(first, second))
    if as_json:
        click.echo(json.dumps(comparison.summary(), ensure_ascii=False, indent=1))
    else:
        print_comparison(comparison, stdout_console())


def print_comparison(comparison: Comparison, console: Console) -> None:
    """The comparison for a person."""
    from rich.text import Text

    console.print(Text(f"A = {comparison.first}\nB = {comparison.second}", style="bold"))
    about = f"{comparison.num_changed:,} of {comparison.num_pairs:,} lines of {comparison.test_set} differ"
    console.print(Text(about, style="dim"))
    console.print()
    console.print(_differences(comparison))
    console.print(Text(f"paired bootstrap, {comparison.samples:,} draws, seed {comparison.seed}", style="dim"))
    for difference in comparison.differences:
        console.print(Text(f"{difference.name}: {difference.signature}", style="dim"))
    for title, changes in (("B gains most", comparison.gains), ("B loses most", comparison.losses)):
        if changes:
            console.print()
            console.print(Text(title, style="bold"))
            for change in changes:
                _print_change(change, console)


def _differences(comparison: Comparison) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("score")
    for head in ("A", "B", "B - A", "95 % interval", "p"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("")
    for one in comparison.differences:
        verdict = "could be chance"
        if one.significant:
            verdict = "B is better" if one.difference > 0 else "A is better"
        table.add_row(
            one.name,
            f"{one.first:.2f}",
            f"{one.second:.2f}",
            f"{one.difference:+.2f}",
            f"{one.low:+.2f} to {one.high:+.2f}",
            f"{one.p_value:.4f}",
            verdict,
        )
    return table


def _print_change(change: Change, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    head = f"line {change.number:,}: chrF {change.first_chrf:.1f} -> {change.second_chrf:.1f}"
    console.print(Padding(Text(head, style="dim"), (0, 0, 0, 2), expand=False))
    rows = [("source", change.source), *(("reference", text) for text in change.references)]
    for name, text in [*rows, ("A", change.first), ("B", change.second)]:
        console.print(Padding(Text(f"{name:>9}  {text or '(nothing)'}"), (0, 0, 0, 2), expand=False))


def _is_output(one: str) -> bool:
    """Whether an argument is an output and not a model, which is a folder or a name."""
    return one == STANDARD_INPUT or (Path(one).exists() and not Path(one).is_dir())


def _translated(model: Model, test: TestSet) -> list[str]:
    from dragoman.evaluate.scores import translate_lines

    with progress(f"translating with {model.system.name}", len(test)) as done:
        return [translation.text for translation in translate_lines(model, test.sources, done)]
