"""`dragoman export`: a model for elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman.interop.export import Format, Quantization
    from dragoman.interop.parity import Parity


@click.command(name="export", short_help="Write a model for transformers, CTranslate2 or ONNX.")
@click.argument("model", metavar="MODEL")
@click.option("--output", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="The new folder.")
@click.option(
    "--format",
    "format",
    required=True,
    type=click.Choice(["dragoman", "marian", "ctranslate2", "onnx"]),
    help="A model folder again, or for transformers' MarianMTModel, CTranslate2, or any runtime of ONNX.",
)
@click.option(
    "--quantization",
    type=click.Choice(["float32", "float16", "int8"]),
    default="float32",
    show_default=True,
    help="Of the weights: float16 for dragoman, int8 for CTranslate2.",
)
@click.option("--test", default="", metavar="FILE", help="Pairs to compare BLEU on: TSV, TMX or JSON lines.")
def command(model: str, output: Path, format: Format, quantization: Quantization, test: str) -> None:
    """Write MODEL, a folder or a name, for another program.

    The export translates a probe set beside the model itself; parity.json says how much they agree. Where they do not,
    nothing is left behind.

    \b
    dragoman export models/mine --format ctranslate2 --quantization int8 --output exported
    dragoman export models/mine --format dragoman --quantization float16 --output half-the-size
    """
    from dragoman.bundle import Bundle, find
    from dragoman.interop.export import export

    parity = export(Bundle.open(find(model)), output, format, quantization=quantization, test=test)
    click.echo(f"{output}: {describe(parity)}")


def describe(parity: Parity) -> str:
    """A line that says how much the export agrees with the model."""
    parts = [
        f"{100 * parity.token_agreement:.1f} % of {parity.num_pieces} pieces the same",
        f"logits differ by at most {parity.largest_logit_difference:.2g}",
    ]
    if parity.tokenizer_agreement is not None:
        parts.append(f"{100 * parity.tokenizer_agreement:.1f} % of sentences cut into the same pieces")
    if parity.bleu_difference is not None:
        parts.append(f"BLEU {parity.exported_bleu:.1f}, {parity.bleu_difference:+.2f}")
    return ", ".join(parts)
