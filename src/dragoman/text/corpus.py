"""Parallel text in, one pair at a time: TSV, two aligned files, TMX and JSON lines, each plain or compressed.

    read_records   lenient: what cannot be a pair comes as a `Fault`, and reading goes on (the doctor counts them)
    read_pairs     strict: the first `Fault` is a `DataError` that names file and line

Nothing is kept, so memory is flat however large the corpus. Both sides of a pair are stripped of surrounding white
space. A blank line, and a TMX unit that lacks a language, is a pair with an empty side, so that it is counted too.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal

from dragoman.errors import DataError
from dragoman.recipe import CorpusConfig
from dragoman.text.languages import UNKNOWN, languages_of_names
from dragoman.text.lines import STANDARD_INPUT, bare_name, decode, name_of, open_bytes, place, raw_lines
from dragoman.text.tmx import languages_of_tmx, read_units, segment_in

FaultKind = Literal["encoding", "columns", "record", "line-counts"]
Format = Literal["TSV", "two files", "TMX", "JSON lines"]

_FORMATS: dict[str, Format] = {".tmx": "TMX", ".jsonl": "JSON lines", ".ndjson": "JSON lines", ".json": "JSON lines"}
_LINE_ENDS = re.compile(r"\s*[\r\n]\s*")
_EXCERPT_BYTES = 300


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation; `number` is the line that they stand on, from 1."""

    source: str
    target: str
    number: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that is no pair: the kind of fault, its place, what is wrong with it, and what stands there."""

    kind: FaultKind
    path: str
    number: int
    problem: str
    excerpt: str = ""

    @property
    def place(self) -> str:
        return place(self.path, self.number)

    @property
    def message(self) -> str:
        return self.problem if self.kind == "line-counts" else f"{self.place}: {self.problem}"


def read_pairs(corpus: CorpusConfig) -> Iterator[Pair]:
    """Every pair of the corpus, in order; a `DataError` at the first line that is none."""
    for record in read_records(corpus):
        if isinstance(record, Fault):
            raise DataError(record.message)
        yield record


def read_records(corpus: CorpusConfig) -> Iterator[Pair | Fault]:
    """Every pair of the corpus, in order, and every line that is none. A corpus without any line is a `DataError`."""
    if not corpus.path:
        raise DataError("a corpus has no path, expected a file that holds both sides, or the source side's file")
    format = format_of(corpus)
    if corpus.swap and format != "TSV":
        raise DataError(f"{name_of(corpus.path)} is read as {format}: swap is for the columns of TSV, leave it out")
    read = {"TSV": _read_tsv, "two files": _read_aligned, "TMX": _read_tmx, "JSON lines": _read_json_lines}[format]
    empty = True
    for record in read(corpus):
        empty = False
        yield record
    if empty:
        files = " and ".join(map(name_of, _paths(corpus)))
        raise DataError(f"no pairs in {files}, read as {format}: give a file with a pair a line, source<TAB>target")


def corpus_of(argument: str, languages: str = "") -> CorpusConfig:
    """The corpus that an argument names: `pairs.tsv`, or `train.fr,train.en` for two aligned files."""
    source, _, target = argument.partition(",")
    if source and target and not Path(argument).exists():
        return CorpusConfig(path=source, target_path=target, languages=languages)
    return CorpusConfig(path=argument, languages=languages)


def format_of(corpus: CorpusConfig) -> Format:
    """How a corpus is read: by the number of its files, then by its name. What no name tells is TSV."""
    if corpus.target_path:
        return "two files"
    return _FORMATS.get(PurePath(bare_name(corpus.path)).suffix.lower(), "TSV")


def corpus_languages(corpus: CorpusConfig) -> tuple[str, str]:
    """Its source and target language: as it says; as its names say (`train.fr` and `train.en`; `fr-en` in a file's name
    or its folder's); as a TMX file of two languages says. Else `source` and `target`, which are names like any other.
    """
    if corpus.languages:
        source, _, target = corpus.languages.partition("-")
        return source, target
    told = languages_of_names(corpus.path, corpus.target_path)
    if told and corpus.swap:
        told = told[::-1]
    if told is None and format_of(corpus) == "TMX" and Path(corpus.path).is_file():
        told = languages_of_tmx(corpus.path)
    return told or UNKNOWN


def content_hash(corpora: Sequence[CorpusConfig]) -> str:
    """SHA-256 over the files' bytes as they are on disk, in order: the same text in the same files, the same hash."""
    whole = hashlib.sha256()
    for corpus in corpora:
        whole.update(bytes([len(_paths(corpus))]))
        for path in _paths(corpus):
            if _can_be_read_once(path):
                raise DataError(f"{name_of(path)} can be read only once, so it has no hash: spool it into a file first")
            with open_bytes(path, decompress=False) as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def spool(corpus: CorpusConfig, folder: Path) -> CorpusConfig:
    """The corpus with standard input and pipes copied into files in `folder`, so that it can be read several times."""
    paths = _paths(corpus)
    if len(paths) > 1 and len(set(paths)) == 1:
        raise DataError(f"{name_of(corpus.path)} is given as both sides: give two files, or one that holds both sides")
    kept = []
    for side, path in zip(("source", "target"), paths, strict=False):
        if not _can_be_read_once(path):
            kept.append(path)
            continue
        copy = folder / (f"spooled.{side}" if len(paths) > 1 else "spooled.tsv")
        with open_bytes(path) as file, copy.open("wb") as out:
            shutil.copyfileobj(file, out)
        kept.append(str(copy))
    source, target = corpus_languages(corpus)
    languages = corpus.languages or (f"{source}-{target}" if (source, target) != UNKNOWN else "")
    return replace(corpus, path=kept[0], target_path="".join(kept[1:]), languages=languages)


def _paths(corpus: CorpusConfig) -> list[str]:
    return [corpus.path, corpus.target_path] if corpus.target_path else [corpus.path]


def _can_be_read_once(path: str) -> bool:
    return path == STANDARD_INPUT or Path(path).is_fifo() or Path(path).is_char_device()


def _text_of(raw: bytes, path: str, number: int) -> str | Fault:
    try:
        return decode(raw)
    except DataError as error:
        return Fault("encoding", path, number, str(error), _excerpt(raw))


def _excerpt(raw: bytes) -> str:
    return raw[:_EXCERPT_BYTES].decode("utf-8", errors="backslashreplace")


def _read_tsv(corpus: CorpusConfig) -> Iterator[Pair | Fault]:
    """`source<TAB>target`; further columns, where some exports name the authors, are ignored."""
    for number, raw in enumerate(raw_lines(corpus.path), start=1):
        text = _text_of(raw, corpus.path, number)
        if isinstance(text, Fault):
            yield text
            continue
        columns = text.split("\t", 2)
        if len(columns) > 1:
            source, target = columns[1::-1] if corpus.swap else columns[:2]
            yield Pair(source.strip(), target.strip(), number)
        elif not text.strip():
            yield Pair("", "", number)
        else:
            problem = "one column, expected source<TAB>target; for two aligned files use --source and --target"
            yield Fault("columns", corpus.path, number, problem, _excerpt(raw))


def _read_aligned(corpus: CorpusConfig) -> Iterator[Pair | Fault]:
    """Line i of one file is the translation of line i of the other."""
    raw_sources, raw_targets = raw_lines(corpus.path), raw_lines(corpus.target_path)
    number = 0
    while (raw_source := next(raw_sources, None)) is not None and (raw_target := next(raw_targets, None)) is not None:
        number += 1
        source, target = _text_of(raw_source, corpus.path, number), _text_of(raw_target, corpus.target_path, number)
        if isinstance(source, Fault):
            yield source
        elif isinstance(target, Fault):
            yield target
        else:
            yield Pair(source.strip(), target.strip(), number)
    num_sources = number + (raw_source is not None) + sum(1 for _ in raw_sources)
    num_targets = number + sum(1 for _ in raw_targets)
    if num_sources != num_targets:
        problem = (
            f"{name_of(corpus.path)} has {num_sources} lines and {name_of(corpus.target_path)} has {num_targets}, "
            f"expected as many: line i of one must be the translation of line i of the other"
        )
        shorter = corpus.path if num_sources < num_targets else corpus.target_path
        yield Fault("line-counts", shorter, number, problem)


def _read_tmx(corpus: CorpusConfig) -> Iterator[Pair]:
    languages = corpus_languages(corpus)
    others: dict[str, None] = {}
    found = False
    for unit in read_units(corpus.path):
        source, target = (segment_in(unit, language) for language in languages)
        found = found or bool(source and target)
        if not found and len(others) < 9:
            others.update(dict.fromkeys(unit.segments))
        yield Pair(source, target, unit.number)
    if others and not found:
        raise DataError(
            f"{corpus.path} has no unit in both {languages[0]!r} and {languages[1]!r}, it holds {', '.join(others)}: "
            f"say which two to read with --from and --to"
        )


def _read_json_lines(corpus: CorpusConfig) -> Iterator[Pair | Fault]:
    """`{"source": .., "target": ..}`, `{"translation": {"fr": .., "en": ..}}`, or the languages without a wrapper."""
    languages = corpus_languages(corpus)
    for number, raw in enumerate(raw_lines(corpus.path), start=1):
        text = _text_of(raw, corpus.path, number)
        if isinstance(text, Fault):
            yield text
            continue
        try:
            source, target = _sides_of_json(text, languages) if text.strip() else ("", "")
        except DataError as error:
            yield Fault("record", corpus.path, number, str(error), _excerpt(raw))
        else:
            yield Pair(source, target, number)


def _sides_of_json(text: str, languages: tuple[str, str]) -> tuple[str, str]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("not JSON, expected an object a line") from None
    table = record.get("translation", record) if isinstance(record, dict) else None
    if not isinstance(table, dict):
        raise DataError("no JSON object with text in it, expected " + _expected_keys(languages))
    names = languages if all(language in table for language in languages) else UNKNOWN
    if not all(name in table for name in names):
        raise DataError(
            f"an object with the keys {', '.join(map(repr, table))}, expected {_expected_keys(languages)}; "
            f"say which languages to read with --from and --to"
        )
    return _side(table[names[0]]), _side(table[names[1]])


def _expected_keys(languages: tuple[str, str]) -> str:
    source, target = languages if languages != UNKNOWN else ("fr", "en")
    return f'{{"source": .., "target": ..}} or {{"translation": {{"{source}": .., "{target}": ..}}}}'


def refuse_half_characters(text: str) -> None:
    """`\\ud800` alone is valid JSON, but nothing downstream can encode it again."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError("half a character (a lone surrogate), expected text: write the whole character") from None


def _side(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"a side is {json.dumps(value)[:60]}, expected text")
    refuse_half_characters(value)
    # A side is one line everywhere else, so it is one here; the escape \n is the only way that an end gets in.
    return _LINE_ENDS.sub(" ", value.strip())
