"""`dragoman average`: one model of several."""

import shlex
from pathlib import Path

import click


@click.command(name="average", short_help="Make one model of several, the mean of their weights.")
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, required=True)
@click.option("--output", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="The new folder.")
def command(models: tuple[str, ...], output: Path) -> None:
    """Write the mean of the MODELs' weights as a model of its own.

    It often translates better than each of them where they were trained on from the same model, with --init and
    seeds of their own, say side by side on a core each. Models with different beginnings have no useful mean.

    \b
    dragoman train --recipe mine.toml --init models/first --set train.seed=1 --output models/one
    dragoman train --recipe mine.toml --init models/first --set train.seed=2 --output models/two
    dragoman average models/one models/two --output models/mean
    """
    from dragoman.bundle import Bundle, find
    from dragoman.bundle.averaging import average

    told = shlex.join(["dragoman", "average", *models, "--output", str(output)])
    bundle = average([Bundle.open(find(model)) for model in models], output, told)
    click.echo(f"{output}: the mean of {len(models)} models, {bundle.num_parameters:,} parameters")
