"""A trace: what one translation was made of. Frozen dataclasses for what is read, arrays for what is computed with.

`Trace.meta()` is what JSON holds of it, and field names here are the keys there. The decoder's row t reads input t,
which is the begin piece and then the target shifted by one, and writes piece t of the target.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from dragoman.cache import atomic_file
from dragoman.errors import ConfigError, DataError
from dragoman.explain.request import TraceRequest
from dragoman.settings import fill, to_mapping
from dragoman.translator.translation import Link

FORMAT = "dragoman-trace/1"
META, TENSORS = "trace.json", "trace.safetensors"

Array = NDArray[np.float32]
Arrays = dict[str, Array]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Piece:
    """A piece: `piece` as the vocabulary has it, `text` as it shows, and its span in the side's text, in characters.

    `word` is its word's place; special pieces have none.
    """

    id: int
    piece: str
    text: str
    start: int
    end: int
    word: int | None
    special: bool


@dataclass(frozen=True)
class Word:
    """What white space separates, and the places of its pieces."""

    text: str
    start: int
    end: int
    pieces: tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """The source or the target."""

    text: str
    pieces: tuple[Piece, ...]
    words: tuple[Word, ...]


@dataclass(frozen=True)
class ModelFacts:
    """The model's name and shape; what a kind of model does not have is 0 or empty."""

    name: str
    architecture: str
    source: str
    target: str
    encoder_layers: int
    decoder_layers: int
    heads: int
    d_model: int
    d_k: int
    d_v: int
    d_ff: int
    norm: str
    norm_order: str
    activation: str
    position: str
    position_base: float
    vocab_size: int
    parameters: int
    checkpoints: tuple[int, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A piece that might come next; `rank` 1 is the likeliest."""

    id: int
    piece: str
    text: str
    probability: float
    rank: int


@dataclass(frozen=True)
class Step:
    """One piece of the target: what was written, what else might have been, and what each decoder layer would say."""

    chosen: Candidate
    top: tuple[Candidate, ...]
    lens: tuple[tuple[Candidate, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """The translation, its score under the length penalty, and how sure the model was of its pieces (0 to 1)."""

    text: str
    score: float
    log_probability: float
    confidence: float
    finished: bool


@dataclass(frozen=True)
class Head:
    """What a head does in this sentence: `heads.py` defines the numbers. `share` of its weight does as labelled."""

    kind: str
    layer: int
    head: int
    name: str
    entropy: float
    evenness: float
    diagonality: float
    label: str
    share: float


@dataclass(frozen=True)
class Node:
    """A piece that the search considered; `parent` None is the begin piece, the numbers are the hypothesis' so far."""

    id: int
    parent: int | None
    step: int
    piece_id: int
    piece: str
    text: str
    log_probability: float
    score: float
    state: str
    reason: str


@dataclass(frozen=True)
class BeamTree:
    """The search: all that was considered, and the nodes of the hypothesis that won, first step first."""

    width: int
    length_penalty: float
    nodes: tuple[Node, ...]
    best: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TraceBody:
    """The part of a trace that JSON holds. `request` has everything filled in: asked again, it gives the same trace,
    without a search. `alignment_layer` is the decoder layer whose cross-attention, averaged over heads, is read as
    the alignment. `beam` is None where nothing was searched.
    """

    request: TraceRequest
    model: ModelFacts
    sentences: tuple[str, ...]
    source: Side
    target: Side
    begin: Piece
    translation: Outcome
    steps: tuple[Step, ...]
    alignment: tuple[Link, ...]
    alignment_layer: int
    heads: tuple[Head, ...]
    beam: BeamTree | None


@dataclass(frozen=True, kw_only=True)
class Trace(TraceBody):
    """All of it: with what a pass wrote down, by name. `on_demand` has the shapes of what an explainer would compute
    besides.
    """

    tensors: Arrays = field(repr=False)
    on_demand: Shapes = field(default_factory=dict, repr=False)

    def meta(self) -> dict[str, Any]:
        """What JSON holds of it: everything but the numbers of the tensors, of which it has the shapes."""
        plain = {name: _plain(getattr(self, name)) for name in TraceBody.__dataclass_fields__}
        shapes = {name: list(array.shape) for name, array in self.tensors.items()}
        return {
            "format": FORMAT,
            **plain,
            "tensors": shapes,
            "on_demand": {name: list(shape) for name, shape in self.on_demand.items()},
        }

    def save(self, folder: Path | str) -> None:
        """Write trace.json and trace.safetensors."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_file(folder / TENSORS) as file:
                file.write_bytes(pack(self.tensors))
            with atomic_file(folder / META) as file:
                file.write_text(json.dumps(self.meta(), ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise DataError(f"cannot write the trace to {folder}: {error.strerror or error}") from error

    @classmethod
    def load(cls, folder: Path | str) -> Trace:
        """The trace that `save` wrote."""
        folder = Path(folder)
        try:
            meta = json.loads((folder / META).read_bytes())
            tensors = safetensors.numpy.load((folder / TENSORS).read_bytes())
            return from_meta(meta, tensors)
        except OSError as error:
            raise DataError(f"there is no trace in {folder}: {error.strerror or error}") from error
        except (ValueError, TypeError, safetensors.SafetensorError, ConfigError) as error:
            raise DataError(f"the trace in {folder} cannot be understood ({error}): save it again") from error


def from_meta(meta: Mapping[str, Any], tensors: Arrays) -> Trace:
    """A trace from what `meta` gave, and its tensors."""
    if meta.get("format") != FORMAT:
        raise ConfigError(f"format is {meta.get('format')!r}, expected {FORMAT!r}")
    rest = {name: value for name, value in meta.items() if name not in ("format", "tensors", "on_demand")}
    body = fill(TraceBody, rest)
    return Trace(
        **{name: getattr(body, name) for name in TraceBody.__dataclass_fields__},
        tensors=tensors,
        on_demand={name: tuple(shape) for name, shape in meta["on_demand"].items()},
    )


def pack(tensors: Mapping[str, Array]) -> bytes:
    """Arrays as one safetensors file."""
    return safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in tensors.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return to_mapping(value) if hasattr(value, "__dataclass_fields__") else value
