"""Pieces of two SentencePiece models and a vocabulary that gives them ids: what Marian and OPUS-MT models come with.

    source.spm, target.spm    text to pieces, a model for each side
    vocab.json                piece to id; of the source side alone where there is a target_vocab.json
    tokenizer_config.json     which pieces are special, and the languages that a source may ask for: >>fr<<

A `SentencePieceTokenizer` does what `Tokenizer` does, for the source side; its `target_side` does it for the other. A
character that has no piece becomes the unknown piece, so decoding does not give back every text.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dragoman.errors import BundleError, ConfigError, require
from dragoman.settings import nearest
from dragoman.text.pipeline import MARK, scrub
from dragoman.text.tokenizer import TOKENIZER, Encoded, Tokenizer, visible_spans

SOURCE, TARGET, VOCABULARY, SETTINGS = "source.spm", "target.spm", "vocab.json", "tokenizer_config.json"
TARGET_VOCABULARY = "target_vocab.json"
FILES = (SOURCE, TARGET, VOCABULARY, SETTINGS)
SPECIAL_ROLES = ("pad_token", "begin_token", "eos_token", "unk_token")

Side = Literal["source", "target"]


def marian_tag(language: str) -> str:
    """The piece that, at the head of a source, asks for a target language: fr -> >>fr<<."""
    return f">>{language}<<"


def read_vocabulary(data: bytes, where: str) -> dict[str, int]:
    """Piece to id; the ids are 0, 1, 2 and so on, each once."""
    try:
        vocabulary = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is not JSON ({error}): copy the model again") from error
    if not isinstance(vocabulary, dict) or not all(type(id) is int for id in vocabulary.values()):
        raise BundleError(f"{where} does not give each piece a whole number, so it is not a vocabulary")
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise BundleError(f"{where} has {len(vocabulary)} pieces, whose ids are not 0 to {len(vocabulary) - 1}")
    return vocabulary


class SentencePieceTokenizer(Tokenizer):
    """One side's pieces. `files` are those of the module's docstring, by name; `where` names their folder in errors."""

    def __init__(self, files: Mapping[str, bytes], where: str = "the model", side: Side = "source") -> None:
        self._files = dict(files)
        self._where = where
        self._side = side
        for name in FILES:
            if name not in files:
                raise BundleError(f"{where} lacks {name}, which its pieces need: copy or import the model again")
        separate = TARGET_VOCABULARY in files
        name = TARGET_VOCABULARY if side == "target" and separate else VOCABULARY
        self._ids = read_vocabulary(files[name], f"{where}/{name}")
        self._pieces = sorted(self._ids, key=self._ids.__getitem__)
        settings = _read_settings(files[SETTINGS], f"{where}/{SETTINGS}")
        special = {role: self._special(settings.get(role), role) for role in SPECIAL_ROLES}
        self.padding_id, self.begin_id, self.end_id, self._unknown_id = (special[role] for role in SPECIAL_ROLES)
        # Only a source asks for a language.
        languages = settings.get("languages", []) if side == "source" else []
        tags = {language: self._special(marian_tag(language), "language") for language in languages}
        self.languages = tuple(tags)
        self.lowercase = False
        self.special_ids = frozenset((*special.values(), *tags.values()))
        self._processor = _open(files[SOURCE if side == "source" else TARGET], f"{where}/{side}.spm")
        # A special piece never comes from text, however that is spelled.
        self._known = {piece: id for piece, id in self._ids.items() if id not in self.special_ids}
        bytes_of = {piece: bytes([byte]) for byte, piece in self._byte_pieces()}
        self.byte_ids = frozenset(self._known[piece] for piece in bytes_of if piece in self._known)
        self._bytes = [
            b"" if id in self.special_ids else bytes_of.get(piece, piece.replace(MARK, " ").encode())
            for id, piece in enumerate(self._pieces)
        ]

    @cached_property
    def target_side(self) -> Tokenizer:
        if self._side == "target":
            return self
        return SentencePieceTokenizer(self._files, self._where, "target")

    @property
    def side(self) -> Side:
        return self._side

    @property
    def unknown_id(self) -> int:
        """What a character without a piece becomes."""
        return self._unknown_id

    def coverage(self) -> float:
        """The share of the SentencePiece model's own pieces that the vocabulary has."""
        pieces = [self._processor.id_to_piece(id) for id in range(self._processor.get_piece_size())]
        return sum(piece in self._ids for piece in pieces) / len(pieces)

    @property
    def file(self) -> bytes:
        """All files in one; `unpack` takes it apart."""
        packed = {name: base64.b64encode(data).decode() for name, data in sorted(self._files.items())}
        return json.dumps({"kind": "sentencepiece", "files": packed}).encode()

    def files(self) -> dict[str, bytes]:
        return dict(self._files)

    @property
    def merges(self) -> list[tuple[str, str]]:
        raise ConfigError("these pieces are SentencePiece's, which leave out no merges: set tokenizer.dropout to 0")

    def pre_tokens(self, word: str) -> list[str]:
        return [word]

    def language_id(self, language: str) -> int:
        if language not in self.languages:
            hint = nearest(language, self.languages) if self.languages else ": it has no language tags"
            raise ConfigError(f"this tokenizer does not know the target language {language!r}{hint}")
        return self._ids[marian_tag(language)]

    def normalize(self, text: str) -> str:
        """What the SentencePiece model makes of a text before it cuts it into pieces."""
        normal: str = self._processor.normalize(scrub(text))
        return normal.replace(MARK, " ").strip(" ")

    def encode_batch(self, texts: Iterable[str]) -> list[Encoded]:
        return [self._encode_one(scrub(text)) for text in texts]

    def ids_batch(self, texts: Iterable[str]) -> list[list[int]]:
        known, unknown = self._known, self._unknown_id
        pieces: list[list[str]] = self._processor.encode([scrub(text) for text in texts], out_type=str)
        return [[known.get(piece, unknown) for piece in some] for some in pieces]

    def decode(self, ids: Iterable[int], partial: bool = False) -> str:
        text = super().decode(ids, partial)
        return text.lstrip(" ") if partial else text.strip(" ")

    def _encode_one(self, text: str) -> Encoded:
        from sentencepiece import sentencepiece_pb2

        parsed: Any = sentencepiece_pb2.SentencePieceText()  # type: ignore[attr-defined]
        parsed.ParseFromString(self._processor.encode(text, out_type="serialized_proto"))
        pieces = [one.piece for one in parsed.pieces]
        # The model counts bytes, and we count characters.
        place = {0: 0}
        num_bytes = 0
        for number, character in enumerate(text, start=1):
            num_bytes += len(character.encode())
            place[num_bytes] = number
        offsets = [(place[one.begin], place[one.end]) for one in parsed.pieces]
        return Encoded([self._known.get(piece, self._unknown_id) for piece in pieces], _spans(text, pieces, offsets))

    def _special(self, piece: Any, role: str) -> int:
        if not isinstance(piece, str) or piece not in self._ids:
            raise BundleError(
                f"{self._where} has no piece {piece!r} on its {self._side} side, the {role} of its config"
            )
        return self._ids[piece]

    def _byte_pieces(self) -> list[tuple[int, str]]:
        pieces = [(byte, f"<0x{byte:02X}>") for byte in range(256)]
        processor = self._processor
        return [(byte, piece) for byte, piece in pieces if processor.is_byte(processor.piece_to_id(piece))]


