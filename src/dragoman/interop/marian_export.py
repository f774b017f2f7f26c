"""Our model as a folder that `transformers.MarianMTModel.from_pretrained` and `MarianTokenizer` load.

Positions are turned into Marian's layout by reordering channels, missing biases are zero: the model is the same. Our
pieces go into a SentencePiece model; an imported model gets back those that it came with.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from dragoman.bundle import Bundle
from dragoman.cache import atomic_file
from dragoman.errors import ConfigError
from dragoman.interop.marian_config import why_not_marian, write_marian_config
from dragoman.interop.marian_import import import_marian
from dragoman.interop.marian_weights import to_marian
from dragoman.interop.parity import tokenizer_agreement
from dragoman.interop.sentencepiece_model import UNKNOWN, to_sentencepiece
from dragoman.interop.torch_runner import TorchRunner
from dragoman.text.pipeline import BEGIN, END, PADDING, PLACEHOLDERS, tag
from dragoman.text.sentencepiece_tokenizer import (
    SETTINGS,
    SOURCE,
    TARGET,
    VOCABULARY,
    SentencePieceTokenizer,
    marian_tag,
)
from dragoman.text.tokenizer import Tokenizer

EXAMPLE = """\
from transformers import MarianMTModel, MarianTokenizer

model = MarianMTModel.from_pretrained("FOLDER")
tokenizer = MarianTokenizer.from_pretrained("FOLDER")
batch = tokenizer(["{text}"], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""


def write_marian(bundle: Bundle, folder: Path) -> None:
    """Write every file, or say why Marian cannot express the model."""
    if reason := why_not_marian(bundle.model_config):
        raise ConfigError(f"Marian cannot express this model: it has {reason}")
    config, generation = write_marian_config(bundle.model_config, bundle.search)
    weights = {name: np.asarray(array, dtype=np.float32) for name, array in bundle.weights().items()}
    with atomic_file(folder / "model.safetensors") as file:
        safetensors.numpy.save_file(to_marian(weights, bundle.model_config), file, metadata={"format": "pt"})
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", generation)
    for name, data in _pieces(bundle).items():
        (folder / name).write_bytes(data)


def read_back(bundle: Bundle, folder: Path, texts: list[str]) -> tuple[TorchRunner, float]:
    """The exported model, imported again, and how often its pieces are ours."""
    with tempfile.TemporaryDirectory() as place:
        again = import_marian(folder, Path(place) / "again", directions=bundle.directions)
        return TorchRunner(again), tokenizer_agreement(bundle.tokenizer, again.tokenizer, texts)


def example(bundle: Bundle) -> str:
    """How to run it, in Python."""
    has_tags = bool(bundle.tokenizer.languages)
    return EXAMPLE.format(text=f"{marian_tag(bundle.languages[0][1])} ..." if has_tags else "...")


def _pieces(bundle: Bundle) -> dict[str, bytes]:
    """The files of the tokenizer, as transformers knows them."""
    tokenizer = bundle.tokenizer
    source, target = bundle.languages[0] if len(bundle.languages) == 1 else (None, None)
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": source,
        "target_lang": target,
        "model_max_length": bundle.model_config.max_length,
    }
    if isinstance(tokenizer, SentencePieceTokenizer):
        files = tokenizer.files()
        theirs = json.loads(files[SETTINGS])
        known = ("source_lang", "target_lang", "separate_vocabs", "pad_token", "eos_token", "unk_token")
        return files | {SETTINGS: _json_bytes(settings | {name: theirs[name] for name in known})}
    model = to_sentencepiece(tokenizer)
    special = {"pad_token": PADDING, "bos_token": BEGIN, "eos_token": END, "unk_token": UNKNOWN}
    # What is no text is left out of a translation, by transformers too if it is told.
    others = {"additional_special_tokens": list(PLACEHOLDERS[:-1])}
    return {
        SOURCE: model,
        TARGET: model,
        VOCABULARY: _json_bytes(_vocabulary(tokenizer)),
        SETTINGS: _json_bytes({**settings, "separate_vocabs": False, **special, **others}),
    }


def _vocabulary(tokenizer: Tokenizer) -> dict[str, int]:
    """Our pieces and ids, the tags as Marian spells them. It insists on an unknown piece, which never occurs, as every
    character has its bytes: the last placeholder lends its place.
    """
    renamed = {tag(language): marian_tag(language) for language in tokenizer.languages} | {PLACEHOLDERS[-1]: UNKNOWN}
    return {renamed.get(piece, piece): id for id, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_bytes(_json_bytes(value))


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
