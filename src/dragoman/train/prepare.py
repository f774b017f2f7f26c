"""From corpora to what the loop eats: pieces, ids on disk, and a validation set that shares no sentence with them."""

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Bundle
from dragoman.cache import atomic_file, cache_folder
from dragoman.errors import ConfigError, DataError
from dragoman.recipe import CorpusConfig, Recipe
from dragoman.text.contractions import learn_contractions
from dragoman.text.corpus import Fault, Pair, content_hash, corpus_languages, read_records
from dragoman.text.dataset import Dataset, PairText, build, cached
from dragoman.text.holdout import hold_out
from dragoman.text.known_words import KnownWords
from dragoman.text.lexicon import Lexicon, learn_lexicon
from dragoman.text.mixture import Mixture
from dragoman.text.tokenizer import Tokenizer

MOST_VALID_PAIRS, MOST_KNOWN_PAIRS, MOST_LEXICON_PAIRS = 5000, 1_000_000, 200_000


@dataclass(frozen=True)
class Direction:
    """A corpus as it is learned from: as it stands, or with its sides exchanged."""

    corpus: CorpusConfig
    source: str
    target: str
    reverse: bool

    def turn(self, pair: Pair) -> Pair:
        return Pair(pair.target, pair.source, pair.number) if self.reverse else pair

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True)
class ValidPair:
    """A pair to validate on, and the language to write."""

    source: str
    target: str
    language: str


@dataclass(frozen=True)
class Prepared:
    """All that training needs of the data."""

    tokenizer: Tokenizer
    train: Mixture
    valid: Mixture
    valid_pairs: tuple[ValidPair, ...]
    watched: Mixture | None
    directions: tuple[str, ...]
    num_skipped: int


def directions_of(corpora: Sequence[CorpusConfig]) -> list[Direction]:
    """Every corpus in each direction that is to be learned."""
    directions = []
    for corpus in corpora:
        source, target = corpus_languages(corpus)
        directions.append(Direction(corpus, source, target, reverse=False))
        if corpus.both_ways:
            directions.append(Direction(corpus, target, source, reverse=True))
    return directions


def usable(corpus: CorpusConfig) -> Iterator[Pair]:
    """The pairs of a corpus. Lines that are none are passed over (the doctor has told), misaligned files are not."""
    for record in read_records(corpus):
        if not isinstance(record, Fault):
            yield record
        elif record.kind == "line-counts":
            raise DataError(record.problem)


