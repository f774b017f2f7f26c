"""The page that compares the models: Markdown, figures beside it, and the numbers as results.json."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from comparison_figures import Line, line_chart, word_grid

from dragoman.evaluate.quality import Bucket


@dataclass(frozen=True)
class Validation:
    """BLEU of the validation set, greedy, after so many minutes."""

    minutes: float
    bleu: float


@dataclass(frozen=True)
class Alignment:
    """A sentence, its translation, and where each target word looked: (target words x source words), or nothing."""

    source: str
    target: str
    weights: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Measured:
    """What is known about one model."""

    name: str
    title: str
    architecture: str
    parameters: int
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    training_tokens_per_second: float
    training_tokens: int
    decoding_tokens_per_second: float
    source_pieces: float
    target_pieces: float
    buckets: tuple[Bucket, ...]
    validations: tuple[Validation, ...]
    alignment: Alignment
    threads: int

    @property
    def steps_in_training(self) -> float:
        """Steps that wait for the one before, for a sentence of mean length: a Transformer reads and writes at once."""
        return self.source_pieces + self.target_pieces if self.architecture == "recurrent" else 2

    @property
    def steps_in_decoding(self) -> float:
        """The same when it translates: whoever writes, writes piece by piece."""
        return (self.source_pieces if self.architecture == "recurrent" else 1) + self.target_pieces


def write_page(
    folder: Path, models: Sequence[Measured], *, test_set: str, num_pairs: int, minutes: float, command: str
) -> None:
    """Write README.md, the figures and results.json to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bleu-by-length.svg").write_text(_by_length(models), encoding="utf-8")
    (folder / "bleu-by-time.svg").write_text(_by_time(models), encoding="utf-8")
    for model in models:
        if model.alignment.weights:
            grid = word_grid(
                model.alignment.weights, model.alignment.source.split(), model.alignment.target.split(), model.title
            )
            (folder / f"alignment-{model.name}.svg").write_text(grid, encoding="utf-8")
    time = f"{minutes:g} minutes each" if minutes else "as many steps each as the command says"
    threads = "one thread" if models[0].threads == 1 else f"{models[0].threads} threads"
    facts = {"command": command, "test_set": test_set, "num_pairs": num_pairs, "minutes": minutes}
    results = json.dumps({**facts, "models": [asdict(model) for model in models]}, ensure_ascii=False, indent=1)
    (folder / "results.json").write_text(results + "\n", encoding="utf-8")
    parts = [
        "# The RNN, the RNN with attention, and the Transformer",
        f"One corpus, the same pieces, {time}, one after the other, {threads} in torch. Scores are those of "
        f"{num_pairs:,} pairs of `{test_set}`, translated with the same beam. Made by",
        f"    {command}",
        _table(models),
        f"BLEU `{models[0].bleu_signature}`, chrF `{models[0].chrf_signature}`. Tokens are target pieces, the end "
        f"counted. Sequential steps wait for the one before: a recurrent network reads a source and writes its target "
        f"piece by piece, {models[0].source_pieces:.1f} and {models[0].target_pieces:.1f} in this test set, in "
        f"training too; a Transformer reads all at once, and in training writes all at once.",
        "## BLEU by length of the source",
        "A fixed vector has to hold the whole sentence, however long; with attention the decoder looks again.",
        "![BLEU by words in the source](bleu-by-length.svg)",
        _bucket_table(models),
        "## On the way",
        "BLEU of the validation set, greedy, over the minutes of training.",
        "![BLEU over minutes of training](bleu-by-time.svg)",
        "## One sentence, and where each looked",
        f"> {models[0].alignment.source}",
        *(_aligned(model) for model in models),
    ]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _table(models: Sequence[Measured]) -> str:
    rows = [
        ("BLEU", [f"{model.bleu:.1f}" for model in models]),
        ("chrF", [f"{model.chrf:.1f}" for model in models]),
        ("parameters", [f"{model.parameters:,}" for model in models]),
        ("target tokens/s in training", [f"{model.training_tokens_per_second:,.0f}" for model in models]),
        ("target tokens seen", [f"{model.training_tokens:,}" for model in models]),
        ("target tokens/s in decoding", [f"{model.decoding_tokens_per_second:,.0f}" for model in models]),
        ("sequential steps a sentence, training", [f"{model.steps_in_training:.1f}" for model in models]),
        ("sequential steps a sentence, decoding", [f"{model.steps_in_decoding:.1f}" for model in models]),
    ]
    return _markdown(["", *(model.title for model in models)], [[name, *cells] for name, cells in rows])


def _bucket_table(models: Sequence[Measured]) -> str:
    heads = ["words in the source", "pairs", *(model.title for model in models)]
    rows = [
        [groups[0].length, f"{groups[0].num_pairs:,}", *(f"{group.bleu:.1f}" for group in groups)]
        for groups in zip(*(model.buckets for model in models), strict=True)
    ]
    return _markdown(heads, rows)


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["-", *["-:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def _by_length(models: Sequence[Measured]) -> str:
    lines = [Line(model.title, [(i, group.bleu) for i, group in enumerate(model.buckets)]) for model in models]
    ticks = [(float(i), group.length) for i, group in enumerate(models[0].buckets)]
    return line_chart(lines, ticks, "words in the source", "BLEU")


def _by_time(models: Sequence[Measured]) -> str:
    lines = [Line(model.title, [(one.minutes, one.bleu) for one in model.validations]) for model in models]
    longest = max((point[0] for line in lines for point in line.points), default=1.0)
    step = next((step for step in (1, 2, 5, 10, 20, 30, 60, 120) if longest <= 5 * step), math.ceil(longest / 5))
    ticks = [(float(minute), str(minute)) for minute in range(0, math.ceil(longest / step) * step + 1, step)]
    return line_chart(lines, ticks, "minutes", "BLEU, validation")


def _aligned(model: Measured) -> str:
    head = f"**{model.title}**: {model.alignment.target or '(nothing)'}"
    if model.alignment.weights:
        return f"{head}\n\n![where each target word looked](alignment-{model.name}.svg)"
    return (
        f"{head}\n\nNo alignment to draw: it has no attention, or the words of this translation cannot be told apart."
    )
