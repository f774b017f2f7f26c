"""Which language a text is in, told from its words and letters.

Of each language, `frequent_words.tsv` has the commonest words, the commonest first. A word's probability in a language
L is a mixture of two guesses, of which the second also knows words that are not listed:

    p(word | L) = LISTED p(rank of word | L) + (1 - LISTED) Π p(letter | two letters before, L)

and words are taken to be independent. They are not, so the sum of their logarithms is made smaller (`TEMPERATURE`),
which keeps the confidence honest: a single short word is hardly evidence. Languages that nobody asks about have
profiles too: a text in one of them should be told with little confidence, not taken for its nearest relative.
"""

from __future__ import annotations

import functools
import html
import itertools
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

LISTED = 0.6
"""The share of a text's words that are in the lists."""
TEMPERATURE = 0.4
"""What the log-probability of a text is worth; at this one, of 100 texts told with 70 % about 70 are right."""
ASKED_ODDS = 20.0
"""How much likelier a language is before the text was seen, if the question is about it."""
LEAST_PROBABILITY = 1e-4
"""Of a letter that a language does not have."""
BACKING = 4.0
"""As many sightings as what fewer letters before say is worth."""
READ_CHARACTERS = 2000
READ_WORDS = 200

_WORD = re.compile(r"[^\W\d_]+'?")
# Scripts that do not separate words: each letter is one.
_ALONE = re.compile("([\u3040-\u30ff\u3400-\u9fff])")
_NO_LANGUAGE = re.compile(r"<[^<>]*>|\bhttps?://\S+|\S{1,64}@\S+|[@#]\w+")

Table = NDArray[np.float32]


@dataclass(frozen=True)
class Profiles:
    """Log-probabilities, a column a language: of the words in the lists, and of letters after others.

    `rows` has the row of one, two or three letters in `letters_RL`; row 0 is a letter that no language has.
    """

    languages: tuple[str, ...]
    words: dict[str, int]
    words_WL: Table
    rows: dict[str, int]
    letters_RL: Table


def detect(text: str, asked: Collection[str]) -> list[tuple[str, float]]:
    """The languages asked about, the likeliest first, with confidences between 0 and 1.

    Their sum is what is left for them after the other languages that are known here; 0 is no idea at all.
    """
    profiles = load_profiles()
    confidences = dict.fromkeys(sorted(asked), 0.0)  # sorted: what is told alike is told in the same order each time
    places = [profiles.languages.index(code) for code in confidences if code in profiles.languages]
    words = words_of(text)
    if not words or not places:
        return list(confidences.items())
    odds_L = np.zeros(len(profiles.languages))
    odds_L[places] = np.log(ASKED_ODDS)
    logits_L = odds_L + TEMPERATURE * score(profiles, words)
    shares_L = np.exp(logits_L - logits_L.max())
    shares_L /= shares_L.sum()
    confidences |= {profiles.languages[place]: float(shares_L[place]) for place in places}
    return sorted(confidences.items(), key=lambda one: -one[1])


def words_of(text: str) -> list[str]:
    """The words of a text's beginning, as they are looked up; tags, addresses and names of accounts are none."""
    text = _NO_LANGUAGE.sub(" ", html.unescape(text.lstrip()[:READ_CHARACTERS]))
    text = unicodedata.normalize("NFC", text).casefold().replace("’", "'")
    return _WORD.findall(_ALONE.sub(r"\1 ", text))[:READ_WORDS]


def score(profiles: Profiles, words: Sequence[str]) -> NDArray[np.float64]:
    """The log-probability of the words in each language."""
    listed = [place for word in words if (place := profiles.words.get(word)) is not None]
    letters = [row for word in words if word not in profiles.words for row in _letter_rows(profiles.rows, word)]
    total_L: NDArray[np.float64] = profiles.words_WL[listed].sum(axis=0, dtype=np.float64)
    total_L += profiles.letters_RL[letters].sum(axis=0, dtype=np.float64)
    return total_L


