"""`dragoman export`: a model for elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman.interop.ctranslate2_export import Quantization
    from dragoman.interop.export import Format
    from dragoman.interop.parity import Parity


@click.command(name="export", short_help="Write a model for transformers, CTranslate2 or ONNX.")
@click.argument("model", metavar="MODEL")
@click.option("--output", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="The new folder.")
@click.option(
    "--format",
    "format",
    required=True,
    type=click.Choice(["marian", "ctranslate2", "onnx"]),
    help="For transformers' MarianMTModel, CTranslate2, or any runtime of ONNX.",
)
@click.option(
    "--quantization",
    type=click.Choice(["float32", "int8"]),
    default="float32",
    show_default=True,
    help="Of CTranslate2's weights.",
)
@click.option("--test", default="", metavar="FILE", help="Pairs to compare BLEU on: TSV, TMX or JSON lines.")
def command(model: str, output: Path, format: Format, quantization: Quantization, test: str) -> None:
    """Write MODEL, a folder or a name, for another program.

    The export translates a probe set beside the model itself; parity.json says how much they agree. Where they do not,
    nothing is left behind.

    \b
    dragoman export models/mine --format ctranslate2 --quantization int8 --output exported
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
