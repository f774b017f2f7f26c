"""`dragoman info`: what a model folder holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dragoman.bundle import Bundle


@click.command(name="info", short_help="Print what a model folder holds.")
@click.argument("model", metavar="MODEL")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(model: str, as_json: bool) -> None:
    """Print what MODEL, a folder or the name of a model in the box, holds: languages, shape, data, scores, files."""
    from dragoman.bundle import Bundle, find

    facts = describe(Bundle.open(find(model)))
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for name, value in lines_of(facts):
        console.print(f"[bold]{name:<12}[/]", end="")
        console.print(value, markup=False)


def describe(bundle: Bundle) -> dict[str, Any]:
    """Everything there is to say about a bundle, as JSON holds it."""
    from dragoman.bundle.card import shape
    from dragoman.settings import to_mapping

    files = sorted(file for file in bundle.path.iterdir() if file.is_file() and not file.name.startswith("."))
    card = bundle.scorecard
    return {
        "path": str(bundle.path),
        "directions": list(bundle.directions),
        "parameters": bundle.num_parameters,
        "shape": shape(bundle.model_config),
        "model": to_mapping(bundle.model_config),
        "search": to_mapping(bundle.search),
        "vocabulary": bundle.tokenizer.vocab_size,
        "weights": {"dtype": bundle.dtype, "sha256": bundle.weights_hash()},
        "dragoman": bundle.version,
        "data": card.get("data", []),
        "licence": card.get("licence", ""),
        "scores": card.get("scores", []),
        "command": card.get("command", ""),
        "minutes": card.get("minutes"),
        "files": {file.name: file.stat().st_size for file in files},
    }


def lines_of(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts a person reads, as (name, value); what is not known is left out."""
    search = facts["search"]
    lines = [
        ("model", facts["path"]),
        ("translates", ", ".join(one.replace("-", " to ") for one in facts["directions"])),
        ("shape", facts["shape"]),
        ("parameters", f"{facts['parameters']:,} in {facts['weights']['dtype']}"),
        ("search", f"beam {search['beam']}, length penalty {search['length_penalty']}"),
    ]
    for score in facts["scores"]:
        value = score.get("score")
        figure = f"{value:.1f}" if isinstance(value, (int, float)) else str(value)
        details = " ".join(f"({score[key]})" for key in ("on", "signature") if score.get(key))
        lines.append(("score", f"{score.get('metric', '')} {figure} {details}".strip()))
    for corpus in facts["data"]:
        pairs = f"{corpus['pairs']:,} pairs" if corpus.get("pairs") else ""
        hashed = f"sha256 {str(corpus['sha256'])[:12]}" if corpus.get("sha256") else ""
        parts = (corpus.get("name", ""), pairs, corpus.get("licence", ""), corpus.get("attribution", ""), hashed)
        lines.append(("data", ", ".join(str(part) for part in parts if part)))
    for name in ("licence", "command"):
        if facts[name]:
            lines.append((name, facts[name]))
    if facts["minutes"] is not None:
        lines.append(("training", f"{facts['minutes']} minutes"))
    lines.append(("written by", f"dragoman {facts['dragoman']}"))
    lines += [("file", f"{name} {_size(size)}") for name, size in facts["files"].items()]
    return lines


def _size(num_bytes: int) -> str:
    if num_bytes < 1000:
        return f"{num_bytes} B"
    return f"{num_bytes / 1e3:.1f} kB" if num_bytes < 1_000_000 else f"{num_bytes / 1e6:.1f} MB"