@functools.cache
def load_profiles() -> Profiles:
    """The profiles of all languages in the lists. A few dozen milliseconds, when a language is first asked for."""
    lists = resources.files("dragoman.text").joinpath("frequent_words.tsv").read_text(encoding="utf-8")
    ranked = {code: words.split() for code, words in (line.split("\t") for line in lists.splitlines())}
    return build_profiles({code: tuple(dict.fromkeys(words)) for code, words in ranked.items()})


def build_profiles(ranked: dict[str, tuple[str, ...]]) -> Profiles:
    """Profiles from each language's words, the commonest first."""
    rows, letters_RL = _letter_table(ranked)
    words: dict[str, int] = {}
    cells: list[tuple[int, int]] = []
    shares: list[NDArray[np.float64]] = []
    for column, listed in enumerate(ranked.values()):
        cells += [(words.setdefault(word, len(words)), column) for word in listed]
        share = 1.0 / (np.arange(len(listed)) + 3.0)  # Zipf's law, the commonest few not as common as it has them
        shares.append(share / share.sum())
    listed_WL = np.zeros((len(words), len(ranked)))
    listed_WL[tuple(np.array(cells).T)] = np.concatenate(shares)
    lengths = [len(word) + 1 for word in words]
    spelled = [row for word in words for row in _letter_rows(rows, word)]
    spelled_WL = np.add.reduceat(letters_RL[spelled], np.cumsum([0, *lengths[:-1]]), axis=0)
    with np.errstate(divide="ignore"):  # log 0 is right for a word that is not listed
        words_WL = np.logaddexp(np.log(LISTED * listed_WL), np.log(1 - LISTED) + spelled_WL)
    return Profiles(tuple(ranked), words, words_WL.astype(np.float32), rows, letters_RL)


def _letter_table(ranked: dict[str, tuple[str, ...]]) -> tuple[dict[str, int], Table]:
    """log p(letter | two before), where those were seen, else with one or none before; a row a sequence of letters."""
    threes: dict[str, int] = {}
    seen: list[int] = []
    for column, words in enumerate(ranked.values()):
        for word in words:
            padded = f"  {word} "
            for end in range(3, len(padded) + 1):
                seen.append(threes.setdefault(padded[end - 3 : end], len(threes)) * len(ranked) + column)
    counts = np.bincount(seen, minlength=len(threes) * len(ranked)).reshape(-1, len(ranked)).astype(np.float64)
    levels = [(threes, counts)]
    for _ in range(2):
        shorter: dict[str, int] = {}
        ends = [shorter.setdefault(letters[1:], len(shorter)) for letters in levels[0][0]]
        levels.insert(0, (shorter, _sum_rows(levels[0][1], ends, len(shorter))))
    singles = levels[0][1]
    tables = [np.maximum(singles / singles.sum(axis=0), LEAST_PROBABILITY)]
    for (shorter, _), (longer, counts) in itertools.pairwise(levels):
        heads: dict[str, int] = {}
        head = [heads.setdefault(letters[:-1], len(heads)) for letters in longer]
        backing = BACKING * tables[-1][[shorter[letters[1:]] for letters in longer]]
        tables.append((counts + backing) / (_sum_rows(counts, head, len(heads))[head] + BACKING))
    table = np.concatenate([np.full((1, len(ranked)), LEAST_PROBABILITY), *tables])
    names = [letters for level, _ in levels for letters in level]
    return {letters: row for row, letters in enumerate(names, start=1)}, np.log(table).astype(np.float32)


def _sum_rows(counts: NDArray[np.float64], groups: Sequence[int], num_groups: int) -> NDArray[np.float64]:
    """The sums of the rows of each group."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(np.asarray(groups)[order], np.arange(num_groups))
    sums: NDArray[np.float64] = np.add.reduceat(counts[order], starts, axis=0)
    return sums


def _letter_rows(rows: dict[str, int], word: str) -> list[int]:
    """The rows of a word's letters and of its end, each with as many letters before it as were ever seen."""
    padded = f"  {word} "
    return [
        rows.get(padded[end - 3 : end]) or rows.get(padded[end - 2 : end]) or rows.get(padded[end - 1], 0)
        for end in range(3, len(padded) + 1)
    ]
