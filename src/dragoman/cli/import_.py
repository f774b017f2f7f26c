"""`dragoman import`: a model of another toolkit becomes a model folder."""

from __future__ import annotations

import logging
from pathlib import Path

import click


@click.command(name="import", short_help="Make a model folder of a Marian or OPUS-MT model.")
@click.argument("model", metavar="FOLDER")
@click.option(
    "--output", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="The new model folder."
)
@click.option(
    "--languages",
    multiple=True,
    metavar="SOURCE-TARGET",
    help="What it translates, say fr-en; again for each direction. Read off the model if not given.",
)
@click.option(
    "--allow-pickle", is_flag=True, help="Read pytorch_model.bin, as weights only, if there is nothing safer."
)
def command(model: str, output: Path, languages: tuple[str, ...], allow_pickle: bool) -> None:
    """Make a model folder of FOLDER, a transformers MarianMT model, or of a name on a hub (with the
    extra `hub`).

    \b
    dragoman import downloads/opus-mt-fr-en --output models/opus
    dragoman import Helsinki-NLP/opus-mt-fr-en --output models/opus
    dragoman translate --model models/opus "Je suis étudiant."
    """
    from dragoman.bundle.card import shape
    from dragoman.bundle.hub import download, is_hub_name
    from dragoman.interop.marian_import import import_marian

    logging.basicConfig(format="dragoman: %(message)s", level=logging.WARNING)
    folder = Path(model)
    if not folder.exists() and is_hub_name(model):
        folder = download(model, allow_pickle)
    bundle = import_marian(
        folder, output, allow_pickle=allow_pickle, directions=languages, name=model if folder != Path(model) else ""
    )
    click.echo(f"{output} translates {', '.join(bundle.directions)}: {shape(bundle.model_config)}")
