"""What a translation is measured against: sentences, and one or more references of each.

Any corpus that training reads is a test set with one reference a sentence. JSON lines may hold a list of them:
`{"fr": "Va !", "en": ["Go!", "Go away!"]}`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any

from dragoman.errors import DataError
from dragoman.recipe import CorpusConfig
from dragoman.text.corpus import corpus_languages, format_of, read_pairs, refuse_half_characters
from dragoman.text.languages import UNKNOWN
from dragoman.text.lines import lines_of, name_of, place


@dataclass(frozen=True)
class TestSet:
    """Sentences and their references, line by line; what the set is called, and its languages, where that is known."""

    __test__ = False  # or pytest would take the class for one of its own

    name: str
    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    languages: tuple[str, str] = UNKNOWN

    def __post_init__(self) -> None:
        assert len(self.sources) == len(self.references)

    def __len__(self) -> int:
        return len(self.sources)

    def swapped(self) -> "TestSet":
        """The other way round: the first reference is the source, the source the one reference."""
        sources = tuple(references[0] for references in self.references)
        languages = self.languages if self.languages == UNKNOWN else self.languages[::-1]
        return TestSet(self.name, sources, tuple((source,) for source in self.sources), languages)


def read_test_set(corpus: CorpusConfig, limit: int = 0) -> TestSet:
    """The test set in a corpus, or its first `limit` pairs. A pair that lacks a side is an error: it has no score."""
    lines = _read_json_lines(corpus) if format_of(corpus) == "JSON lines" else _read_pairs(corpus)
    sources, references = [], []
    for number, source, alternatives in islice(lines, limit or None):
        for side, text in (("source", source), ("reference", " ".join(alternatives))):
            if not text.strip():
                raise DataError(f"{place(corpus.path, number)}: no {side}, expected text: remove the pair")
        sources.append(source)
        references.append(alternatives)
    if not sources:
        raise DataError(f"no pairs in {name_of(corpus.path)}, expected at least one to test on")
    name = PurePath(name_of(corpus.path)).name
    return TestSet(name, tuple(sources), tuple(references), corpus_languages(corpus))


def read_hypotheses(path: str, test: TestSet, limit: int = 0) -> list[str]:
    """An output file, or its first `limit` lines: a line a sentence of the test set."""
    hypotheses = [line.strip() for line in islice(lines_of(path), limit or None)]
    if len(hypotheses) != len(test):
        raise DataError(
            f"{name_of(path)} has {len(hypotheses)} lines and the test set {test.name} has {len(test)} pairs, "
            f"expected as many: give the output of exactly these sentences"
        )
    return hypotheses


def _read_pairs(corpus: CorpusConfig) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    for pair in read_pairs(corpus):
        yield pair.number, pair.source, (pair.target,)


def _read_json_lines(corpus: CorpusConfig) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    languages = corpus_languages(corpus)
    for number, line in enumerate(lines_of(corpus.path), start=1):
        try:
            source, alternatives = _sides(line, languages)
        except ValueError as error:
            raise DataError(f"{place(corpus.path, number)}: {error}") from None
        yield number, source, alternatives


def _sides(line: str, languages: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError("not JSON, expected an object a line") from None
    table = record.get("translation", record) if isinstance(record, dict) else None
    table = table if isinstance(table, dict) else {}
    for source_name, target_name in (languages, UNKNOWN):
        source, target = (table.get(name) for name in (source_name, target_name))
        alternatives = target if isinstance(target, list) else [target]
        if isinstance(source, str) and alternatives and all(isinstance(text, str) for text in alternatives):
            refuse_half_characters(" ".join([source, *alternatives]))
            return _one_line(source), tuple(map(_one_line, alternatives))
    source_name, target_name = ("fr", "en") if tuple(languages) == UNKNOWN else languages
    raise DataError(
        f'no source with its references, expected {{"{source_name}": "..", "{target_name}": "..", or a list of them}}; '
        f"say which languages to read with --from and --to"
    )


def _one_line(text: str) -> str:
    """A sentence is one line everywhere else, so it is one here."""
    return " ".join(part.strip() for part in text.split("\n")).strip()
