"""`dragoman explain`: what a translation was made of."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli._files import check_place, write_text
from dragoman.cli._idle import refuse_idle
from dragoman.cli._model import find_model
from dragoman.cli._words import joined
from dragoman.errors import ConfigError, require

if TYPE_CHECKING:
    from dragoman.explain import Explainer, Trace
    from dragoman.explain.effects import Effects

_WIDTH = 80
_TELLING = 5
_WIDEST = 64  # the tree of a wider search is more than anybody reads, and takes gigabytes


@click.command(name="explain", short_help="See what a translation was made of.")
@click.argument("words", nargs=-1, required=True, metavar="TEXT...")
@click.option("--model", metavar="MODEL", help="A model's folder, or its name in the box.")
@click.option("--from", "source_language", metavar="LANG", help="The language of the text; it is not guessed.")
@click.option("--to", "target_language", metavar="LANG", help="The language to translate into.")
@click.option(
    "--sentence", type=click.IntRange(min=1), default=1, metavar="N", help="The sentence of TEXT to explain. [1]"
)
@click.option(
    "--beam", type=click.IntRange(1, _WIDEST), metavar="N", help="Hypotheses kept open; the model's own if not given."
)
@click.option(
    "--length-penalty", type=float, metavar="A", help="0 favours short translations; the model's own if not given."
)
@click.option("--force", "forced", metavar="TEXT", help="What the translation must begin with.")
@click.option(
    "--off", multiple=True, metavar="HEAD", help="A head to switch off, say encoder.0.self_attention.3; several."
)
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="Show what might have been instead of piece N.")
@click.option("--tree", is_flag=True, help="Show the search.")
@click.option("--png", "png_folder", metavar="FOLDER", type=click.Path(path_type=Path), help="Write pictures.")
@click.option(
    "--html", "html_file", metavar="FILE", type=click.Path(path_type=Path), help="Write one page that needs no network."
)
@click.option(
    "--save",
    "save_folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write all numbers: trace.json, trace.safetensors.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the trace as JSON, without its tensors.")
def command(**options: Any) -> None:
    """Translate TEXT and show what the translation was made of: who looked where, what else might have been.

    \b
    dragoman explain "Je suis étudiant."
    dragoman explain --html page.html "Je suis étudiant."
    dragoman explain --off decoder.1.cross_attention.0 --force "I'm" "Je suis étudiant."
    """
    require("torch", "train", "explaining a translation")
    from dragoman.explain import open_explainer

    check_place(options["html_file"], "the page")
    if options["as_json"]:
        refuse_idle({"--tree": options["tree"], "--step": options["step"]}, "is for reading, --json has all: leave it")
    explainer = open_explainer(find_model(options))
    trace = _trace(explainer, options)
    if options["step"] is not None and options["step"] > len(trace.steps):
        raise ConfigError(f"--step is {options['step']}, the translation has {len(trace.steps)} pieces")
    # Going through the translation once for each head takes longer than all the rest.
    effects = None if options["as_json"] and not options["png_folder"] else explainer.effects(trace.request)
    written = _write_files(explainer, trace, effects, options)
    if options["as_json"]:
        click.echo(json.dumps(trace.meta(), ensure_ascii=False))
    elif effects is not None:
        width = min(_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDTH
        click.echo("\n".join(_report(trace, effects, options, width)))
    for path in written:
        click.echo(f"wrote {path}", err=True)


def _trace(explainer: Explainer, options: dict[str, Any]) -> Trace:
    forced = joined([options["forced"] or ""], "--force")
    prefix = tuple(explainer.tokenizer.target_side.encode(forced).ids) if forced else ()
    return explainer.trace(
        joined(options["words"]),
        source=options["source_language"],
        target=options["target_language"],
        sentence=options["sentence"] - 1,
        beam=options["beam"],
        length_penalty=options["length_penalty"],
        prefix=prefix,
        off=tuple(options["off"]),
    )


def _write_files(explainer: Explainer, trace: Trace, effects: Effects | None, options: dict[str, Any]) -> list[Path]:
    """What was asked for; -> where it is."""
    written: list[Path] = []
    if options["save_folder"]:
        trace.save(options["save_folder"])
        written.append(options["save_folder"])
    if options["png_folder"]:
        require("matplotlib", "train", "drawing pictures")
        from dragoman.explain.figures import draw_all

        written += draw_all(trace, options["png_folder"], effects)
    if options["html_file"]:
        from dragoman.explain.answers import whole_page

        write_text(options["html_file"], "the page", whole_page(explainer, trace.request))
        written.append(options["html_file"])
    return written


def _looked_by(trace: Trace) -> str:
    layer = trace.alignment_layer
    return f" (decoder.{layer}.cross_attention, mean of its heads)" if layer >= 0 else ""


def _report(trace: Trace, effects: Effects, options: dict[str, Any], width: int) -> list[str]:
    """What a person reads."""
    from dragoman.explain import terminal

    outcome, request = trace.translation, trace.request
    many = f"   sentence {request.sentence + 1} of {len(trace.sentences)}" if len(trace.sentences) > 1 else ""
    lines = [
        *_wrapped(request.source, trace.source.text, width),
        *_wrapped(request.target, outcome.text, width),
        f"score {outcome.score:.2f}   confidence {outcome.confidence:.2f}   beam {request.beam}{many}",
        *(["it was cut off at its maximum length"] if not outcome.finished else []),
        *([f"switched off: {', '.join(request.off)}"] if request.off else []),
        "",
        f"Which words looked where{_looked_by(trace)}",
        *terminal.draw_alignment(trace, width),
    ]
    telling = effects.telling(_TELLING)
    if telling:
        lines += [
            "",
            f"Most telling heads: what the log-probability ({effects.before:.2f}) loses without each",
            *terminal.list_heads(trace.heads, telling),
            "",
            f"{telling[0].name}",
            *terminal.draw_head(trace, telling[0].name, width),
        ]
    lines += ["", "Piece by piece, and what might have been instead", *terminal.list_steps(trace, width)]
    if options["step"]:
        lines += ["", *terminal.draw_step(trace, options["step"], width)]
    if options["tree"]:
        lines += ["", "The search: [chosen] score, ■ an end", *terminal.draw_tree(trace, width)]
    return lines


def _wrapped(language: str | None, text: str, width: int) -> list[str]:
    import textwrap

    name = f"{language or ''}  "
    return textwrap.wrap(text, width, initial_indent=name, subsequent_indent=" " * len(name)) or [name.rstrip()]
