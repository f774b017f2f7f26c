"""The words that a model has met in training, so that it is known which names are new to it, and what a word by itself
is translated as.

`KnownWords` is a Bloom filter of 16 bits a word, of those in three sentences or more: of others one in two thousand
or so passes for known, and no known word is taken for a new one. `stand_ins` are names that stand unchanged on both
sides of nearly all pairs: these a model copies. `lexicons` are those of its directions (`dragoman.text.lexicon`),
`contractions` those of its languages (`dragoman.text.contractions`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from dragoman.errors import DataError
from dragoman.text.contractions import Contractions, by_bare_word
from dragoman.text.lexicon import Lexicon

WORDS = "words.json"
T = TypeVar("T")

_WORD = re.compile(r"[^\W\d_]+")
_BITS_A_WORD, _HASHES = 16, 11
_ENOUGH = 3
_NUM_STAND_INS = 4
_OFTEN, _COPIED = 20, 0.9


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a sentence, and where it stands. At the head of a sentence, also of a quoted one, any word has a
    capital: one that stands there alone is not `certain` to be a name.
    """

    text: str
    start: int
    certain: bool = True

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class KnownWords:
    """What was met: `filters` are those of the trainings that a model went through, one after the other; `lexicons` are
    by the name of their direction, `contractions` by their language.
    """

    filters: tuple[bytes, ...] = ()
    stand_ins: tuple[str, ...] = ()
    lexicons: Mapping[str, Lexicon] = field(default_factory=dict)
    contractions: Mapping[str, Contractions] = field(default_factory=dict)

    @classmethod
    def collect(cls, pairs: Iterable[tuple[str, str]]) -> KnownWords:
        """The words of both sides of pairs, whatever their case, that are in several sentences."""
        words: Counter[str] = Counter()
        sides: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        copied: Counter[str] = Counter()
        for pair in pairs:
            found = [set(_WORD.findall(text)) for text in pair]
            names = [{word for word in side if len(word) > 2 and word.istitle()} for side in found]
            for side in found:
                words.update({word.casefold() for word in side})
            copied.update(names[0] & names[1])
            for counted, some in zip(sides, names, strict=True):
                counted.update(some)
        # A name is seldom in small letters, which `words` counts too, on both sides.
        trusted = [
            name
            for name, count in sorted(copied.items(), key=lambda item: (-item[1], item[0]))
            if count >= _OFTEN
            and count >= _COPIED * max(side[name] for side in sides)
            and 2 * count >= _COPIED * words[name.casefold()]
        ]
        met = [word for word, count in words.items() if count >= _ENOUGH]
        return cls((_make_filter(met),), tuple(trusted[:_NUM_STAND_INS]))

    def __contains__(self, word: str) -> bool:
        word = word.casefold()
        return any(all(bits[at // 8] >> at % 8 & 1 for at in _places(word, len(bits) * 8)) for bits in self.filters)

    def __or__(self, other: KnownWords) -> KnownWords:
        """Those of a model that was trained on more, or once more on the same."""
        filters, stand_ins = self.filters + other.filters, self.stand_ins + other.stand_ins
        return KnownWords(
            tuple(dict.fromkeys(filters)),
            tuple(dict.fromkeys(stand_ins)),
            _joined(self.lexicons, other.lexicons),
            _joined(self.contractions, other.contractions),
        )

    def unknown_names(self, sentence: str) -> tuple[Name, ...]:
        """Words with a capital that are not known; several in a row are one name. None where nothing can stand in."""
        if not self.stand_ins or not unicodedata.is_normalized("NFC", sentence):
            return ()
        names: list[Name] = []
        for match in _WORD.finditer(sentence):
            if len(match[0]) < 2 or not match[0][0].isupper() or match[0] in self:
                continue
            if names and sentence[names[-1].end : match.start()] == " ":
                start = names.pop().start
                names.append(Name(sentence[start : match.end()], start))
            else:
                names.append(Name(match[0], match.start(), _is_inside(sentence, match.start())))
        return tuple(names)

    def to_bytes(self) -> bytes:
        filters = [base64.b64encode(bits).decode("ascii") for bits in self.filters]
        contents = {
            "stand_ins": list(self.stand_ins),
            "filters": filters,
            "contractions": {language: " ".join(words.values()) for language, words in self.contractions.items()},
            "lexicons": self.lexicons,
        }
        return (json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> KnownWords:
        try:
            contents = json.loads(data)
            filters = tuple(base64.b64decode(one, validate=True) for one in contents["filters"])
            lexicons = {
                direction: {str(word): tuple(map(str, others)) for word, others in lexicon.items() if others}
                for direction, lexicon in contents.get("lexicons", {}).items()  # models before had none
            }
            contractions = {
                language: by_bare_word(words.split()) for language, words in contents.get("contractions", {}).items()
            }
            return cls(tuple(filter(None, filters)), tuple(map(str, contents["stand_ins"])), lexicons, contractions)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{WORDS} cannot be understood: {error}: copy or train the model again") from error


def _joined(one: Mapping[str, Mapping[str, T]], other: Mapping[str, Mapping[str, T]]) -> dict[str, Mapping[str, T]]:
    return {name: {**one.get(name, {}), **other.get(name, {})} for name in dict.fromkeys((*one, *other))}


def _is_inside(sentence: str, start: int) -> bool:
    """Whether words go before, with nothing between that might end or open a sentence."""
    before = sentence[:start]
    before = (before[:-1] if before[-1:] in tuple("'’-") else before).rstrip()
    return before[-1:].isalnum() or before.endswith(",")


def _make_filter(words: Collection[str]) -> bytes:
    bits = bytearray(1 + len(words) * _BITS_A_WORD // 8)
    for word in words:
        for at in _places(word, len(bits) * 8):
            bits[at // 8] |= 1 << at % 8
    return bytes(bits)


def _places(word: str, num_bits: int) -> Iterator[int]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
    return ((first + number * second) % num_bits for number in range(_HASHES))
