"""Whole model folders, tiny and untrained, for the tests of everything that opens one.

The weights are random, but such that translations vary, end, and have clear winners: an untrained model as it is made
repeats one piece for ever, with all pieces about equally likely.
"""

import functools
import random
from pathlib import Path
from typing import Any

import torch

from dragoman.bundle import Bundle, state_to_weights
from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.recipe import SearchConfig, TokenizerConfig
from dragoman.text.known_words import KnownWords
from dragoman.text.tokenizer import Tokenizer

SYLLABLES = ("ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru")


def tiny_texts(count: int = 89, seed: int = 1) -> list[str]:
    """Sentences of a language that nobody speaks."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(53)]
    return [" ".join(draw.choices(words, k=draw.randint(1, 9))).capitalize() + "." for _ in range(count)]


@functools.cache
def tiny_tokenizer(languages: tuple[str, ...] = ()) -> Tokenizer:
    return Tokenizer.learn(tiny_texts(), TokenizerConfig(vocab_size=331 + len(languages)), languages)


def tiny_config(**changes: Any) -> ModelConfig:
    sizes = {"vocab_size": 331, "d_model": 22, "d_ff": 37, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 3}
    return ModelConfig(**{**sizes, "max_length": 67, **changes})


def tiny_model(config: ModelConfig, seed: int = 1) -> Transformer:
    """Random weights that make lively translations."""
    torch.manual_seed(seed)
    model = Transformer(config).eval()
    pieces = model.target_embedding.pieces.weight
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
            elif "pieces" not in name:
                parameter.mul_(2.0)
        last = model.decoder.norm if config.norm_order == "pre" else model.decoder.blocks[-1].feed_forward_residual.norm
        last.weight.mul_(4.0)
        for embedding in (model.source_embedding.pieces, model.target_embedding.pieces):
            embedding.weight[[config.padding_id, config.begin_id]] = 0.0
        source, target = torch.randint(3, config.vocab_size, (2, 29, 11))
        mean_D = model.hidden(source, target).mean((0, 1))
        pieces[config.end_id] += 7.0 * mean_D / mean_D.dot(mean_D)
    return model


def write_tiny_bundle(
    folder: Path,
    *,
    directions: tuple[str, ...] = ("fr-en",),
    languages: tuple[str, ...] = (),
    seed: int = 1,
    search: SearchConfig | None = None,
    known_words: KnownWords | None = None,
    scorecard: dict[str, Any] | None = None,
    **changes: Any,
) -> Bundle:
    """A bundle in `folder`; `languages` are those that its tokenizer has tags for, `changes` go to the model."""
    tokenizer = tiny_tokenizer(languages)
    config = tiny_config(vocab_size=tokenizer.vocab_size, **changes)
    return Bundle.write(
        folder,
        model_config=config,
        search=search or SearchConfig(extra_length=13),
        tokenizer=tokenizer,
        weights=state_to_weights(tiny_model(config, seed)),
        directions=directions,
        known_words=known_words,
        card="# Tiny\n",
        scorecard=scorecard or {},
    )
