"""`dragoman models`: the translators in the box."""

from __future__ import annotations

import json
from typing import Any

import click

from dragoman.cli._tables import table


@click.command(name="models", short_help="List the translators in the box.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
def command(as_json: bool) -> None:
    """List the models that came with dragoman: what they translate, how large they are, how well they score.

    `dragoman translate --to LANGUAGE` finds the right one by itself; any other model is named by its folder. --json and
    `dragoman info` have all scores, with signatures.
    """
    from dragoman.bundle import in_the_box

    rows = [describe(name) for name in in_the_box()]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    if not rows:
        click.echo("the box is empty: train a model, and name its folder with --model")
        return
    from rich.console import Console

    grid = table(("model", "left"), ("translates", "left"), ("parameters", "right"), ("MB", "right"), ("BLEU", "left"))
    for row in rows:
        grid.add_row(
            row["name"],
            "\n".join(one.replace("-", " to ") for one in row["directions"]),
            f"{row['parameters']:,}",
            f"{row['bytes'] / 1e6:.1f}",
            "\n".join(f"{score['score']:.1f} ({score['on']})" for score in row["scores"] if score["metric"] == "BLEU"),
        )
    Console(highlight=False).print(grid)


def describe(name: str) -> dict[str, Any]:
    """What a list says about a model in the box."""
    from dragoman.bundle import Bundle, find

    bundle = Bundle.open(find(name))
    return {
        "name": name,
        "path": str(bundle.path),
        "directions": list(bundle.directions),
        "parameters": bundle.num_parameters,
        "bytes": bundle.weights_bytes,
        "licence": bundle.scorecard.get("licence", ""),
        "scores": bundle.scorecard.get("scores", []),
    }
