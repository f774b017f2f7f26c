"""A model small enough to test, its sizes distinct primes (d_model twice one), so that a swapped axis cannot hide."""

from typing import Any

import torch
from torch import Tensor

from dragoman.config import ModelConfig

BATCH, SOURCE, TARGET, VOCABULARY = 2, 11, 13, 31


def small_config(**changes: Any) -> ModelConfig:
    """Three heads of 5 and 7 channels in a width of 34; no dropout, so that training mode repeats itself."""
    shape = {
        "vocab_size": VOCABULARY,
        "d_model": 34,
        "d_ff": 19,
        "num_heads": 3,
        "d_k": 5,
        "d_v": 7,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "dropout": 0.0,
        "max_length": 23,
    }
    return ModelConfig(**{**shape, **changes})


def real_ids(batch: int, length: int) -> Tensor:
    """Ids of ordinary pieces: no padding, no begin, no end."""
    return torch.randint(3, VOCABULARY, (batch, length))


def source_and_target() -> tuple[Tensor, Tensor]:
    """Two sources, the second with four pieces of padding, and two targets."""
    source_BS = real_ids(BATCH, SOURCE)
    source_BS[1, 7:] = 0
    return source_BS, real_ids(BATCH, TARGET)
