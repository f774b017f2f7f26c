"""Pairs as ids on disk, memory mapped: `build` writes a folder once, `Dataset` reads any pair of it without loading it.

A folder holds, for each side, its ids end to end, where each pair begins, and how long it is; with `keep_text` the
normalised text as well, for BPE-dropout; and meta.json, which is written last and knows the size of every file. It is
built under another name and renamed when it is whole and on the disk, so a folder that exists is complete.
"""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError, DataError
from dragoman.text.chunks import PairLike, Rules, encode_pairs
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.writing import SideWriter, made_whole, write_synced

VERSION = 1
SIDES = ("source", "target")

Ids = NDArray[np.unsignedinteger[Any]]


class PairIds(NamedTuple):
    """The ids of a pair. The source has its language tag, if any, and both have the end id."""

    source: Ids
    target: Ids


class PairText(NamedTuple):
    """The normalised text of a pair."""

    source: str
    target: str


class Dataset:
    """A folder that `build` wrote."""

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        """Use `Dataset.open`, which checks the folder first."""
        self.folder = folder
        self.meta = meta
        self._ids = [_mapped(folder / f"{side}.ids", meta["dtype"]) for side in SIDES]
        self._offsets = [_mapped(folder / f"{side}.offsets", "int64") for side in SIDES]
        self.source_lengths, self.target_lengths = (_mapped(folder / f"{side}.lengths", "uint32") for side in SIDES)
        if meta["keep_text"]:
            self._text = [_mapped(folder / f"{side}.text", "uint8") for side in SIDES]
            self._text_offsets = [_mapped(folder / f"{side}.text_offsets", "int64") for side in SIDES]

    @classmethod
    def open(cls, folder: Path | str) -> "Dataset":
        """The dataset in a folder, or a `DataError` that says what is wrong with it."""
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            if meta["version"] != VERSION:
                raise DataError(
                    f"{folder} has encoded pairs of version {meta['version']}, expected {VERSION}: delete it"
                )
            for name, size in meta["sizes"].items():
                found = (folder / name).stat().st_size
                if found != size:
                    raise DataError(f"{folder / name} has {found} bytes, expected {size}: delete the folder")
            return cls(folder, meta)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{folder} does not hold encoded pairs, or is damaged: {error!r}: delete it") from error

    def __len__(self) -> int:
        return len(self.source_lengths)

    @property
    def dropped(self) -> dict[str, int]:
        """How many pairs were left out, by reason."""
        dropped: dict[str, int] = self.meta["dropped"]
        return dropped

    def pair(self, index: int) -> PairIds:
        """The ids of pair `index`: views of the mapped files."""
        return PairIds(*(ids[o[index] : o[index + 1]] for ids, o in zip(self._ids, self._offsets, strict=True)))

    def text(self, index: int) -> PairText:
        """The normalised text of pair `index`."""
        if not self.meta["keep_text"]:
            raise ConfigError(f"{self.folder} was built without text, which BPE-dropout needs: build it with keep_text")
        sides = zip(self._text, self._text_offsets, strict=True)
        return PairText(*(text[o[index] : o[index + 1]].tobytes().decode() for text, o in sides))

    def drawn_pair(self, index: int, split: Callable[[PairText], Sequence[list[int]]]) -> PairIds:
        """The ids of pair `index` as `split` cuts its text; a pair of which a side would grow too long stays itself."""
        tag, end = self.meta["target_tag"], self.meta["end_id"]
        source, target = split(self.text(index))
        drawn = ([*([] if tag is None else [tag]), *source, end], [*target, end])
        if max(map(len, drawn)) > self.meta["max_length"]:
            return self.pair(index)
        return PairIds(*(np.array(new, ids.dtype) for new, ids in zip(drawn, self._ids, strict=True)))


def build(
    pairs: Iterable[PairLike],
    tokenizer: Tokenizer,
    folder: Path | str,
    *,
    target_tag: int | None = None,
    max_length: int,
    max_ratio: float,
    keep_text: bool = False,
    workers: int = 0,
) -> Dataset:
    """Encode pairs into `folder`, which must not exist; 0 workers is one for each processor.

    `max_length` counts all ids of a side, tag and end included. Memory does not grow with the pairs.
    """
    folder = Path(folder)
    rules = Rules(target_tag=target_tag, max_length=max_length, max_ratio=max_ratio, keep_text=keep_text)
    dropped: Counter[str] = Counter()
    num_pieces = max(tokenizer.vocab_size, tokenizer.target_side.vocab_size)
    dtype = np.dtype("uint16" if num_pieces <= 1 << 16 else "uint32")
    with made_whole(folder) as unfinished:
        writers = [SideWriter(unfinished, side, dtype, keep_text) for side in SIDES]
        try:
            for chunk in encode_pairs(pairs, tokenizer, rules, workers or num_processors()):
                dropped.update(chunk.dropped)
                for writer, side in zip(writers, (chunk.source, chunk.target), strict=True):
                    writer.write(side)
        finally:
            sizes = {name: size for writer in writers for name, size in writer.close().items()}
        num_pairs = writers[0].num_pairs
        if not num_pairs:
            reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
            raise DataError(f"no pair is left: {reasons or 'the corpus is empty'}")
        meta = {
            "version": VERSION,
            "num_pairs": num_pairs,
            "dropped": dict(dropped),
            "dtype": dtype.name,
            "target_tag": target_tag,
            "end_id": tokenizer.end_id,
            "max_length": max_length,
            "max_ratio": max_ratio,
            "keep_text": keep_text,
            "tokenizer": tokenizer.fingerprint(),
            "sizes": sizes,
        }
        write_synced(unfinished / "meta.json", json.dumps(meta, indent=1).encode())
    return Dataset.open(folder)


def cached(caches: Path | str, key: Mapping[str, Any], builder: Callable[[Path], Dataset]) -> Dataset:
    """The dataset that `builder(folder)` builds, or the one that it built for the same key before.

    `key` holds whatever the ids depend on: the content hash of the corpus, the tokenizer's fingerprint, the settings.
    A folder that is damaged is built again.
    """
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
    folder = Path(caches) / name
    if folder.exists():
        try:
            return Dataset.open(folder)
        except DataError:
            shutil.rmtree(folder)
    return builder(folder)


def num_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    """A file as an array that is read when looked at; a plain view, whose slices cost half of a memmap's."""
    if not path.stat().st_size:
        return np.empty(0, dtype)
    return np.memmap(path, dtype, "r").view(np.ndarray)
