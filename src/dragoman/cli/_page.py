"""How `dragoman translate --format html` translates: a page as a whole, its tags in their places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli._files import write_text
from dragoman.cli._translations import draw, json_line
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.translator import TranslateOptions, Translator


def read_page(path: str) -> str:
    """All of a file, or of standard input, with its line ends as they are."""
    from dragoman.text.lines import name_of, open_bytes

    with open_bytes(path) as file:
        raw = file.read()
    try:
        page = raw.decode()
    except UnicodeDecodeError as error:
        message = f"{name_of(path)}: byte {error.start + 1} is not UTF-8: convert it, say with iconv -f LATIN1 -t UTF-8"
        raise DataError(message) from error
    if not page.strip():
        raise DataError(f"{name_of(path)} is empty, expected a page to translate")
    return page


def translate_page(translator: Translator, page: str, settings: TranslateOptions, options: dict[str, Any]) -> None:
    """Translate a page, and print it or write it to the output file, with no line end added."""
    from dragoman.translator.markup import parse

    markup = parse(page)
    settings = {**settings, "align": settings.get("align", False) or markup.needs_alignment}
    whole = markup.assemble(translator.translate(list(markup.texts), **settings))
    text = f"{json_line(page, whole)}\n" if options["as_json"] else "\n".join([whole.text, *whole.alternatives])
    path: Path | None = options["output_path"]
    if path is None:
        click.echo(text, nl=bool(options["words"]) and not options["as_json"])
        draw(whole, options)
    else:
        write_text(path, "the page", text)
    for warning in () if options["as_json"] else whole.warnings:
        click.echo(f"dragoman: {warning}", err=True)
