"""`dragoman push`: a model, published."""

from __future__ import annotations

import click


@click.command(name="push", short_help="Publish a model on a hub.")
@click.argument("model", metavar="MODEL")
@click.option("--to", "name", required=True, metavar="OWNER/NAME", help="What it will be called there.")
@click.option("--private", is_flag=True, help="Only for you, if it is new there.")
def command(model: str, name: str, private: bool) -> None:
    """Publish MODEL, a folder or the name of one in the box, with its card, on a hub (with the extra `hub`; log in
    with `hf auth login`). `dragoman.load("OWNER/NAME")` then loads it anywhere.

    \b
    dragoman push models/mine --to me/fr-en-small
    """
    from dragoman.bundle import Bundle, find
    from dragoman.interop.publish import publish

    click.echo(publish(Bundle.open(find(model)), name, private=private))
