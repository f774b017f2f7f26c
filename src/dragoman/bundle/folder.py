"""`Bundle`: a model folder, opened without torch and without reading the weights until they are asked for."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from dragoman import __version__
from dragoman.bundle.weights import Weights, check_shapes, weights_to_state
from dragoman.cache import atomic_file
from dragoman.config import ModelConfig
from dragoman.errors import BundleError, ConfigError, DataError, require
from dragoman.recipe import SearchConfig
from dragoman.settings import fill, to_mapping
from dragoman.text.known_words import WORDS, KnownWords
from dragoman.text.sentencepiece_tokenizer import FILES as SENTENCEPIECE_FILES
from dragoman.text.sentencepiece_tokenizer import TARGET_VOCABULARY, load_tokenizer
from dragoman.text.tokenizer import TOKENIZER, Tokenizer

if TYPE_CHECKING:
    from dragoman.model.build import TranslationModel

FORMAT = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
CARD, SCORECARD, TRAINING = "README.md", "scorecard.json", "training.jsonl"

Dtype = Literal["float32", "float16"]


@dataclass(frozen=True)
class Bundle:
    """What config.json says, and the way to the rest. `version` is the dragoman that wrote it."""

    path: Path
    directions: tuple[str, ...]
    model_config: ModelConfig
    search: SearchConfig
    dtype: Dtype
    weights_bytes: int
    weights_sha256: str
    version: str

    @classmethod
    def open(cls, path: Path | str) -> Bundle:
        """The bundle in a folder; its files are looked for, but only config.json is read."""
        path = Path(path)
        if not path.exists():
            raise BundleError(f"there is no model at {path}: give a folder that `dragoman train` wrote")
        if not path.is_dir():
            raise BundleError(f"{path} is a file, expected a model folder with {CONFIG}, {TOKENIZER} and {WEIGHTS}")
        _look_for(path, (CONFIG,))
        bundle = _parse(path, _read_json(path / CONFIG))
        # An imported model has the SentencePiece models that it came with.
        imported = (path / SENTENCEPIECE_FILES[0]).is_file() and not (path / TOKENIZER).is_file()
        _look_for(path, (*(SENTENCEPIECE_FILES if imported else (TOKENIZER,)), WEIGHTS))
        if (size := (path / WEIGHTS).stat().st_size) != bundle.weights_bytes:
            raise BundleError(
                f"{path / WEIGHTS} has {size} bytes, {CONFIG} says {bundle.weights_bytes}: "
                f"the file is cut short or of another model, copy it again"
            )
        return bundle

    @classmethod
    def write(
        cls,
        folder: Path | str,
        *,
        model_config: ModelConfig,
        search: SearchConfig,
        tokenizer: Tokenizer,
        weights: Mapping[str, NDArray[Any]],
        directions: Sequence[str],
        known_words: KnownWords | None = None,
        card: str = "",
        scorecard: Mapping[str, Any] | None = None,
        dtype: Dtype = "float32",
    ) -> Bundle:
        """Write a model folder and open it. Each file is whole or not there; the weights come last, and behind them
        config.json, which vouches for them. Other files in the folder stay as they are.
        """
        folder = Path(folder)
        check_shapes({name: array.shape for name, array in weights.items()}, model_config, "the model to write")
        for side, num_pieces in (
            (tokenizer, model_config.num_source_pieces),
            (tokenizer.target_side, model_config.vocab_size),
        ):
            if side.vocab_size != num_pieces:
                raise BundleError(
                    f"the tokenizer has {side.vocab_size} pieces and the model {num_pieces}: they are not of one model"
                )
        stored = {name: _cast(array, name, dtype) for name, array in weights.items()}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = tokenizer.files()
            if known_words is not None:
                files[WORDS] = known_words.to_bytes()
            for name in {TOKENIZER, TARGET_VOCABULARY, WORDS, *SENTENCEPIECE_FILES} - set(files):
                (folder / name).unlink(missing_ok=True)  # of a model that was here before
            for name, data in files.items():
                _write(folder / name, data)
            if card:
                _write(folder / CARD, card.encode())
            if scorecard is not None:
                _write(folder / SCORECARD, json_bytes(scorecard))
            with atomic_file(folder / CONFIG) as config_file, atomic_file(folder / WEIGHTS) as file:
                safetensors.numpy.save_file(stored, file, metadata={"format": "np"})
                config = {
                    "format": FORMAT,
                    "dragoman": __version__,
                    "directions": list(directions),
                    "model": to_mapping(model_config),
                    "search": to_mapping(search),
                    "weights": {"dtype": dtype, "bytes": file.stat().st_size, "sha256": _sha256(file)},
                }
                config_file.write_bytes(json_bytes(config))
        except OSError as error:
            raise BundleError(f"cannot write the model to {folder}: {error.strerror or error}") from error
        return cls.open(folder)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        tokenizer, config = load_tokenizer(self.path), self.model_config
        for side, num_pieces in ((tokenizer, config.num_source_pieces), (tokenizer.target_side, config.vocab_size)):
            if side.vocab_size != num_pieces:
                raise BundleError(
                    f"{self.path / next(iter(tokenizer.files()))} has {side.vocab_size} pieces, {CONFIG} says "
                    f"{num_pieces}: these two files are not of one model"
                )
        return tokenizer

    @functools.cached_property
    def known_words(self) -> KnownWords | None:
        """The words that the model has met; None where that is not known."""
        file = self.path / WORDS
        try:
            return KnownWords.from_bytes(file.read_bytes()) if file.is_file() else None
        except (OSError, DataError) as error:
            raise BundleError(f"{self.path}: {error}") from error

    @property
    def scorecard(self) -> dict[str, Any]:
        """What scorecard.json holds; nothing where there is none."""
        file = self.path / SCORECARD
        return _read_json(file) if file.is_file() else {}

    @property
    def languages(self) -> tuple[tuple[str, str], ...]:
        """(source, target) of each direction."""
        return tuple((source, target) for source, _, target in (one.partition("-") for one in self.directions))

    @property
    def head_ids(self) -> list[int]:
        """What sources of the first direction begin with: the tag of the language to write, if the model has tags."""
        return [self.tokenizer.language_id(self.languages[0][1])] if self.tokenizer.languages else []

    @property
    def num_parameters(self) -> int:
        """Parameters, each counted once."""
        return sum(int(np.prod(shape)) for shape in self.shapes().values())

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and shape of every weight in the file."""
        with self._weights_file() as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118

    def weights(self) -> Weights:
        """Every weight, as it is stored, after checking names and shapes."""
        check_shapes(self.shapes(), self.model_config, str(self.path / WEIGHTS))
        with self._weights_file() as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    def weights_hash(self) -> str:
        """SHA-256 of the weights as config.json has it; `open` has compared the size, `verify` reads it all."""
        return self.weights_sha256

    def fingerprint(self) -> str:
        """SHA-256 of config.json, which has the shape, the search and the weights' own hash."""
        return _sha256(self.path / CONFIG)

    def verify(self) -> None:
        """Read the weights through and compare their hash."""
        if _sha256(self.path / WEIGHTS) != self.weights_sha256:
            raise BundleError(
                f"{self.path / WEIGHTS} does not have the hash that {CONFIG} gives: the file is damaged, copy it again"
            )

    def load_model(self) -> TranslationModel:
        """The torch model, in evaluation mode."""
        require("torch", "train", "running a model in torch")
        from dragoman.model.build import build_model

        model = build_model(self.model_config)
        model.load_state_dict(weights_to_state(self.weights()))
        return model.eval()

    def _weights_file(self) -> Any:
        try:
            return safetensors.safe_open(self.path / WEIGHTS, framework="numpy")
        except (OSError, safetensors.SafetensorError) as error:
            raise BundleError(f"{self.path / WEIGHTS} cannot be read: {error}: copy the model again") from error