def unpack(file: bytes) -> Tokenizer:
    """The tokenizer, of whichever kind, whose `file` this is."""
    packed = json.loads(file)
    if packed.get("kind") != "sentencepiece":
        return Tokenizer(file)
    return SentencePieceTokenizer({name: base64.b64decode(data) for name, data in packed["files"].items()})


def load_tokenizer(folder: Path | str) -> Tokenizer:
    """The tokenizer of a model folder: its tokenizer.json, or its SentencePiece models."""
    folder = Path(folder)
    if (folder / TOKENIZER).is_file() or not (folder / SOURCE).is_file():
        return Tokenizer.load(folder / TOKENIZER)
    names = [name for name in (*FILES, TARGET_VOCABULARY) if (folder / name).is_file()]
    try:
        return SentencePieceTokenizer({name: (folder / name).read_bytes() for name in names}, str(folder))
    except OSError as error:
        raise BundleError(f"cannot read the pieces of {folder}: {error.strerror}") from error


def _open(model: bytes, where: str) -> Any:
    library = require("sentencepiece", "marian", "a model with SentencePiece pieces")
    processor = library.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("[")[0].strip()
        raise BundleError(f"{where} is not a SentencePiece model ({reason}): copy the model again") from error
    return processor


def _read_settings(data: bytes, where: str) -> dict[str, Any]:
    try:
        settings = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is not JSON ({error}): copy the model again") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("languages", []), list):
        raise BundleError(f"{where} does not say which pieces are special: import the model again")
    return settings


def _spans(text: str, pieces: Sequence[str], offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A byte of a character has an offset of its own, all but one of them empty: they share the character's."""
    shared = list(offsets)
    for number in range(len(shared) - 2, -1, -1):
        if pieces[number].startswith("<0x") and shared[number][0] == shared[number][1]:
            shared[number] = shared[number + 1]
    return visible_spans(text, pieces, shared)
