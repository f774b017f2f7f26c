"""The RNN without attention, the RNN with it and the Transformer: one corpus, the same pieces, the same time each.

    python recipes/rnn-vs-transformer/run.py train.fr-en.tsv --valid valid.fr-en.tsv --test test.fr-en.tsv --minutes 30
        --output docs/rnn-vs-transformer/mine

Trains the three one after the other, translates the test set with each in torch, and writes README.md (the page), its
figures and results.json to --output. Two aligned files are one argument: train.de,train.en. Stopped anywhere, the same
command goes on: runs are resumed, and what is measured already is not measured again.
"""

import argparse
import hashlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from comparison_page import Alignment, Measured, Validation, write_page

from dragoman.bundle import Bundle
from dragoman.cache import atomic_file
from dragoman.engine.engine import DecodeOptions
from dragoman.engine.torch_engine import TorchEngine
from dragoman.evaluate.quality import bucket_scores, num_words
from dragoman.evaluate.testset import TestSet, read_test_set
from dragoman.settings import fill
from dragoman.text.corpus import corpus_of
from dragoman.text.metrics import corpus_scores
from dragoman.text.tokenizer import Encoded
from dragoman.translator.alignment import word_matrix
from dragoman.translator.drafts import Scribe

LENGTHS = ((1, 5), (6, 10), (11, 15), (16, 20), (21, 25), (26, 30), (31, 40), (41, None))
"""Words of a source in each group that is scored by itself."""

LEAST_PAIRS = 10


@dataclass(frozen=True)
class Contender:
    """A model to train: what the page calls it, and its shape at a width of embeddings."""

    name: str
    title: str
    preset: str
    widths: tuple[tuple[str, int], ...]
    settings: tuple[str, ...] = ()

    def shape(self, width: int) -> tuple[str, ...]:
        return (*(f"model.{name}={times * width}" for name, times in self.widths), "model.dropout=0.1", *self.settings)


