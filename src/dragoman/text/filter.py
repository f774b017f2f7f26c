"""Which pairs are dropped, and why: the one definition that training drops by and the doctor counts by."""

from dataclasses import dataclass
from typing import Literal

from dragoman.config import ModelConfig
from dragoman.recipe import DataConfig

Reason = Literal["empty", "overlong", "ratio"]

SLACK_PIECES = 10  # short sentences differ by a few pieces for good reasons
_BYTES_A_PIECE = 4


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Keeps a pair whose sides both have pieces, not too many, and not too many more than the other side."""

    max_pieces: int = ModelConfig.max_length
    max_ratio: float = DataConfig.max_ratio

    def reason(self, source_pieces: int, target_pieces: int) -> Reason | None:
        """Why a pair with so many pieces a side, special ones not counted, is dropped; None where it is kept."""
        shorter, longer = sorted((source_pieces, target_pieces))
        if shorter == 0:
            return "empty"
        if longer > self.max_pieces:
            return "overlong"
        if longer > self.max_ratio * shorter + SLACK_PIECES:
            return "ratio"
        return None


def estimate_pieces(text: str) -> int:
    """About how many pieces a text will have before there is a tokenizer; 0 exactly where it is empty.

    Bytes are counted and not characters: a Chinese character has three bytes and makes most of a piece, a Latin letter
    has one and makes a quarter.
    """
    return -(-len(text.encode()) // _BYTES_A_PIECE)
