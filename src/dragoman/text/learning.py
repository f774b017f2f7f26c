"""Learning pieces from text: how many, of which characters, by byte-pair encoding or a unigram model, or whole words.

The same texts in the same order give the same file, byte for byte.
"""

import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import models, trainers

from dragoman.errors import ConfigError, DataError
from dragoman.recipe import TokenizerConfig
from dragoman.text import pipeline

LARGEST_VOCABULARY = 32_000
SAMPLED_TEXTS = 2_000_000
LONGEST_PIECE = 16
LEAST_LEARNED = 16


@dataclass(frozen=True)
class Sample:
    """Normalised texts, at most `SAMPLED_TEXTS` of them, and how many characters all texts have together."""

    texts: list[str]
    num_characters: int


def choose_vocab_size(num_characters: int, num_reserved: int) -> int:
    """reserved + 2.4 · √characters, in steps of 64, at most `LARGEST_VOCABULARY`.

    A piece is worth its embedding when it is seen often enough to be learned. Distinct words grow about as the square
    root of running text (Heaps' law), so with this rule each piece keeps being seen more often as the text grows:
    8 thousand pieces for ten million characters, and the largest vocabulary from 170 million on.
    """
    size = num_reserved + LEAST_LEARNED + 2.4 * math.sqrt(num_characters)
    return min(LARGEST_VOCABULARY, 64 * math.ceil(size / 64))


def choose_alphabet(counts: Counter[str], most: int) -> set[str]:
    """The characters that get pieces of their own; the rest are left to the bytes.

    Those seen twice in every four million characters, and at least twice; never more than `most`, the commonest first.
    """
    least = max(2, counts.total() // 2_000_000)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [character for character, count in ranked if count >= least and character != pipeline.MARK]
    return {*kept[:most], " "}


def learn(texts: Iterable[str], config: TokenizerConfig, languages: Sequence[str], progress: bool) -> bytes:
    """A tokenizer file learned from texts of both sides."""
    reserved = pipeline.reserved(languages)
    sample = draw_sample(texts, config.lowercase)
    if not any(sample.texts):
        raise DataError("there is no text to learn pieces from: every line is empty")
    size = config.vocab_size or choose_vocab_size(sample.num_characters, len(reserved))
    num_learned = size - len(reserved)
    if num_learned < LEAST_LEARNED:
        raise ConfigError(
            f"tokenizer.vocab_size is {size}, of which special pieces, languages and bytes take {len(reserved)}: "
            f"give at least {len(reserved) + LEAST_LEARNED}, or 0 to have it chosen"
        )
    counts: Counter[str] = Counter()
    for text in sample.texts:
        counts.update(text)
    alphabet = choose_alphabet(counts, num_learned // 2)
    trainable = _without(set(counts) - alphabet, sample.texts)
    if config.kind == "bpe":
        return pipeline.assemble(_byte_pairs(trainable, num_learned, reserved, progress), config.lowercase)
    if config.kind == "word":
        return pipeline.assemble(_words(trainable, num_learned, reserved, alphabet), config.lowercase)
    return pipeline.assemble(_unigrams(trainable, num_learned, reserved, progress), config.lowercase)


def draw_sample(texts: Iterable[str], lowercase: bool, most: int = SAMPLED_TEXTS) -> Sample:
    """All texts, or as many as memory should hold, each with the same chance; the draw is the same every time."""
    normalizer = pipeline.normalizer(lowercase)
    generator = random.Random(0)
    kept: list[str] = []
    num_characters = 0
    for number, text in enumerate(texts):
        num_characters += len(text)
        if number < most:
            kept.append(text)
        elif (place := generator.randrange(number + 1)) < most:
            kept[place] = text
    return Sample([pipeline.normalize(text, normalizer, lowercase) for text in kept], num_characters)


def _without(rare: set[str], texts: Sequence[str]) -> list[str]:
    """The texts cut at rare characters, so that none is learned and no piece forms across one."""
    if not rare:
        return list(texts)
    pattern = re.compile(f"[{re.escape(''.join(sorted(rare)))}]")
    return [pattern.sub(" ", text) for text in texts]


def _trained(model: models.Model, texts: Sequence[str], trainer: trainers.Trainer) -> dict[str, Any]:
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pipeline.pre_tokenizer()
    tokenizer.train_from_iterator(texts, trainer, length=len(texts))
    trained: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return trained


def _byte_pairs(texts: Sequence[str], num_learned: int, reserved: Sequence[str], progress: bool) -> models.Model:
    trainer = trainers.BpeTrainer(
        vocab_size=num_learned,
        min_frequency=2,
        max_token_length=LONGEST_PIECE,
        initial_alphabet=[pipeline.MARK],
        show_progress=progress,
    )
    trained = _trained(models.BPE(), texts, trainer)
    learned = sorted(trained["vocab"], key=trained["vocab"].__getitem__)
    pieces = [*reserved, *learned]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    assert len(vocabulary) == len(pieces), "a learned piece has the name of a reserved one"
    merges = [(left, right) for left, right in trained["merges"]]
    return models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True)


def _unigrams(texts: Sequence[str], num_learned: int, reserved: Sequence[str], progress: bool) -> models.Model:
    trainer = trainers.UnigramTrainer(
        vocab_size=num_learned,
        max_piece_length=LONGEST_PIECE,
        initial_alphabet=[pipeline.MARK],
        show_progress=progress,
    )
    trained = _trained(models.Unigram(), texts, trainer)
    # Threads add up the scores in any order, so the last digits differ from run to run: round them off.
    scores = {piece: round(score, 6) for piece, score in trained["vocab"] if piece not in reserved}
    learned = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    # Reserved pieces never meet text: a pre-token holds no more than one punctuation mark. Their score is unused.
    vocabulary = [*((piece, 0.0) for piece in reserved), *learned]
    return models.Unigram(vocab=vocabulary, unk_id=0, byte_fallback=True)


def _words(texts: Sequence[str], num_learned: int, reserved: Sequence[str], alphabet: set[str]) -> models.Model:
    """Words that are seen twice, the commonest first, and the alphabet, which spells all others.

    A unigram model in which any piece costs as much as any other, but a single character ten times that: the cheapest
    way to write a known word is the word.
    """
    counts = Counter(word for text in texts for word in text.split(" ") if word)
    stretches: Counter[str] = Counter()
    cutter = pipeline.pre_tokenizer()
    for word, count in counts.items():
        for stretch, _ in cutter.pre_tokenize_str(word):
            stretches[stretch] += count
    letters = sorted({pipeline.MARK, *alphabet} - {" "})
    ranked = sorted(stretches.items(), key=lambda item: (-item[1], item[0]))
    words = [word for word, count in ranked if count >= 2 and len(word) > 1][: num_learned - len(letters)]
    vocabulary = [*((piece, 0.0) for piece in reserved), *((word, -1.0) for word in words)]
    return models.Unigram([*vocabulary, *((letter, -10.0) for letter in letters)], unk_id=0, byte_fallback=True)
