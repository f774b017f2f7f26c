"""A model for elsewhere: written beside its place, tried on a probe set, and put in place only if it does the same."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal, get_args

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, ConfigError, require
from dragoman.interop import ctranslate2_export, marian_export
from dragoman.interop.ctranslate2_export import CTranslate2Runner, Quantization
from dragoman.interop.parity import LONGEST, Parity, Runner, Threshold, check, measure, probe_sources, probe_texts
from dragoman.interop.torch_runner import TorchRunner
from dragoman.recipe import CorpusConfig
from dragoman.settings import nearest
from dragoman.text.corpus import Fault, read_records
from dragoman.text.metrics import corpus_scores

Pairs = Sequence[tuple[str, str]]
Format = Literal["marian", "ctranslate2", "onnx"]
EXACT = Threshold()
# Rounding to 8 bits moves logits by some tenths, and greedy search leaves its path where two pieces are about as good.
QUANTISED = Threshold(token_agreement=0.8, logit_difference=4.0)


def export(
    bundle: Bundle,
    output: Path,
    format: Format,
    *,
    quantization: Quantization = "float32",
    test: str = "",
    threshold: Threshold | None = None,
) -> Parity:
    """Write the model to the new folder `output`, with parity.json and a README.md; `test` is a file of pairs."""
    if format not in get_args(Format):
        raise ConfigError(f"unknown format {format!r}{nearest(format, get_args(Format))}")
    if quantization != "float32" and format != "ctranslate2":
        raise ConfigError(f"quantization {quantization} is for --format ctranslate2: {format} is written in float32")
    require("torch", "train", "checking an exported model")
    if output.exists():
        raise BundleError(f"{output} is there already: give a new folder with --output")
    pairs = _pairs(test) if test else []
    output.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".partial", dir=output.parent))
    try:
        parity = _fill(bundle, staging, format, quantization, pairs, threshold)
        staging.chmod(0o755)
        staging.rename(output)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return parity


def _fill(
    bundle: Bundle, folder: Path, format: Format, quantization: Quantization, pairs: Pairs, threshold: Threshold | None
) -> Parity:
    bundle.verify()
    agreement: float | None = None
    other: Runner
    if format == "marian":
        marian_export.write_marian(bundle, folder)
        example = marian_export.example(bundle)
        other, agreement = marian_export.read_back(bundle, folder, probe_texts(bundle))
    elif format == "ctranslate2":
        ctranslate2_export.write_ctranslate2(bundle, folder, quantization)
        example = ctranslate2_export.example(bundle, quantization)
        other = CTranslate2Runner(bundle, folder, quantization)
    else:
        # It needs torch to be imported, and without torch we want to say so in a line.
        from dragoman.interop import onnx_export
        from dragoman.interop.onnx_runner import OnnxRunner

        onnx_export.write_onnx(bundle, folder)
        example = onnx_export.EXAMPLE
        other = OnnxRunner(folder)
    exact = TorchRunner(bundle)
    parity = measure(exact, other, probe_sources(bundle), bundle.model_config)
    parity = replace(parity, tokenizer_agreement=agreement)
    if pairs:
        parity = _with_bleu(parity, bundle, exact, other, pairs)
    check(parity, threshold or (EXACT if quantization == "float32" else QUANTISED), format)
    contents = json.dumps({"format": format, "quantization": quantization, **asdict(parity)}, indent=1)
    (folder / "parity.json").write_text(contents + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_readme(bundle, format, example, parity), encoding="utf-8")
    return parity


def _with_bleu(parity: Parity, bundle: Bundle, exact: Runner, other: Runner, pairs: Pairs) -> Parity:
    """Greedy translations of a test set by both; sources that are too long are left out."""
    config, tokenizer = bundle.model_config, bundle.tokenizer
    head = [tokenizer.language_id(bundle.languages[0][1])] if tokenizer.languages else []
    sources = [[*head, *ids, config.end_id] for ids in tokenizer.ids_batch([source for source, _ in pairs])]
    kept = [place for place, source in enumerate(sources) if len(source) <= config.max_length]
    references = [pairs[place][1] for place in kept]
    bleu, exported_bleu = (
        corpus_scores(
            [
                tokenizer.target_side.decode(runner.decode(sources[place], len(sources[place]) + LONGEST).ids)
                for place in kept
            ],
            references,
            metrics=("bleu",),
        )[0].value
        for runner in (exact, other)
    )
    return replace(
        parity,
        bleu=round(bleu, 2),
        exported_bleu=round(exported_bleu, 2),
        bleu_difference=round(exported_bleu - bleu, 2),
    )


def _pairs(path: str) -> Pairs:
    pairs = [(one.source, one.target) for one in read_records(CorpusConfig(path=path)) if not isinstance(one, Fault)]
    if not pairs:
        raise ConfigError(f"{path} has no pairs to test on: give a TSV, TMX or JSON lines file")
    return pairs


def _readme(bundle: Bundle, format: Format, example: str, parity: Parity) -> str:
    arrow = ", ".join(direction.replace("-", " → ") for direction in bundle.directions)
    return (
        f"# Translates {arrow}\n\nA dragoman model, exported for {format}. It writes "
        f"{100 * parity.token_agreement:.1f} % of the pieces that it writes there on a probe set; parity.json has the "
        f"rest.\n\n```python\n{example}```\n"
    )
