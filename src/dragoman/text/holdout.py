"""A validation set out of the training data, such that no sentence of either side is on both sides of the split.

Pairs that share a sentence form a family; families are never cut. A sentence is compared as `fold` leaves it, and only
its 64-bit hash is kept, so ten million pairs take a few hundred megabytes.
"""

import hashlib
import unicodedata
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.text.corpus import Pair

_MOST = 10  # at most every tenth pair is held out: most of a small corpus must stay to be learned from
_SMALL = 50  # a family is small if it makes up at most this part of the validation set: 1/50


class _Folding(dict[int, int | None]):
    """A character's fate, looked up once: letters, marks and numbers stay, spaces become one, all else goes."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        stays = unicodedata.category(character)[0] in "LMN"
        self[code] = code if stays else ord(" ") if character.isspace() else None
        return self[code]


_FOLDING = _Folding()


@dataclass(frozen=True)
class HeldOut:
    """The pairs to validate on, by their place in the order they were read in (from 0), and how it went."""

    indices: NDArray[np.int64]
    num_pairs: int
    num_wanted: int
    num_families: int

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True for the pairs that are held out, False for those to train on."""
        mask = np.zeros(self.num_pairs, dtype=np.bool_)
        mask[self.indices] = True
        return mask

    @property
    def remark(self) -> str:
        """What a person should know about the split; empty where it is what was asked for."""
        count = len(self.indices)
        if abs(count - self.num_wanted) <= self.num_wanted / 10:
            return ""
        if count > self.num_wanted:
            why = "pairs that share sentences stay together, and no group of them is smaller"
        elif count >= self.num_pairs // _MOST - 1:
            why = f"no more than one pair in {_MOST} is taken from training"
        else:
            why = "pairs that share sentences stay together, and the next group is too large"
        return f"held out {count} of {self.num_pairs} pairs where {self.num_wanted} were wanted: {why}"


def fold(text: str) -> str:
    """The text without case, punctuation, symbols and surplus white space: what makes two sentences the same one."""
    folded = unicodedata.normalize("NFC", text).casefold().translate(_FOLDING)
    # Once more: what went may have stood between a letter and its accent, and casefolding takes some letters apart.
    return " ".join(unicodedata.normalize("NFC", folded).split())


def sentence_hash(text: str) -> int:
    """64 bits of the folded sentence, the same in every process. Spaces do not count: `e-mail`, `e mail` and `email`
    are one. A sentence of nothing but punctuation stands for itself.
    """
    folded = fold(text).replace(" ", "") or text
    return text_hash(folded)


def text_hash(text: str) -> int:
    """64 bits of the text as it is."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def hold_out(pairs: Iterable[Pair], count: int, seed: int) -> HeldOut:
    """Choose about `count` pairs whose sentences occur nowhere else; the same for the same pairs, count and seed."""
    hashes = _hashes(pairs)
    num_pairs = len(hashes) // 2
    if num_pairs < 2:
        raise DataError(f"{num_pairs} pairs are too few to hold some out for validation: give more, or a --valid set")
    families = families_of(hashes)
    lacking = families[np.flatnonzero(hashes == sentence_hash("")) % num_pairs]
    del hashes
    sizes = np.bincount(families, minlength=num_pairs)
    sizes[lacking] = num_pairs + 1  # too large to be chosen: pairs that lack a side are nothing to validate on
    chosen = _choose(families, sizes, min(count, max(1, num_pairs // _MOST)), seed)
    if not len(chosen):
        raise DataError(
            f"none of {num_pairs} pairs can be held out for validation, as most share sentences with one another: "
            f"give a validation set with --valid"
        )
    indices = np.flatnonzero(np.isin(families, chosen)).astype(np.int64)
    return HeldOut(indices, num_pairs, count, int(np.count_nonzero(sizes)))


def _hashes(pairs: Iterable[Pair]) -> NDArray[np.uint64]:
    sources, targets = array("Q"), array("Q")
    for pair in pairs:
        sources.append(sentence_hash(pair.source))
        targets.append(sentence_hash(pair.target))
    sources.extend(targets)
    return np.frombuffer(sources, dtype=np.uint64)


def families_of(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Each pair's family, named after its first pair. `hashes` holds all pairs' sources, then all their targets.

    Pairs with equal hashes are linked to the first one of them; then every family takes the least name that any link
    reaches, and names are followed to their end, until nothing changes.
    """
    num_pairs = len(hashes) // 2
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = ordered[1:] == ordered[:-1]
    del ordered
    left, right = order[:-1][same] % num_pairs, order[1:][same] % num_pairs
    del order, same
    family = np.arange(num_pairs)
    while True:
        low, high = np.minimum(family[left], family[right]), np.maximum(family[left], family[right])
        apart = low != high
        if not apart.any():
            return family
        np.minimum.at(family, high[apart], low[apart])
        while not np.array_equal(family, followed := family[family]):
            family = followed


def _choose(families: NDArray[np.int64], sizes: NDArray[np.int64], wanted: int, seed: int) -> NDArray[np.int64]:
    """Names of the families to hold out. They are met in the order of shuffled pairs, so sentences that have several
    translations are met as often as they are in the data; small ones first, as one large family makes a poor sample.
    """
    shuffled = families[np.random.default_rng(seed).permutation(len(families))]
    met = shuffled[np.sort(np.unique(shuffled, return_index=True)[1])]
    small = sizes[met] <= max(1, wanted // _SMALL)
    met = np.concatenate([met[small], met[~small][np.argsort(sizes[met[~small]], kind="stable")]])
    after = np.cumsum(sizes[met])
    num_chosen = int(np.searchsorted(after, wanted, side="right"))
    if num_chosen == 0 and sizes[met[0]] <= len(families) // 2:
        num_chosen = 1  # even the least family is larger than what is wanted: better too many than none
    return met[:num_chosen]
