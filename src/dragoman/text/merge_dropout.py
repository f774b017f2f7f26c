"""BPE-dropout (Provilkov, Emelianenko, Voita 2020) that can be repeated: the same seed gives the same pieces.

While a word's pieces are merged, every merge that is possible at a step is left out of that step with chance `rate`,
so that the model meets a word in many splittings. A word has `NUM_SPLITTINGS` of them, each a function of the seed, the
rate and the word alone; a sentence draws one for each of its words. Hence the cache may forget at any time without
changing a result, and drawing costs a look-up.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np

from dragoman.errors import ConfigError
from dragoman.text.pipeline import BYTES, HIDDEN_MARK
from dragoman.text.tokenizer import Tokenizer

NUM_SPLITTINGS = 16
CACHED_SPLITTINGS = 1 << 19

Merges = dict[tuple[int, int], tuple[int, int]]


def merge(ids: Sequence[int], merges: Merges, left_out: Callable[[], bool]) -> list[int]:
    """The pieces that `merges`, pair -> (rank, id of the merged piece), makes of single characters.

    At each step the possible merge of lowest rank, and of those the leftmost, that is not `left_out` is done; the word
    is finished when every possible merge was left out, or none is possible.
    """
    ids = list(ids)
    while True:
        possible = ((*merges[pair], place) for place, pair in enumerate(pairwise(ids)) if pair in merges)
        best = min(((rank, place, merged) for rank, merged, place in possible if not left_out()), default=None)
        if best is None:
            return ids
        _, place, merged = best
        ids[place : place + 2] = [merged]


class MergeDropout:
    """Draws splittings of texts. With rate 0 they are those of the tokenizer."""

    def __init__(self, tokenizer: Tokenizer, rate: float, seed: int) -> None:
        if not 0 <= rate < 1:
            raise ConfigError(f"tokenizer.dropout is {rate}, expected a share from 0 up to, not including, 1")
        merges = tokenizer.merges
        self._tokenizer = tokenizer
        self._rate = rate
        self._seed = seed
        self._characters = {
            piece: id for id, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size))) if len(piece) == 1
        }
        self._byte_ids = [tokenizer.id(byte) for byte in BYTES]
        self._merges: Merges = {}
        for rank, (left, right) in enumerate(merges):
            self._merges[tokenizer.id(left), tokenizer.id(right)] = rank, tokenizer.id(left + right)
        self._cache: dict[str, list[list[int] | None]] = {}
        self._num_cached = 0

    def ids(self, text: str, rng: np.random.Generator) -> list[int]:
        """The ids of a text, each word's splitting drawn with `rng`."""
        return self.ids_batch([text], rng)[0]

    def ids_batch(self, texts: Iterable[str], rng: np.random.Generator) -> list[list[int]]:
        """`ids` of each text, one after the other."""
        normalize = self._tokenizer.normalize
        words = [normal.split(" ") if (normal := normalize(text)) else [] for text in texts]
        drawn = rng.integers(NUM_SPLITTINGS, size=sum(map(len, words))).tolist()
        starts = accumulate(map(len, words), initial=0)
        return [
            list(chain.from_iterable(map(self._splitting, text, drawn[start : start + len(text)])))
            for text, start in zip(words, starts, strict=False)
        ]

    def _splitting(self, word: str, number: int) -> list[int]:
        splittings = self._cache.get(word)
        if splittings is None:
            if self._num_cached > CACHED_SPLITTINGS:
                self._cache = {}
                self._num_cached = 0
            splittings = self._cache[word] = [None] * NUM_SPLITTINGS
        ids = splittings[number]
        if ids is None:
            ids = splittings[number] = self._split(word, number)
            self._num_cached += 1
        return ids

    def _split(self, word: str, number: int) -> list[int]:
        # Python's own hash of a string differs from process to process.
        key = f"{self._seed}\n{self._rate}\n{number}\n{word}".encode(errors="surrogatepass")
        draw = random.Random(hashlib.blake2b(key, digest_size=16).digest()).random
        rate = self._rate
        return [
            id
            for stretch in self._tokenizer.pre_tokens(word)
            for id in merge(self._character_ids(stretch), self._merges, lambda: draw() < rate)
        ]

    def _character_ids(self, stretch: str) -> list[int]:
        ids: list[int] = []
        for character in stretch:
            id = None if character == HIDDEN_MARK else self._characters.get(character)
            ids.extend([id] if id is not None else [self._byte_ids[byte] for byte in character.encode()])
        return ids
