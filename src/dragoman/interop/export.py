"""A model for elsewhere: written beside its place, tried on a probe set, and put in place only if it does the same."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal, get_args

from dragoman.bundle import Bundle
from dragoman.bundle.folder import CARD
from dragoman.errors import BundleError, ConfigError, require
from dragoman.interop import ctranslate2_export, marian_export
from dragoman.interop.ctranslate2_export import CTranslate2Runner
from dragoman.interop.parity import LONGEST, Parity, Runner, Threshold, check, measure, probe_sources, probe_texts
from dragoman.interop.torch_runner import TorchRunner
from dragoman.recipe import CorpusConfig
from dragoman.settings import nearest
from dragoman.text.corpus import corpus_languages, format_of, read_pairs
from dragoman.text.metrics import corpus_scores

Pairs = Sequence[tuple[str, str]]
Format = Literal["dragoman", "marian", "ctranslate2", "onnx"]
Quantization = Literal["float32", "float16", "int8"]
QUANTIZATIONS: dict[str, tuple[str, ...]] = {"dragoman": ("float32", "float16"), "ctranslate2": ("float32", "int8")}
EXACT = Threshold()
# Rounding moves logits, to 8 bits by some tenths, and greedy search leaves its path where two pieces are about as good.
ROUNDED = {
    "float16": Threshold(token_agreement=0.97, logit_difference=0.2),
    "int8": Threshold(token_agreement=0.8, logit_difference=4.0),
}


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
    if quantization not in QUANTIZATIONS.get(format, ("float32",)):
        takers = " and ".join(name for name, known in QUANTIZATIONS.items() if quantization in known)
        raise ConfigError(f"quantization {quantization} is for --format {takers}: {format} does not take it")
    if bundle.model_config.architecture == "recurrent" and format != "dragoman":
        raise ConfigError(
            f"{format} cannot express this model: it is recurrent, and only Transformers are written for it; "
            f"dragoman's torch engine runs it"
        )
    require("torch", "train", "checking an exported model")
    if output.exists():
        raise BundleError(f"{output} is there already: give a new folder with --output")
    pairs = _pairs(test, bundle.languages[0]) if test else []
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
    if format == "dragoman":
        other = TorchRunner(_copy(bundle, folder, "float16" if quantization == "float16" else "float32"))
        example = ""
    elif format == "marian":
        marian_export.write_marian(bundle, folder)
        example = marian_export.example(bundle)
        other, agreement = marian_export.read_back(bundle, folder, probe_texts(bundle))
    elif format == "ctranslate2":
        width: ctranslate2_export.Quantization = "int8" if quantization == "int8" else "float32"
        ctranslate2_export.write_ctranslate2(bundle, folder, width)
        example = ctranslate2_export.example(bundle, width)
        other = CTranslate2Runner(bundle, folder, width)
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
    check(parity, threshold or ROUNDED.get(quantization, EXACT), format)
    contents = json.dumps({"format": format, "quantization": quantization, **asdict(parity)}, indent=1)
    (folder / "parity.json").write_text(contents + "\n", encoding="utf-8")
    if example:
        (folder / "README.md").write_text(_readme(bundle, format, example, parity), encoding="utf-8")
    return parity


def _copy(bundle: Bundle, folder: Path, dtype: Literal["float32", "float16"]) -> Bundle:
    """The same model folder with weights of another width."""
    card = bundle.path / CARD
    return Bundle.write(
        folder,
        model_config=bundle.model_config,
        search=bundle.search,
        tokenizer=bundle.tokenizer,
        weights=bundle.weights(),
        directions=bundle.directions,
        known_words=bundle.known_words,
        card=card.read_text(encoding="utf-8") if card.is_file() else "",
        scorecard=bundle.scorecard or None,
        dtype=dtype,
    )


def _with_bleu(parity: Parity, bundle: Bundle, exact: Runner, other: Runner, pairs: Pairs) -> Parity:
    """Greedy translations of a test set by both; sources that are too long are left out."""
    config, tokenizer = bundle.model_config, bundle.tokenizer
    sources = [[*bundle.head_ids, *ids, config.end_id] for ids in tokenizer.ids_batch([source for source, _ in pairs])]
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


def _pairs(path: str, languages: tuple[str, str]) -> Pairs:
    """Of a TSV file whose name tells that it is the other way round, the right side is the source."""
    corpus = CorpusConfig(path=path, languages="-".join(language.replace("-", "_") for language in languages))
    if format_of(corpus) == "TSV" and corpus_languages(CorpusConfig(path=path)) == languages[::-1]:
        corpus = replace(corpus, swap=True)
    return [(pair.source, pair.target) for pair in read_pairs(corpus)]


def _readme(bundle: Bundle, format: Format, example: str, parity: Parity) -> str:
    arrow = ", ".join(direction.replace("-", " → ") for direction in bundle.directions)
    return (
        f"# Translates {arrow}\n\nA dragoman model, exported for {format}. It writes "
        f"{100 * parity.token_agreement:.1f} % of the pieces that it writes there on a probe set; parity.json has the "
        f"rest.\n\n```python\n{example}```\n"
    )