def _look_for(path: Path, names: Sequence[str]) -> None:
    for name in names:
        if not (path / name).is_file():
            raise BundleError(f"{path} lacks {name}, so it is not a whole model folder: copy or train it again")


def _parse(path: Path, config: Mapping[str, Any]) -> Bundle:
    where = path / CONFIG
    format = config.get("format")
    if not isinstance(format, int) or format < 1:
        hint = f": for a transformers model there is `dragoman import {path}`" if "model_type" in config else ""
        raise BundleError(f"{where} gives no format, so it is not the {CONFIG} of a dragoman model{hint}")
    if format > FORMAT:
        raise BundleError(
            f"{path} is a model of format {format}, this dragoman {__version__} reads up to {FORMAT}: upgrade dragoman"
        )
    try:
        weights = config["weights"]
        return Bundle(
            path=path,
            directions=tuple(map(str, config["directions"])),
            model_config=fill(ModelConfig, config["model"]),
            search=fill(SearchConfig, config["search"]),
            dtype=weights["dtype"],
            weights_bytes=int(weights["bytes"]),
            weights_sha256=str(weights["sha256"]),
            version=str(config["dragoman"]),
        )
    except KeyError as error:
        raise BundleError(f"{where} lacks {error.args[0]!r}: copy or train the model again") from error
    except (TypeError, ValueError, ConfigError) as error:
        raise BundleError(f"{where} cannot be understood: {error}") from error


def _read_json(file: Path) -> dict[str, Any]:
    try:
        contents = json.loads(file.read_bytes())
    except OSError as error:
        raise BundleError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise BundleError(f"{file} is not JSON ({error}): copy or train the model again") from error
    if not isinstance(contents, dict):
        raise BundleError(f"{file} holds a {type(contents).__name__}, expected a JSON object")
    return contents


def _cast(array: NDArray[Any], name: str, dtype: Dtype) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        cast: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype)
    if not np.isfinite(cast).all():
        raise BundleError(f"the weight {name!r} has values that {dtype} cannot hold: has the training diverged?")
    return cast


def json_bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _write(path: Path, data: bytes) -> None:
    with atomic_file(path) as file:
        file.write_bytes(data)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