def prepare(
    recipe: Recipe, folder: Path, *, tokenizer: Tokenizer | None = None, say: Callable[[str], None] = lambda text: None
) -> Prepared:
    """Hold out, learn pieces (unless given), encode. What `folder` or the cache has already is not done again."""
    held_out = _hold_out(recipe, folder, say)
    directions = directions_of(recipe.data.train)
    languages = sorted({direction.target for direction in directions})
    tags = languages if len(languages) > 1 else []
    if tokenizer and tags and not tokenizer.languages:
        raise ConfigError(
            f"the model to go on from was made for one language to write, the data have {', '.join(languages)}: "
            f"leave out --both-ways or some of the data, or train anew"
        )
    tokenizer = tokenizer or _learn_pieces(recipe, folder, held_out, tags, say)

    def encode(direction: Direction, mask: NDArray[np.bool_] | None, wanted: bool, most: int | None) -> Dataset:
        tag = tokenizer.language_id(direction.target) if tokenizer.languages else None
        key = {
            "data": content_hash([direction.corpus]),
            "languages": [direction.source, direction.target],
            "held_out": None if mask is None else hashlib.sha256(mask.tobytes()).hexdigest(),
            "wanted": wanted,
            "most": most,
            "swap": direction.corpus.swap,
            "reverse": direction.reverse,
            "tokenizer": tokenizer.fingerprint(),
            "tag": tag,
            "max_length": recipe.model.max_length,
            "max_ratio": recipe.data.max_ratio,
        }
        try:
            return cached(
                cache_folder("data"),
                key,
                lambda path: build(
                    _chosen(direction, mask, wanted, most),
                    tokenizer,
                    path,
                    target_tag=tag,
                    max_length=recipe.model.max_length,
                    max_ratio=recipe.data.max_ratio,
                    keep_text=True,
                ),
            )
        except DataError as error:
            raise DataError(f"{direction.corpus.path}: {error}") from error

    say("encoding the pairs")
    masks = _masks_by_corpus(recipe, held_out)
    mask_of = {direction: masks[recipe.data.train.index(direction.corpus)] for direction in directions}
    train = [encode(direction, mask_of[direction], False, None) for direction in directions]
    if recipe.data.valid:
        valid_directions = directions_of(recipe.data.valid)
        _check_not_reversed(directions, valid_directions)
        valid = [encode(direction, None, True, MOST_VALID_PAIRS) for direction in valid_directions]
    else:
        # Beside a large corpus, a small one may have nothing held out.
        valid_directions = [one for one in directions if (mask := mask_of[one]) is not None and mask.any()]
        valid = [encode(direction, mask_of[direction], True, None) for direction in valid_directions]
    dropped = sum((Counter(dataset.dropped) for dataset in train), Counter[str]())
    if dropped:
        say(f"left out: {', '.join(f'{count:,} {reason}' for reason, count in sorted(dropped.items()))} pairs")
    pairs = [
        ValidPair(text.source, text.target, direction.target)
        for dataset, direction in zip(valid, valid_directions, strict=True)
        for text in (dataset.text(index) for index in range(len(dataset)))
    ]
    watched = [encode(d, None, True, MOST_VALID_PAIRS) for d in directions_of(recipe.data.watch)]
    _write_valid_pairs(folder, valid, valid_directions)
    return Prepared(
        tokenizer=tokenizer,
        train=Mixture(train, [direction.corpus.weight for direction in directions]),
        valid=Mixture(valid),
        valid_pairs=tuple(pairs),
        watched=Mixture(watched) if watched else None,
        directions=tuple(dict.fromkeys(direction.name for direction in directions)),
        num_skipped=dropped.total(),
    )


def _check_not_reversed(learned: Sequence[Direction], validated: Sequence[Direction]) -> None:
    """Refuse to validate on what is not learned but the other way round, as when one of two files is swapped."""
    names = {(one.source, one.target) for one in learned}
    for one in validated:
        if (one.source, one.target) not in names and (one.target, one.source) in names:
            raise ConfigError(
                f"{one.corpus.path} is to validate {one.name}, and what is learned is {one.target}-{one.source}: "
                f"turn one of them round (languages, swap), or learn both ways"
            )


def words_met(recipe: Recipe, prepared: Prepared, base: Bundle | None) -> KnownWords | None:
    """Of the pairs, or a million of a corpus from all over it, and of the model that is gone on from; None where that
    does not know its words.
    """
    before = base.known_words if base else KnownWords()
    if before is None:
        return None

    directions = directions_of(recipe.data.train)
    own = [(one, data) for one, data in zip(directions, prepared.train.datasets, strict=True) if not one.reverse]

    texts: dict[str, list[Iterator[str]]] = {}
    for one, dataset in own:
        texts.setdefault(one.source, []).append(text.source for text in _some_of(dataset))
        texts.setdefault(one.target, []).append(text.target for text in _some_of(dataset))
    contractions = {language: learn_contractions(itertools.chain(*some)) for language, some in texts.items()}

    names, lexicons = {one.name for one in directions}, dict[str, Lexicon]()
    for source, target in sorted({(min(one.source, one.target), max(one.source, one.target)) for one, _ in own}):
        both = [(data, one.source == target) for one, data in own if {one.source, one.target} == {source, target}]
        there, back = learn_lexicon(itertools.islice(_shuffled(both), MOST_LEXICON_PAIRS))
        found = {f"{source}-{target}": there, f"{target}-{source}": back}
        lexicons |= {name: lexicon for name, lexicon in found.items() if name in names}
    pairs = ((text.source, text.target) for _, dataset in own for text in _some_of(dataset))
    return before | replace(KnownWords.collect(pairs), lexicons=lexicons, contractions=contractions)


