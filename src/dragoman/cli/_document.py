"""How `dragoman translate --input letter.docx` translates: a document in, a document out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli._files import write_bytes
from dragoman.cli._idle import refuse_idle
from dragoman.cli._translations import Warnings, progress
from dragoman.errors import ConfigError, DataError

if TYPE_CHECKING:
    from dragoman.documents import Document
    from dragoman.translator import TranslateOptions, Translator

_PACKED = (".docx", ".odt")


def read_document(options: dict[str, Any]) -> Document:
    """The document that is to be translated; refuses what cannot come of it before a model is loaded."""
    from dragoman.documents import read
    from dragoman.text.lines import bare_name, open_bytes

    name: str = options["input_path"]
    extension, output = Path(bare_name(name)).suffix.lower(), options["output_path"]
    instead = ", or give --format html" if extension in (".html", ".htm") else ""
    refuse_idle(
        {"--json": options["as_json"], "--align": options["align"], "--alternatives": options["alternatives"]},
        f"has no place in a {extension} document: leave it out{instead}",
    )
    if output is None and extension in _PACKED and sys.stdout.isatty():
        raise ConfigError(f"a {extension} document is no text for a terminal: give --output FILE")
    if output is not None and output.suffix.lower() != extension:
        raise ConfigError(f"--output {output} is to be what {name} is, expected a name that ends in {extension}")
    with open_bytes(name) as file:
        data = file.read()
    try:
        return read(bare_name(name), data)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error


def translate_document(
    translator: Translator, document: Document, settings: TranslateOptions, options: dict[str, Any]
) -> None:
    """Translate a document's texts, and write it to the output file, or to standard output, with all else as it was."""
    texts = document.texts
    settings = {**settings, "align": document.needs_alignment}
    report = Warnings(options["input_path"], silent=False, what="texts")
    translations = []
    with progress(len(texts), what="texts") as advance:
        for translation in translator.stream(iter(texts), **settings):
            translations.append(translation)
            report.add(translation)
            advance(1)
    content = document.render(translations)
    if options["output_path"] is None:
        click.echo(content, nl=False)
    else:
        write_bytes(options["output_path"], "the document", content)
    report.summarize()
