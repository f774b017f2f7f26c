"""`dragoman translate`: text in, text out."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dragoman.cli._files import check_place
from dragoman.cli._idle import refuse_idle
from dragoman.cli._memory import memory_beside, memory_option
from dragoman.cli._model import find_model
from dragoman.cli._translations import Warnings, draw, json_line, line, progress
from dragoman.cli._words import joined
from dragoman.errors import ConfigError, DataError
from dragoman.text.lines import bare_name

if TYPE_CHECKING:
    from dragoman.translator import TranslateOptions, Translation, Translator

_STANDARD_INPUT = "-"
_DOCUMENTS = (".html", ".htm", ".srt", ".vtt", ".docx", ".odt")
"""Inputs that are translated as a whole, if nothing else is said."""
_SURE = 0.9
"""How confident a guess of the language must be to be told."""
_SAVED_LINES = 256
"""An interrupted run loses no more lines than this."""


@click.command(name="translate", short_help="Translate text, a file, or standard input.")
@click.argument("words", nargs=-1, metavar="[TEXT]...")
@click.option("--model", metavar="MODEL", help="A model's folder, or its name in the box.")
@click.option(
    "--ensemble",
    multiple=True,
    metavar="MODEL",
    help="Another model with the same pieces, that has a say too; several times for several.",
)
@memory_option
@click.option("--from", "source_language", metavar="LANG", help="The language of the text; it is not guessed.")
@click.option("--to", "target_language", metavar="LANG", help="The language to translate into.")
@click.option("--input", "input_path", metavar="FILE", help="Translate this file; - is standard input.")
@click.option(
    "--output",
    "output_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to this file; line by line, an interrupted run goes on.",
)
@click.option(
    "--format",
    "text_format",
    type=click.Choice(["text", "html"]),
    help="text: line by line; html: a page as a whole. If not given, the name of the input tells.",
)
@click.option(
    "--beam", type=click.IntRange(min=1), metavar="N", help="Hypotheses kept open; the model's own if not given."
)
@click.option(
    "--alternatives",
    type=click.IntRange(min=0, max=100),
    default=0,
    metavar="N",
    help="Other translations besides the best.",
)
@click.option("--sample", is_flag=True, help="Draw a translation at random, as likely as the model holds it.")
@click.option("--temperature", type=float, metavar="T", help="With --sample: below 1 tamer, above 1 bolder.")
@click.option("--top-k", type=int, metavar="K", help="With --sample: only from the K likeliest pieces.")
@click.option("--top-p", type=float, metavar="P", help="With --sample: only from the likeliest pieces with this share.")
@click.option("--seed", type=int, metavar="N", help="With --sample: the same seed, the same translation.")
@click.option("--glossary", "glossary_path", metavar="TSV", help="Terms and what they must become, tab-separated.")
@click.option("--align", is_flag=True, help="Draw which words belong together.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line: text, score, alignment, warnings.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "ctranslate2", "torch"]),
    default="auto",
    show_default=True,
    help="Who runs the model.",
)
@click.option(
    "--compute-type",
    type=click.Choice(["int8", "float32"]),
    default="int8",
    show_default=True,
    help="CTranslate2's numbers.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Batches at once; one a core for files, one for TEXT, if not given.",
)
@click.option("--no-guards", is_flag=True, help="Take what the model writes: no checks, no second tries.")
@click.option(
    "--strict", is_flag=True, help="Refuse a sentence that is too long for the model; else it is cut, with a warning."
)
@click.option("-v", "--verbose", is_flag=True, help="Say what is being done.")
def command(**options: Any) -> None:
    """Translate TEXT, a file (--input), or standard input.

    Text is translated line by line; a page (.html), subtitles (.srt, .vtt) and documents (.docx, .odt) as a whole, and
    all that is not text in them stays as it is.

    \b
    dragoman translate "Je suis étudiant."
    echo "Je suis étudiant." | dragoman translate --to en
    dragoman translate --input book.fr --output book.en
    dragoman translate --input lettre.docx --output letter.docx
    """
    logging.basicConfig(format="dragoman: %(message)s", level=logging.INFO if options["verbose"] else logging.WARNING)
    _check(options)
    settings = _settings(options)
    check_place(options["output_path"], "the translation")
    if not options["text_format"] and bare_name(options["input_path"] or "").lower().endswith(_DOCUMENTS):
        from dragoman.cli._document import read_document, translate_document

        document = read_document(options)
        translate_document(_load(options, workers=options["workers"]), document, settings, options)
    elif options["text_format"] == "html":
        from dragoman.cli._page import read_page, translate_page

        page = " ".join(options["words"]) or read_page(options["input_path"] or _STANDARD_INPUT)
        translate_page(_load(options, workers=options["workers"]), page, settings, options)
    elif options["words"]:
        _translate_text(_load(options, workers=options["workers"] or 1), " ".join(options["words"]), settings, options)
    else:
        _translate_lines(options["input_path"] or _STANDARD_INPUT, settings, options)
    sys.stdout.flush()


def _check(options: dict[str, Any]) -> None:
    """Refuse what would be ignored, and what is no text."""
    for name in ("input", "output"):
        if options["words"] and options[f"{name}_path"]:
            raise ConfigError(f"TEXT and --{name} FILE are given, expected one of them")
    if options["output_path"]:
        refuse_idle({"--align": options["align"]}, "draws on the terminal, --output is a file: leave one of them out")
    if options["sample"]:
        refuse_idle(
            {"--beam": options["beam"], "--ensemble": options["ensemble"]},
            "is of a search, --sample draws: leave one of them out",
        )
    if options["glossary_path"]:
        refuse_idle({"--no-guards": options["no_guards"]}, "checks nothing, --glossary must be: leave one of them out")
    joined(options["words"])
    path = options["output_path"]
    if path and bare_name(path.name) != path.name:
        raise ConfigError(f"{path} would not be compressed: give --output {bare_name(path.name)}, and compress it then")


def _settings(options: dict[str, Any]) -> TranslateOptions:
    """What the translator is told."""
    from dragoman.translator import Glossary, Sampling

    chosen = {name: options[name] for name in ("temperature", "top_k", "top_p", "seed") if options[name] is not None}
    if chosen and not options["sample"]:
        raise ConfigError(f"--{next(iter(chosen)).replace('_', '-')} is about drawing translations: give --sample too")
    return {
        "source": options["source_language"],
        "target": options["target_language"],
        "beam": options["beam"],
        "alternatives": options["alternatives"],
        "sampling": Sampling(**chosen) if options["sample"] else None,
        "glossary": Glossary.read(options["glossary_path"]) if options["glossary_path"] else None,
        "align": options["align"] or options["as_json"],
        "guards": not options["no_guards"],
        "strict": options["strict"],
    }


def _load(options: dict[str, Any], workers: int) -> Translator:
    from dragoman.translator import load

    return load(
        find_model(options),
        engine=options["engine"],
        compute_type=options["compute_type"],
        workers=workers,
        ensemble=options["ensemble"],
        memory=memory_beside(options),
    )


def _translate_text(translator: Translator, text: str, settings: TranslateOptions, options: dict[str, Any]) -> None:
    translation = translator.translate(text, **settings)
    if options["as_json"]:
        click.echo(json_line(text, translation))
        return
    click.echo("\n".join([translation.text, *translation.alternatives]))
    draw(translation, options)
    for warning in (*translation.warnings, *_doubts(text, options)):
        click.echo(f"dragoman: {warning}", err=True)


def _doubts(text: str, options: dict[str, Any]) -> Iterator[str]:
    """A hint where no languages were named and the text seems to be in the one that it was translated into."""
    if options["model"] or options["source_language"] or options["target_language"]:
        return
    from dragoman.bundle.box import FIRST
    from dragoman.text.detect import detect
    from dragoman.text.language_names import name_of

    source, target = FIRST
    language, confidence = detect(text, FIRST)[0]
    if language == target and confidence >= _SURE:
        yield f"this was read as {name_of(source)} and looks like {name_of(target)}, which --to {source} translates"


def _translate_lines(path: str, settings: TranslateOptions, options: dict[str, Any]) -> None:
    from dragoman.text.lines import lines_of, name_of

    interactive = path == _STANDARD_INPUT and sys.stdin.isatty()
    # Reading a file through first finds what is wrong with it before anything is written, and says how long it takes.
    total = sum(1 for _ in lines_of(path)) if os.path.isfile(path) else None
    with closing(cast(Generator[str, None, None], lines_of(path))) as lines:
        first = next(lines, None)
        if first is None:
            raise DataError(f"{name_of(path)} is empty, expected text to translate")
        translator = _load(options, workers=options["workers"] or (1 if interactive else 0))
        report = Warnings(name_of(path), silent=options["as_json"])
        if options["output_path"] is None:
            for source, translation in _stream(translator, chain([first], lines), settings, 1 if interactive else None):
                click.echo(line(source, translation, options))
                draw(translation, options)
                report.add(translation)
        else:
            _write_file(options["output_path"], translator, chain([first], lines), total, settings, options, report)
    report.summarize()


def _write_file(
    path: Path,
    translator: Translator,
    lines: Iterator[str],
    total: int | None,
    settings: TranslateOptions,
    options: dict[str, Any],
    report: Warnings,
) -> None:
    from dragoman.bundle import Bundle, find
    from dragoman.cli._resumable import resumable_output
    from dragoman.text.corpus import content_hash

    ignored = ("words", "model", "input_path", "output_path", "verbose", "workers")
    described = {name: value for name, value in options.items() if name not in ignored}
    described["model"] = Bundle.open(find_model(options)).fingerprint()
    described["ensemble"] = [Bundle.open(find(name)).fingerprint() for name in options["ensemble"]]
    if memory := memory_beside(options):
        described["memory"] = content_hash([memory])
    if options["glossary_path"]:
        described["glossary_path"] = hashlib.sha256(Path(options["glossary_path"]).read_bytes()).hexdigest()
    with resumable_output(path, described, lines) as output, progress(total, output.done) as advance:
        report.number = output.done
        window: list[tuple[str, Translation]] = []

        def flush() -> None:
            output.write([source for source, _ in window], [line(*one, options) for one in window])
            advance(len(window))
            window.clear()

        for source, translation in _stream(translator, lines, settings, None):
            window.append((source, translation))
            report.add(translation)
            if len(window) == _SAVED_LINES:
                flush()
        flush()


def _stream(
    translator: Translator, lines: Iterator[str], settings: TranslateOptions, window: int | None
) -> Iterator[tuple[str, Translation]]:
    """Each line with its translation."""
    from collections import deque

    read: deque[str] = deque()

    def remember() -> Iterator[str]:
        for text in lines:
            read.append(text)
            yield text

    sized = {} if window is None else {"window_texts": window}
    for translation in translator.stream(remember(), **sized, **settings):
        yield read.popleft(), translation
