"""`dragoman evaluate --behaviour`: how a model takes what everyday users write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from dragoman.cli._scoring import Model, progress, stdout_console
from dragoman.cli._tables import table

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.evaluate.behaviour import Behaviour

_WINDOW_TEXTS = 256


def evaluate_behaviour(model: Model, sentences: Sequence[str], *, recorded: bool, as_json: bool) -> None:
    """Run the suite on a model's direction, print what held, and keep it if asked."""
    from dragoman.bundle.recording import record
    from dragoman.evaluate.behaviour import run_suite

    def translate(texts: list[str]) -> list[str]:
        if len(texts) <= _WINDOW_TEXTS:
            return [translation.text for translation in model.translate(texts)]
        found: list[str] = []
        with progress("translating", len(texts)) as tell:
            for start in range(0, len(texts), _WINDOW_TEXTS):
                found += (translation.text for translation in model.translate(texts[start : start + _WINDOW_TEXTS]))
                tell(len(found))
        return found

    found = run_suite(translate, *model.direction, sentences=sentences)
    direction = "-".join(model.direction)
    rows = [behaviour.summary() for behaviour in found]
    try:
        if as_json:
            facts = {"model": model.system.name, "direction": direction, "behaviour": rows}
            click.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        else:
            print_behaviour(f"{model.system.name}, {direction}", found, stdout_console())
    finally:  # a reader who closes the pipe costs the record nothing
        if recorded:
            record(model.bundle, behaviour={direction: rows})


def print_behaviour(title: str, found: Sequence[Behaviour], console: Console) -> None:
    """What was tried, what held, and a failure of each kind."""
    from rich.text import Text

    console.print(Text(title, style="bold"))
    grid = table(("what was tried", "left"), ("held", "right"), ("of", "right"), ("for example, what did not", "left"))
    for behaviour in found:
        failure = next((trial for trial in behaviour.trials if not trial.held), None)
        example = f"{failure.text} → {failure.translation} ({failure.expected})" if failure else ""
        grid.add_row(behaviour.kind, str(behaviour.held), str(len(behaviour.trials)), Text(example, style="dim"))
    console.print(grid)
