"""Our pieces as a SentencePiece model, for programs that read nothing else.

SentencePiece's byte-pair encoding joins the two neighbours whose union ranks highest in the vocabulary, whichever way
that union was learned; ours joins the pairs that were learned, and never across the edge of a word, a digit or a
punctuation mark. On ordinary text that is the same; how often it is not, an export measures.
"""

import io
import json
import sys
import tempfile
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.errors import require
from dragoman.text.pipeline import BYTES, HIDDEN_MARK
from dragoman.text.tokenizer import Tokenizer

UNKNOWN = "<unk>"


def to_sentencepiece(tokenizer: Tokenizer) -> bytes:
    """A SentencePiece model that cuts text into our pieces; SentencePiece's own ids mean nothing."""
    require("google.protobuf", "marian", "writing a SentencePiece model")
    require("sentencepiece", "marian", "writing a SentencePiece model")
    from sentencepiece import sentencepiece_model_pb2

    schema: Any = sentencepiece_model_pb2
    kinds = schema.ModelProto.SentencePiece
    contents = json.loads(tokenizer.file)["model"]
    model = schema.ModelProto()
    model.pieces.add(piece=UNKNOWN, score=0.0, type=kinds.UNKNOWN)
    for piece in BYTES:
        model.pieces.add(piece=piece, score=0.0, type=kinds.BYTE)
    for piece, score in _scores(tokenizer, contents).items():
        model.pieces.add(piece=piece, score=score, type=kinds.NORMAL)
    trainer = model.trainer_spec
    trainer.model_type = schema.TrainerSpec.BPE if contents["type"] == "BPE" else schema.TrainerSpec.UNIGRAM
    trainer.vocab_size = len(model.pieces)
    trainer.byte_fallback = True
    trainer.unk_id, trainer.bos_id, trainer.eos_id, trainer.pad_id = 0, -1, -1, -1
    rules = model.normalizer_spec
    rules.name = "dragoman"
    rules.precompiled_charsmap = _character_map(tokenizer.lowercase)
    rules.add_dummy_prefix = rules.remove_extra_whitespaces = rules.escape_whitespaces = True
    data: bytes = model.SerializeToString()
    return data


def _scores(tokenizer: Tokenizer, contents: dict[str, Any]) -> dict[str, float]:
    """Each learned piece's rank: a unigram's own score, or that it was joined before others."""
    first = max(tokenizer.byte_ids) + 1
    if contents["type"] != "BPE":
        return {piece: float(score) for piece, score in contents["vocab"][first:]}
    learned = tokenizer.pieces(range(first, tokenizer.vocab_size))
    ranks: dict[str, int] = {}
    for rank, (left, right) in enumerate(tokenizer.merges):
        ranks.setdefault(left + right, rank)
    # Single characters are there before anything is joined, so their rank is never asked for.
    return {piece: -float(ranks.get(piece, len(ranks))) for piece in learned}


@cache
def _character_map(lowercase: bool) -> bytes:
    """Our normalisation in SentencePiece's compiled form, which only its trainer makes: so one is trained."""
    library = require("sentencepiece", "marian", "writing a SentencePiece model")
    from sentencepiece import sentencepiece_model_pb2

    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rules.tsv"
        table.write_text("".join(_rules(lowercase)), encoding="utf-8")
        library.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b"]),
            model_writer=model,
            model_type="char",
            vocab_size=6,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(table),
            minloglevel=2,
        )
    schema: Any = sentencepiece_model_pb2
    compiled = schema.ModelProto()
    compiled.ParseFromString(model.getvalue())
    data: bytes = compiled.normalizer_spec.precompiled_charsmap
    return data


def _rules(lowercase: bool) -> list[str]:
    """`characters <TAB> what they become`, as code points: white space, controls, NFC, and lower case if asked."""
    rules: dict[str, str] = {}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cs", "Cn", "Co"):
            continue
        if character in "\t\n\v\f\r\x85" or (character.isspace() and category != "Cc"):
            rules[character] = " "
        elif category == "Cc":
            rules[character] = ""
        else:
            _compose(character, lowercase, rules)
    rules[HIDDEN_MARK] = ""
    rules.pop(" ", None)
    rules.pop("\0", None)  # SentencePiece ends its own table's entries with it
    return [f"{_codes(before)}\t{_codes(after)}\n" for before, after in sorted(rules.items()) if before != after]


def _compose(character: str, lowercase: bool, rules: dict[str, str]) -> None:
    """The rules for what decomposes to `character`, and for itself."""
    normal = unicodedata.normalize("NFC", character.lower() if lowercase else character)
    if normal != character:
        rules[character] = normal
    spelled_out = unicodedata.normalize("NFD", character)
    if len(spelled_out) > 1:
        rules.setdefault(spelled_out, normal)
        shorter = unicodedata.normalize("NFC", spelled_out[:-1]) + spelled_out[-1]
        if unicodedata.normalize("NFC", shorter) == unicodedata.normalize("NFC", character):
            rules.setdefault(shorter, normal)


def _codes(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
