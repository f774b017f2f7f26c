"""A translation memory: pairs in a file, read as the model reads them, for the engine to recall."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import ConfigError, DataError
from dragoman.recipe import CorpusConfig
from dragoman.search.examples import Examples
from dragoman.text.corpus import corpus_languages, read_pairs
from dragoman.text.languages import UNKNOWN, matching_direction
from dragoman.text.lines import name_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.translator.drafts import Scribe


def read_memory(
    corpus: CorpusConfig, tokenizer: Tokenizer, directions: Sequence[tuple[str, str]], max_length: int
) -> Examples:
    """The pairs of a corpus, in those of a model's directions that they go, or go turned round."""
    ways = _ways(corpus, directions)
    pairs = [pair for pair in read_pairs(corpus) if pair.source and pair.target]
    sources, targets = [], []
    for target, is_turned in ways:
        read, written = [pair.source for pair in pairs], [pair.target for pair in pairs]
        if is_turned:
            read, written = written, read
        encoded = Scribe(tokenizer, target).encode(read)
        for source_ids, target_ids in zip(encoded, tokenizer.target_side.ids_batch(written), strict=True):
            if max(len(source_ids), len(target_ids) + 1) < max_length:
                sources.append(source_ids)
                targets.append([*target_ids, tokenizer.end_id])
    if not sources:
        raise DataError(f"{name_of(corpus.path)} has no pair that the model could have written: give others")
    return Examples(sources, targets)


def read_memories(
    corpora: Sequence[CorpusConfig], tokenizer: Tokenizer, directions: Sequence[tuple[str, str]], max_length: int
) -> Examples | None:
    """The pairs of those corpora that a model can use; None where there is none. Each must tell its languages."""
    sources: list[Sequence[int]] = []
    targets: list[Sequence[int]] = []
    for corpus in corpora:
        if corpus_languages(corpus) == UNKNOWN:
            raise ConfigError(
                f"{name_of(corpus.path)} does not tell its languages: give a file whose name does, as memory.fr-en.tsv"
            )
        if can_use(corpus, directions):
            examples = read_memory(corpus, tokenizer, directions, max_length)
            sources += examples.sources
            targets += examples.targets
    return Examples(sources, targets) if sources else None


def can_use(corpus: CorpusConfig, directions: Sequence[tuple[str, str]]) -> bool:
    """Whether one of these directions is that of the corpus, or the other way round."""
    told = corpus_languages(corpus)
    return any(matching_direction(directions, *languages) for languages in (told, told[::-1]))


def _ways(corpus: CorpusConfig, directions: Sequence[tuple[str, str]]) -> list[tuple[str, bool]]:
    """The target languages that the pairs are examples for, and whether they are turned round for that."""
    told = corpus_languages(corpus)
    if told == UNKNOWN and len(directions) > 1:
        raise ConfigError(
            f"{name_of(corpus.path)} does not tell its languages, and the model translates "
            f"{', '.join(map('-'.join, directions))}: say which with --from and --to"
        )
    if told == UNKNOWN:
        return [(directions[0][1], False)]
    ways = []
    for is_turned, languages in enumerate((told, told[::-1])):
        if found := matching_direction(directions, *languages):
            ways.append((found[1], bool(is_turned)))
    if not ways:
        raise ConfigError(
            f"{name_of(corpus.path)} is {'-'.join(told)}, the model translates "
            f"{', '.join(map('-'.join, directions))}: give other pairs, or say which languages with --from and --to"
        )
    return ways
