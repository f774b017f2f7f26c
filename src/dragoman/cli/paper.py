"""`dragoman paper`: the proof that this is the paper's model."""

import json
import sys

import click

from dragoman.errors import require


@click.command(name="paper", short_help="Check the model against the paper, figure by figure.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of {check, wanted, got, pass}.")
def command(as_json: bool) -> None:
    """Build every model of the paper's Table 3 and textbook examples, and compare figure by figure.

    Exits with 1 if a figure is missed.
    """
    require("torch", "train", "checking the model against the paper")
    from dragoman.evaluate.paper import run_checks

    rows = run_checks()
    if as_json:
        mappings = [{"check": row.check, "wanted": row.wanted, "got": row.got, "pass": row.passed} for row in rows]
        click.echo(json.dumps(mappings, ensure_ascii=False, indent=1))
    else:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, header_style="bold")
        table.add_column("check")
        table.add_column("wanted", justify="right")
        table.add_column("got", justify="right")
        table.add_column("")
        for row in rows:
            table.add_row(row.check, row.wanted, row.got, "[green]pass[/]" if row.passed else "[bold red]FAIL[/]")
        console = Console(width=None if sys.stdout.isatty() else 130)
        console.print(table)
        console.print(f"{sum(row.passed for row in rows)} of {len(rows)} figures agree with the paper and the notes.")
    if not all(row.passed for row in rows):
        sys.exit(1)