_RNN = (("d_model", 1), ("d_ff", 2), ("d_k", 1))
CONTENDERS = (
    Contender("rnn", "RNN, no attention", "rnn", _RNN, ("model.share_embeddings=true",)),
    Contender("rnn-attention", "RNN with attention", "rnn-attention", _RNN, ("model.share_embeddings=true",)),
    Contender("transformer", "Transformer", "small", (("d_model", 1), ("d_ff", 4)), ("model.norm_order=pre",)),
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    sides = [language.replace("-", "_") for language in (options.source_language, options.target_language)]
    languages = "-".join(sides) if all(sides) else ""
    test = read_test_set(corpus_of(options.test, languages), options.limit)
    models = options.models or Path("models") / f"rnn-vs-transformer-{options.output.name}"
    measured = []
    for contender in CONTENDERS:
        train(contender, options, models / contender.name)
        measured.append(measure(contender, models / contender.name, test, options))
    pieces = {Bundle.open(models / contender.name).tokenizer.fingerprint() for contender in CONTENDERS}
    assert len(pieces) == 1, "the models do not have the same pieces"
    words = [*sys.argv[1:]] if arguments is None else list(arguments)
    command = shlex.join(["python", "recipes/rnn-vs-transformer/run.py", *words])
    write_page(
        options.output, measured, test_set=test.name, num_pairs=len(test), minutes=options.minutes, command=command
    )
    print(f"{options.output / 'README.md'} compares them")


def train(contender: Contender, options: argparse.Namespace, folder: Path) -> None:
    """`dragoman train` in a process of its own, as anyone would run it; a run that has ended is left alone."""
    shared = (f"tokenizer.vocab_size={options.vocab_size}", "train.batch_tokens=2048", "data.valid_pairs=1000")
    shared += ("train.embedding_start=random", "train.embedding_rate=1")  # as its figures were measured
    settings = (*shared, *contender.shape(options.width), *options.assignments)
    words = [
        *options.corpora,
        "--test",
        options.test,
        "--preset",
        contender.preset,
        "--output",
        str(folder),
        "--resume",
    ]
    words += ["--valid", options.valid] if options.valid else []
    words += ["--budget", f"{options.minutes * 60:.0f}s"] if options.minutes else []
    if options.source_language:
        words += ["--from", options.source_language, "--to", options.target_language]
    words += [word for setting in settings for word in ("--set", setting)]
    asked = folder.with_name(f"{folder.name}.asked.json")
    if asked.exists() and json.loads(asked.read_text(encoding="utf-8")) != words:
        raise SystemExit(f"{folder} was trained with other settings, which {asked} has: choose another --output")
    if _has_ended(folder):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(asked) as file:
        file.write_text(json.dumps(words), encoding="utf-8")
    own_cache = str(folder.with_name(f"{folder.name}-cache"))  # each encodes the pairs within its own time
    environment = {**os.environ, "DRAGOMAN_CACHE": own_cache}
    subprocess.run([sys.executable, "-m", "dragoman", "train", *words], check=True, env=environment)


def measure(contender: Contender, folder: Path, test: TestSet, options: argparse.Namespace) -> Measured:
    """Everything the page tells about one model; kept beside it, with the hash of the weights and of what was asked."""
    bundle = Bundle.open(folder)
    content = hashlib.sha256(repr((test.sources, test.references)).encode()).hexdigest()
    threads = torch.get_num_threads()
    key = [bundle.weights_hash(), content, threads, options.sentence, options.lowercase, options.tokenize]
    kept = folder / "measured.json"
    if kept.exists() and (found := json.loads(kept.read_text(encoding="utf-8")))["key"] == key:
        return fill(Measured, found["measured"])
    print(f"translating {len(test):,} lines with {contender.title}", file=sys.stderr)
    engine, scribe = TorchEngine.open(bundle), Scribe(bundle.tokenizer, test.languages[1])
    decode = DecodeOptions(search=bundle.search)
    sources = [ids[-bundle.model_config.max_length :] for ids in scribe.encode(test.sources)]
    begin = time.perf_counter()
    outputs = [found[0] for found in engine.translate_ids(sources, decode)]
    seconds = time.perf_counter() - begin
    texts = [scribe.decode(output.ids) for output in outputs]
    scoring = {"lowercase": options.lowercase, "tokenize": options.tokenize}
    bleu, chrf = corpus_scores(texts, test.references, **scoring)
    right = bundle.tokenizer.ids_batch([references[0] for references in test.references])
    events = _events(folder)
    measured = Measured(
        name=contender.name,
        title=contender.title,
        architecture=bundle.model_config.architecture,
        parameters=bundle.num_parameters,
        bleu=bleu.value,
        bleu_signature=bleu.signature,
        chrf=chrf.value,
        chrf_signature=chrf.signature,
        training_tokens_per_second=statistics.median(
            event["target_tokens_per_second"] for event in events if event["event"] == "step"
        ),
        training_tokens=max(event["target_tokens"] for event in events if event["event"] == "step"),
        decoding_tokens_per_second=sum(len(output.ids) + 1 for output in outputs) / seconds,
        source_pieces=sum(map(len, sources)) / len(sources),
        target_pieces=sum(len(ids) + 1 for ids in right) / len(right),
        buckets=tuple(
            bucket_scores(test.sources, texts, test.references, lengths=LENGTHS, least_pairs=LEAST_PAIRS, **scoring)
        ),
        validations=tuple(
            Validation(event["seconds"] / 60, event["bleu"]) for event in events if event["event"] == "validation"
        ),
        alignment=_align(engine, scribe, decode, options.sentence or _example(test)),
        threads=threads,
    )
    with atomic_file(kept) as file:
        file.write_text(json.dumps({"key": key, "measured": asdict(measured)}, indent=1), encoding="utf-8")
    return measured


def _align(engine: TorchEngine, scribe: Scribe, decode: DecodeOptions, text: str) -> Alignment:
    """The translation of one sentence, and which of its words looked at which: (target words x source words)."""
    [ids] = scribe.encode([text])
    [[output]] = engine.translate_ids([ids], decode)
    [attention_TS] = engine.attend([ids], [output.ids])
    translated = scribe.decode(output.ids)
    rows: tuple[tuple[float, ...], ...] = ()
    if len(attention_TS):
        own = scribe.own_ids(ids)
        source_words, target_words = (scribe.tokenizer.words(Encoded(list(side), [])) for side in (own, output.ids))
        own_TS = attention_TS[:, len(scribe.head) : len(scribe.head) + len(own)]
        matrix = word_matrix(own_TS, source_words, target_words)
        if matrix.shape == (len(translated.split()), len(text.split())):
            rows = tuple(tuple(round(float(weight), 4) for weight in row) for row in matrix)
    return Alignment(text, translated, rows)


def _example(test: TestSet) -> str:
    """The first source that is long enough to be worth drawing, and short enough to be read."""
    return next((source for source in test.sources if 9 <= num_words(source) <= 13), test.sources[0])


def _events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "training.jsonl").read_bytes().splitlines()]


def _has_ended(folder: Path) -> bool:
    """Whether the run in a folder came to its end and left its model."""
    if not (folder / "config.json").exists() or not (folder / "training.jsonl").exists():
        return False
    ends = [event["reason"] for event in _events(folder) if event["event"] == "end"]
    return bool(ends) and ends[-1] != "interrupted"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("corpora", nargs="+", metavar="CORPUS", help="what to train on")
    parser.add_argument("--valid", help="what to validate on; some of CORPUS is held out if not given")
    parser.add_argument("--test", required=True, help="what to translate and score")
    parser.add_argument("--from", dest="source_language", default="", help="language of the source side")
    parser.add_argument("--to", dest="target_language", default="", help="language of the target side")
    parser.add_argument("--minutes", type=float, default=30.0, help="time for each model; 0 leaves it to --set")
    parser.add_argument("--width", type=int, default=256, help="of the embeddings of all; the rest of a shape follows")
    parser.add_argument("--vocab-size", type=int, default=8000, help="pieces, the same for all")
    parser.add_argument("--limit", type=int, default=0, help="score only so many pairs of the test set")
    parser.add_argument("--sentence", default="", help="whose alignment is drawn; one of the test set if not given")
    parser.add_argument("--lowercase", action="store_true", help="ignore case in BLEU and chrF")
    parser.add_argument("--tokenize", default="13a", help="sacreBLEU's tokens for BLEU")
    parser.add_argument("--set", dest="assignments", action="append", default=[], help="any setting, for all models")
    parser.add_argument("--models", type=Path, help="where the models go; below models/ if not given")
    parser.add_argument("--output", type=Path, required=True, help="where the page goes")
    return parser


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
