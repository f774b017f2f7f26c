"""Training runs small enough for a test, in this process, and what their folders then hold."""

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from synthetic import make_pairs, write_pairs

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.recipe import CorpusConfig, DataConfig, Recipe, SearchConfig, TokenizerConfig, TrainConfig
from dragoman.search.beam import search
from dragoman.train.finish import TrainingResult
from dragoman.train.request import Request
from dragoman.train.run import train_model

SHAPE = {"d_model": 32, "d_ff": 62, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
TRAIN = {"batch_tokens": 256, "max_steps": 20, "validate_steps": 10, "warmup_steps": 5, "precision": "float32"}


def write_corpus(folder: Path, count: int = 211, name: str = "pairs.tsv", seed: int = 5) -> CorpusConfig:
    return CorpusConfig(path=str(write_pairs(folder / name, make_pairs(count, seed))), languages="xx-yy")


def small_recipe(*corpora: CorpusConfig, model: dict[str, Any] | None = None, **changes: Any) -> Recipe:
    """`changes` are those of the section `train`, or of `data` where that has the key."""
    of_data = {key: changes.pop(key) for key in list(changes) if key in DataConfig.__dataclass_fields__}
    return Recipe(
        data=DataConfig(**{"train": corpora, "valid_pairs": 17, **of_data}),
        tokenizer=TokenizerConfig(vocab_size=448),
        model=ModelConfig(**{**SHAPE, **(model or {})}),
        train=TrainConfig(**{**TRAIN, **changes}),
        search=SearchConfig(beam=1),
    )


def run_small(recipe: Recipe, output: Path, *, trackers: Sequence[Any] = (), resume: bool = False, **more: Any) -> Any:
    """`train`, without measuring the machine (the shape is given) and without drawing curves."""
    request = Request(recipe=recipe, output=output, **{"keep_shape": True, **more})
    with (
        mock.patch("dragoman.train.run.measure_operations_per_second", return_value=1e10),
        mock.patch("dragoman.train.journal.draw_curves"),
    ):
        result = train_model(request, resume=resume, trackers=trackers)
    assert isinstance(result, TrainingResult)
    return result


def events(folder: Path, kind: str = "") -> list[dict[str, Any]]:
    lines = (folder / "training.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if kind in ("", event["event"])]


def weights(folder: Path) -> Mapping[str, Any]:
    """The weights of the model in a folder, by name."""
    return Bundle.open(folder).weights()


def stop_at(step: int) -> Any:
    """A tracker that interrupts the run as Ctrl-C does, when it hears of a step."""

    def tell(event: Mapping[str, Any]) -> None:
        if event["event"] == "step" and event["step"] == step:
            os.kill(os.getpid(), signal.SIGINT)

    return tell


def translate(folder: Path, sources: Sequence[str], language: str = "") -> list[str]:
    """What the model in a folder makes of sources, with the search that its config.json names."""
    bundle = Bundle.open(folder)
    tokenizer, model = bundle.tokenizer, bundle.load_model().eval()
    tag = [tokenizer.language_id(language)] if language else []
    rows = [torch.tensor([*tag, *ids, tokenizer.end_id]) for ids in tokenizer.ids_batch(sources)]
    found = search(
        model,
        torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=tokenizer.padding_id),
        bundle.search,
        padding_id=tokenizer.padding_id,
        begin_id=tokenizer.begin_id,
        end_id=tokenizer.end_id,
    )
    return [tokenizer.decode(hypotheses[0].ids) for hypotheses in found]