def _some_of(dataset: Dataset) -> Iterator[PairText]:
    return map(dataset.text, range(0, len(dataset), math.ceil(len(dataset) / MOST_KNOWN_PAIRS)))


def _shuffled(datasets: Sequence[tuple[Dataset, bool]]) -> Iterator[tuple[str, str]]:
    """Pairs from all over some datasets, turned round where it says so, in an order that is drawn, always the same."""
    starts = np.cumsum([0, *(len(dataset) for dataset, _ in datasets)])
    for index in np.random.default_rng(0).permutation(starts[-1]):
        place = int(np.searchsorted(starts, index, side="right")) - 1
        dataset, is_turned = datasets[place]
        text = dataset.text(int(index - starts[place]))
        yield (text.target, text.source) if is_turned else (text.source, text.target)


def _write_valid_pairs(folder: Path, datasets: Sequence[Dataset], directions: Sequence[Direction]) -> None:
    """Keep what was validated on: a model that goes on from this one watches it, to see what it forgets."""
    lines: dict[str, list[str]] = {}
    for dataset, direction in zip(datasets, directions, strict=True):
        texts = (dataset.text(index) for index in range(len(dataset)))
        lines.setdefault(direction.name, []).extend(f"{text.source}\t{text.target}\n" for text in texts)
    for name, its_lines in lines.items():
        with atomic_file(folder / f"valid.{name}.tsv") as file:
            file.write_text("".join(its_lines), encoding="utf-8")


def _hold_out(recipe: Recipe, folder: Path, say: Callable[[str], None]) -> NDArray[np.bool_] | None:
    """Which training pairs are kept for validation; None where a validation set is given."""
    if recipe.data.valid:
        return None
    path = folder / "held-out.npy"
    if path.exists():
        mask: NDArray[np.bool_] = np.load(path, allow_pickle=False)
        return mask
    say("holding out pairs to validate on")
    pairs = (pair for corpus in recipe.data.train for pair in usable(corpus))
    held_out = hold_out(pairs, recipe.data.valid_pairs, recipe.train.seed)
    if held_out.remark:
        say(held_out.remark)
    with atomic_file(path) as file, file.open("wb") as stream:
        np.save(stream, held_out.mask)
    return held_out.mask


def _learn_pieces(
    recipe: Recipe, folder: Path, held_out: NDArray[np.bool_] | None, tags: list[str], say: Callable[[str], None]
) -> Tokenizer:
    path = folder / "tokenizer.json"
    if path.exists():
        return Tokenizer.load(path)
    say("learning the pieces")
    tokenizer = Tokenizer.learn(_training_texts(recipe, held_out), recipe.tokenizer, tags)
    with atomic_file(path) as file:
        tokenizer.save(file)
    return tokenizer


def _training_texts(recipe: Recipe, held_out: NDArray[np.bool_] | None) -> Iterator[str]:
    for corpus, mask in zip(recipe.data.train, _masks_by_corpus(recipe, held_out), strict=True):
        for number, pair in enumerate(usable(corpus)):
            if mask is None or not mask[number]:
                yield pair.source
                yield pair.target


def _masks_by_corpus(recipe: Recipe, held_out: NDArray[np.bool_] | None) -> list[NDArray[np.bool_] | None]:
    """The mask runs over all corpora, one after the other; here it is cut where they begin."""
    if held_out is None or len(recipe.data.train) == 1:
        return [held_out] * len(recipe.data.train)
    masks: list[NDArray[np.bool_] | None] = []
    start = 0
    for corpus in recipe.data.train:
        count = sum(1 for _ in usable(corpus))
        masks.append(held_out[start : start + count])
        start += count
    return masks


def _chosen(direction: Direction, mask: NDArray[np.bool_] | None, wanted: bool, most: int | None) -> Iterator[Pair]:
    for number, pair in enumerate(usable(direction.corpus)):
        if most is not None and number >= most:
            return
        if mask is None or mask[number] == wanted:
            yield direction.turn(pair)
