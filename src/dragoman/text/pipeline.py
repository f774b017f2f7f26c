"""What the Rust `tokenizers` library does to text, before and after the learned pieces: one place for all its parts.

    text -> normalizer -> pre_tokenizer -> byte pairs or unigrams -> ids
    ids -> decoder -> text

A space becomes the mark ▁, which stands at the head of every word. A ▁ in the text itself must not turn into a space
on the way back, so it travels as a noncharacter that no text may hold, and which always falls back to bytes.
"""

import json
import re
from collections.abc import Sequence
from unicodedata import is_normalized

import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from dragoman.errors import ConfigError

MARK = "▁"
HIDDEN_MARK = "\ufdd0"

PADDING, BEGIN, END = "<pad>", "<s>", "</s>"
PLACEHOLDERS = tuple(f"<ph{number}>" for number in range(8))
SPECIALS = (PADDING, BEGIN, END, *PLACEHOLDERS)
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))

_PUNCTUATION = r"[\p{P}\p{S}&&[^▁]]"
_LETTER = r"[^▁\p{N}\p{P}\p{S}]"
# Digits one by one, words, punctuation one by one; each with the mark of a space before it. An apostrophe between
# letters stays in its word: l'homme and don't would otherwise be three pieces at least.
_PRE_TOKEN = rf"▁?\p{{N}}|▁?{_LETTER}+(?:['’]{_LETTER}+)*|▁?{_PUNCTUATION}|▁"


def tag(language: str) -> str:
    """The piece that asks for a target language: fr -> <2fr>."""
    return f"<2{language}>"


def reserved(languages: Sequence[str]) -> list[str]:
    """The pieces before the learned ones, in the order of their ids: specials, a tag per target language, bytes."""
    for language in languages:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", language):
            raise ConfigError(f"{language!r} is not a language: write letters, digits, - and _ only, say fr or pt-BR")
    if len(set(languages)) < len(languages):
        raise ConfigError(f"languages {', '.join(languages)} name one twice: give each target language once")
    return [*SPECIALS, *map(tag, languages), *BYTES]


def tagged_languages(pieces: Sequence[str]) -> tuple[str, ...]:
    """The languages that `reserved` was given, read off the vocabulary."""
    end = pieces.index(BYTES[0])
    return tuple(piece.removeprefix("<2").removesuffix(">") for piece in pieces[len(SPECIALS) : end])


def assemble(model: tokenizers.models.Model, lowercase: bool) -> bytes:
    """The file of a tokenizer with these pieces; the same parts give the same bytes."""
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizer(lowercase)
    tokenizer.pre_tokenizer = pre_tokenizer()
    tokenizer.decoder = decoder()
    return (json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, indent=1) + "\n").encode()


def normalizer(lowercase: bool) -> normalizers.Normalizer:
    """Control characters out, lowercase if asked, NFC, every run of whitespace to one space, none at the ends."""
    # Lowercase before NFC: J with a caron has no composed form, j with a caron has.
    return normalizers.Sequence(
        [
            normalizers.Replace(Regex(rf"[\p{{Cc}}&&[^\s]]|{HIDDEN_MARK}"), ""),
            *([normalizers.Lowercase()] if lowercase else []),
            normalizers.NFC(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
            normalizers.Replace(MARK, HIDDEN_MARK),
        ]
    )


def normalize(text: str, by: normalizers.Normalizer, lowercase: bool) -> str:
    """What the `normalizer` makes of a text, with ▁ as ▁."""
    # Most text is normal already, and seeing so takes a tenth of the time of making it so.
    if (
        text.isprintable()
        and is_normalized("NFC", text)
        and "  " not in text
        and text == text.strip(" ")
        and not (lowercase and text != text.lower())
    ):
        return text
    normal: str = by.normalize_str(scrub(text))
    return normal.replace(HIDDEN_MARK, MARK)


def scrub(text: str) -> str:
    """`text` without halves of surrogate pairs, which Rust cannot hold; each becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text


def pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Cuts normalised text into the stretches that a piece may not reach across; a mark always begins one."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=False),
            pre_tokenizers.Split(Regex(_PRE_TOKEN), "isolated"),
        ]
    )


def decoder() -> decoders.Decoder:
    """The way back, for programs that open the file with `tokenizers` alone; `Tokenizer.decode` does the same."""
    return decoders.Sequence(
        [
            decoders.Replace(MARK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Replace(HIDDEN_MARK, MARK),
            decoders.Strip(" ", 1, 0),
        ]
    )
