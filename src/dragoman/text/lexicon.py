"""Which words stand for which: a small dictionary, learned from pairs of sentences.

By IBM's first model (Brown, Della Pietra, Della Pietra and Mercer 1993): each target word was written for one source
word of its sentence, or for none, and the chances t(e|f) that f is written as e are those that make the pairs
likeliest, found by a few rounds of expectation and maximisation. It is learned both ways; what both think of a pair of
words, t(e|f) t(f|e), is how well they go together.

Besides the project's letters: C cells, a source word and a target word that share a pair of sentences; K kinds of
cells, the pairs of words.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from dragoman.text.whole_words import ELIDED

Lexicon = Mapping[str, tuple[str, ...]]
"""Words in small letters, each with what it is translated as, the best first."""
Chances = dict[tuple[str, str], float]

_MOST_CELLS = 8_000_000
_LONGEST = 40
_ENOUGH = 3
_ROUNDS = 5
_LEAST_CHANCE = 0.02
_LEAST_FIT, _BESIDE = 0.04, 0.25
_NEARLY_ALWAYS = 0.8
_MOST_TRANSLATIONS = 4


def split_words(text: str) -> list[str]:
    """The words of a text; what is elided before another word, as in *l'eau* and *qu'il*, is one by itself."""
    return [word.replace("’", "'") for word in _word_pattern().findall(text)]


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    """Letters with the marks that belong to them, as in many scripts, and what apostrophes and hyphens join."""
    codes = [code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    starts = [code for code in codes if unicodedata.category(chr(code - 1))[0] != "M"]
    ends = [code for code in codes if code == sys.maxunicode or unicodedata.category(chr(code + 1))[0] != "M"]
    marks = "".join(f"\\U{start:08x}-\\U{end:08x}" for start, end in zip(starts, ends, strict=True))
    letters = rf"(?:[^\W\d_][{marks}]*)"
    return re.compile(rf"{ELIDED}(?={letters})|{letters}+(?:['’-]{letters}+)*", re.IGNORECASE)


def learn_lexicon(pairs: Iterable[tuple[str, str]]) -> tuple[Lexicon, Lexicon]:
    """The lexicons of both directions, from as many of the pairs as fit."""
    forms: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    sources: list[list[str]] = []
    targets: list[list[str]] = []
    room = _MOST_CELLS
    for pair in pairs:
        sides = [split_words(text) for text in pair]
        if not all(0 < len(side) <= _LONGEST for side in sides):
            continue
        room -= (1 + len(sides[0])) * (1 + len(sides[1]))
        if room < 0:
            break
        for counted, side in zip(forms, sides, strict=True):
            counted.update(side[1:])  # the first word has a capital whatever it is
        sources.append([word.lower() for word in sides[0]])
        targets.append([word.lower() for word in sides[1]])
    there, back = _chances(sources, targets), _chances(targets, sources)
    fits = {(f, e): chance * back[e, f] for (f, e), chance in there.items() if (e, f) in back}
    fits_back = {(e, f): fit for (f, e), fit in fits.items()}
    return _entries(fits, _followers(targets), forms[1]), _entries(fits_back, _followers(sources), forms[0])


def _chances(sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> Chances:
    """t(e|f) of the words that are in several sentences, where it is not next to nothing."""
    source_words, target_words = _frequent(sources), _frequent(targets)
    cells: list[list[np.ndarray]] = [[], [], []]
    num_written = 0
    for source, target in zip(sources, targets, strict=True):
        # Word 0 is none: what a target word without a counterpart was written for.
        read = [0, *(source_words[word] for word in source if word in source_words)]
        written = [target_words[word] for word in target if word in target_words]
        places = np.arange(num_written, num_written + len(written), dtype=np.int32)
        num_written += len(written)
        cells[0].append(np.tile(np.array(read, np.int64), len(written)))
        cells[1].append(np.repeat(np.array(written, np.int64), len(read)))
        cells[2].append(places.repeat(len(read)))
    if not num_written:
        return {}
    source_C, target_C, place_C = map(np.concatenate, cells)
    del cells
    size = 1 + len(target_words)
    kinds_K, kind_C = np.unique(source_C * size + target_C, return_inverse=True)
    source_K, target_K = kinds_K // size, kinds_K % size
    chance_K = np.ones(len(kinds_K))
    for _ in range(_ROUNDS):
        share_C = chance_K[kind_C]
        share_C /= np.bincount(place_C, share_C)[place_C]
        count_K = np.bincount(kind_C, share_C)
        chance_K = count_K / np.bincount(source_K, count_K)[source_K]
    names = [["", *words] for words in (source_words, target_words)]
    kept = np.flatnonzero((chance_K >= _LEAST_CHANCE) & (source_K > 0))
    return {(names[0][source_K[at]], names[1][target_K[at]]): float(chance_K[at]) for at in kept}


def _frequent(sentences: Sequence[Sequence[str]]) -> dict[str, int]:
    """Words that are in several sentences, numbered from 1."""
    counts = Counter(word for words in sentences for word in set(words))
    frequent = sorted(word for word, count in counts.items() if count >= _ENOUGH)
    return {word: number for number, word in enumerate(frequent, 1)}


def _followers(sentences: Sequence[Sequence[str]]) -> dict[str, str]:
    """Words that nearly always have the same word behind them, and that word."""
    counts, pairs = Counter[str](), Counter[tuple[str, str]]()
    for words in sentences:
        counts.update(words)
        pairs.update(pairwise(words))
    return {word: after for (word, after), count in pairs.items() if count >= _NEARLY_ALWAYS * counts[word]}


def _entries(fits: Mapping[tuple[str, str], float], followers: Mapping[str, str], forms: Counter[str]) -> Lexicon:
    """What fits each word well, and nearly as well as the best, as it is written inside of sentences."""
    usual: dict[str, str] = {}
    for form, _ in sorted(forms.items(), key=lambda item: (item[1], item[0])):
        usual[form.lower()] = form
    by_word: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for (word, other), fit in fits.items():
        by_word[word].append((-fit, other))
    entries: dict[str, tuple[str, ...]] = {}
    for word, found in sorted(by_word.items()):
        if len(word) == 1 and word.upper() != word:  # a letter may stand for anything
            continue
        least = max(_LEAST_FIT, -min(found)[0] * _BESIDE)
        good = [other for fit, other in sorted(found)[:_MOST_TRANSLATIONS] if -fit >= least]
        if translations := _with_followers(good, followers):
            entries[word] = tuple("".join(usual.get(one, one) for one in translation) for translation in translations)
    return entries


def _with_followers(good: Sequence[str], followers: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Translations in their parts: with the word behind them that belongs to them, as in *aujourd'hui* and *quelque
    chose*. Those that want another word, as *thank* does, come after those that stand alone.
    """
    alone: list[tuple[str, ...]] = []
    wanting: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for word in good:
        after = followers.get(word, "")
        if word.endswith("'") and after:
            alone.append((word, after))
            taken.add(after)
        elif after in good:
            alone.append((word, " ", after))
            taken.add(after)
        elif not word.endswith(("'", "'s")):
            (wanting if after else alone).append((word,))
    return [one for one in (*alone, *wanting) if len(one) > 1 or one[0] not in taken]
