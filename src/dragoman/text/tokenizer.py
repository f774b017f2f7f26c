"""Text to ids and back: `Tokenizer`, learned with byte-pair encoding or a unigram model, kept in one tokenizer.json.

Decoding gives back exactly the normalised text, whatever its characters: what has no piece goes through its bytes.
Raw text never becomes a special id: "</s>" in a sentence is four characters like any others.
"""

import codecs
import hashlib
import json
from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import tokenizers

from dragoman.errors import BundleError, ConfigError
from dragoman.recipe import TokenizerConfig
from dragoman.settings import nearest
from dragoman.text import learning, pipeline
from dragoman.text.pipeline import BYTES, HIDDEN_MARK, MARK, SPECIALS

TOKENIZER = "tokenizer.json"
CACHED_WORDS = 1 << 14
"""Words whose ids are kept: a few megabytes, which a server reaches soon and stays at."""
LONGEST_CACHED = 32
"""Characters of the longest word whose ids are kept: longer ones seldom come again, and might fill the memory."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as ids, and for each the (start, end) of what it stands for in the text as it was given.

    The space before a word belongs to no span; the bytes of one character share its span.
    """

    ids: list[int]
    spans: list[tuple[int, int]]


class Tokenizer:
    """The pieces of a model. Nothing here changes after it is made, so threads may share one."""

    padding_id, begin_id, end_id = range(3)
    placeholder_ids = range(3, len(SPECIALS))

    def __init__(self, file: bytes, where: str = "the tokenizer") -> None:
        """`file` is what `save` writes; `where` names it in an error."""
        self._file = file
        try:
            self._rust = tokenizers.Tokenizer.from_str(file.decode())
        except Exception as error:  # the library raises bare exceptions
            raise BundleError(f"{where} is damaged: {error}: copy or train the model again") from error
        vocabulary = self._rust.get_vocab(with_added_tokens=False)
        self._ids: dict[str, int] = vocabulary
        self._pieces = sorted(vocabulary, key=vocabulary.__getitem__)
        self._check_layout(where)
        self.languages = pipeline.tagged_languages(self._pieces)
        self._normalizer = self._rust.normalizer
        self.lowercase: bool = self._normalizer.__getstate__() == pipeline.normalizer(lowercase=True).__getstate__()
        first_byte = vocabulary[BYTES[0]]
        self.special_ids = frozenset(range(first_byte))
        self.byte_ids = frozenset(range(first_byte, first_byte + len(BYTES)))
        self._bytes = [
            *(b"" for _ in self.special_ids),
            *(bytes([byte]) for byte in range(256)),
            *(piece.replace(MARK, " ").encode() for piece in self._pieces[first_byte + len(BYTES) :]),
        ]
        self._word_ids: dict[str, list[int]] = {}

    @classmethod
    def learn(
        cls, texts: Iterable[str], config: TokenizerConfig, languages: Sequence[str] = (), progress: bool = False
    ) -> "Tokenizer":
        """Learn pieces from the texts of both sides; `languages` are those that a model may be asked to write."""
        return cls(learning.learn(texts, config, languages, progress))

    @classmethod
    def load(cls, path: Path | str) -> "Tokenizer":
        """The tokenizer that `save` wrote."""
        try:
            file = Path(path).read_bytes()
        except OSError as error:
            raise BundleError(f"cannot read the tokenizer {path}: {error.strerror}") from error
        return cls(file, str(path))

    def save(self, path: Path | str) -> None:
        """One JSON file, which the plain `tokenizers` library opens too."""
        Path(path).write_bytes(self.file)

    def fingerprint(self) -> str:
        """A hash of the file: tokenizers with equal fingerprints do the same."""
        return hashlib.sha256(self.file).hexdigest()

    @property
    def file(self) -> bytes:
        """What `save` writes."""
        return self._file

    def files(self) -> dict[str, bytes]:
        """What a model folder holds of it, by file name."""
        return {TOKENIZER: self._file}

    @property
    def target_side(self) -> "Tokenizer":
        """The pieces of the target side; one tokenizer serves both, but models from elsewhere may have two."""
        return self

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The pairs that byte-pair encoding joins, first ones first."""
        model = json.loads(self._file)["model"]
        if model["type"] != "BPE":
            raise ConfigError("these pieces were not learned by merging: learn them with tokenizer.kind = 'bpe'")
        return [(left, right) for left, right in model["merges"]]

    def piece(self, id: int) -> str:
        return self._pieces[id]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._pieces[id] for id in ids]

    def __contains__(self, piece: str) -> bool:
        return piece in self._ids

    def id(self, piece: str) -> int:
        """The id of a piece that is in the vocabulary."""
        if piece not in self._ids:
            raise ConfigError(f"{piece!r} is not among the {self.vocab_size} pieces of this tokenizer")
        return self._ids[piece]

    def language_id(self, language: str) -> int:
        """The id that, at the head of a source, asks for a target in `language`."""
        if language not in self.languages:
            hint = nearest(language, self.languages) if self.languages else ": it has no language tags"
            raise ConfigError(f"this tokenizer does not know the target language {language!r}{hint}")
        return self._ids[pipeline.tag(language)]

    def normalize(self, text: str) -> str:
        """NFC, whitespace to single spaces, control characters out, lowercase if so learned: what decoding gives."""
        return pipeline.normalize(text, self._normalizer, self.lowercase)

    def encode(self, text: str) -> Encoded:
        """The ids of a text and where each came from. No begin, end or language id is added."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Iterable[str]) -> list[Encoded]:
        """`encode` of many texts, several threads at once."""
        texts = [pipeline.scrub(text) for text in texts]
        encodings = self._rust.encode_batch(texts, add_special_tokens=False)
        return [
            Encoded(encoding.ids, visible_spans(text, encoding.tokens, encoding.offsets))
            for text, encoding in zip(texts, encodings, strict=True)
        ]

    def ids_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """The ids of many texts, without their places: the fast path.

        No pre-token reaches across a space, so a text's ids are those of its words, and words repeat: looking them up
        is several times faster than encoding them again.
        """
        known = self._word_ids
        words = [normal.split(" ") if (normal := self.normalize(text)) else [] for text in texts]
        new = list(set[str]().union(*words).difference(known))
        long: dict[str, list[int]] = {}
        if new:
            encodings = self._rust.encode_batch_fast(new, add_special_tokens=False)
            for word, encoding in zip(new, encodings, strict=True):
                (known if len(word) <= LONGEST_CACHED else long)[word] = encoding.ids
            if len(known) > CACHED_WORDS:
                # A fresh dictionary: another thread may still be reading the old one.
                self._word_ids = {}
        both = ChainMap(long, known)
        lookups = [known if not long or long.keys().isdisjoint(text) else both for text in words]
        return [
            list(chain.from_iterable(map(ids_of.__getitem__, text)))
            for ids_of, text in zip(lookups, words, strict=True)
        ]

    def pre_tokens(self, word: str) -> list[str]:
        """The stretches of a normalised word that are split into pieces one by one, with the marks as pieces have."""
        cut = self._rust.pre_tokenizer.pre_tokenize_str(word.replace(MARK, HIDDEN_MARK))
        return [stretch for stretch, _ in cut]

    def decode(self, ids: Iterable[int], partial: bool = False) -> str:
        """The text of ids. Specials are skipped, bytes that are not UTF-8 become U+FFFD.

        A `partial` text holds back the bytes of a character that is not yet whole, so that it only ever grows.
        """
        data = b"".join(map(self._bytes.__getitem__, ids))
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not partial)
        return text.removeprefix(" ").replace(HIDDEN_MARK, MARK)

    def words(self, encoded: Encoded) -> list[list[int]]:
        """The places of pieces in `encoded`, grouped by the words that whitespace separates."""
        groups: list[list[int]] = []
        for place, id in enumerate(encoded.ids):
            if not groups or self._pieces[id].startswith(MARK):
                groups.append([])
            groups[-1].append(place)
        return groups

    def _check_layout(self, where: str) -> None:
        """Refuse a file of `tokenizers` that is not laid out as ours: ids and decoding would mean something else."""
        pieces, ids = self._pieces, self._ids
        without_tags = [*pieces[: len(SPECIALS)], *pieces[ids.get(BYTES[0], 0) :]]
        expected = [*SPECIALS, *BYTES]
        if without_tags[: len(expected)] != expected or ids[pieces[-1]] != len(pieces) - 1:
            raise BundleError(f"{where} is not a tokenizer of dragoman: its first pieces are {', '.join(pieces[:4])}")
        parts: dict[str, list[Any]] = {
            "normalizer": [pipeline.normalizer(lowercase) for lowercase in (False, True)],
            "pre_tokenizer": [pipeline.pre_tokenizer()],
            "decoder": [pipeline.decoder()],
        }
        for name, ours in parts.items():
            # Compared in the form that the installed library gives them, which may change from version to version.
            part = getattr(self._rust, name)
            if part is None or part.__getstate__() not in [known.__getstate__() for known in ours]:
                raise BundleError(f"{where} has a {name} that this version does not know: upgrade dragoman")


def visible_spans(text: str, pieces: Sequence[str], offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Each piece's (start, end) in `text`, from the offsets that the library gives.

    Those leave out characters that normalisation took into the one before (a combining accent, say) and count the
    space before a word as the word's. Here what lies between two pieces belongs to the first, spaces to neither.
    """
    spans: list[tuple[int, int]] = []
    limit = following = len(text)
    raw = None
    for piece, (start, end) in zip(reversed(pieces), reversed(offsets), strict=True):
        if piece == MARK:
            spans.append((following, following))
            limit = min(limit, start)
        elif (start, end) == raw:
            spans.append(spans[-1])
        else:
            raw = (start, end)
            while end < limit and not text[end].isspace():
                end += 1
            limit = start
            while start < end and text[start].isspace():
                start += 1
            following = start
            spans.append((start, end))
    return spans[::-1]
