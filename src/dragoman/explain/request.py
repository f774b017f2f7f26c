"""What may be asked of an explainer. No torch here: what cannot be is refused before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.errors import ConfigError
from dragoman.settings import at_least, fill

MOST_PENALTY = 10.0
"""Up or down: far beyond what anybody searches with, and a score under it is still a number."""
_HEAD = re.compile(r"(encoder|decoder)\.(\d{1,3})\.(self_attention|cross_attention)\.(\d{1,3})", re.ASCII)
_SHOWN_CHARACTERS = 60
_KINDS = {
    ("encoder", "self_attention"): "encoder_self",
    ("decoder", "self_attention"): "decoder_self",
    ("decoder", "cross_attention"): "cross",
}


@dataclass(frozen=True, kw_only=True)
class TraceRequest:
    """What to explain.

    source, target     languages; the model's first direction that fits if they are not given
    sentence           which sentence of the text, counted from 0
    beam, length_penalty    of the search; the model's own if not given
    prefix             ids that the translation must begin with
    target_ids         the translation itself, its end included if it ends: nothing is searched then, and beam,
                       length_penalty and prefix only say how it was found
    off                heads that are switched off, as `encoder.0.self_attention.3` names them
    top                candidates to give for each piece
    """

    text: str
    source: str | None = None
    target: str | None = None
    sentence: int = 0
    beam: int | None = None
    length_penalty: float | None = None
    prefix: tuple[int, ...] = ()
    target_ids: tuple[int, ...] | None = None
    off: tuple[str, ...] = ()
    top: int = 10

    def __post_init__(self) -> None:
        at_least(0, "sentence", self.sentence)
        at_least(1, "top", self.top)
        if self.beam is not None:
            at_least(1, "beam", self.beam)
        if self.length_penalty is not None and not abs(self.length_penalty) <= MOST_PENALTY:  # nor is nan
            raise ConfigError(
                f"length_penalty is {self.length_penalty}, expected a number from {-MOST_PENALTY:g} to {MOST_PENALTY:g}"
            )
        if self.target_ids is not None and not self.target_ids:
            raise ConfigError("target_ids is empty, expected at least the end piece")
        for name in self.off:
            parse_head(name)


@dataclass(frozen=True)
class HeadName:
    """One head of one attention."""

    part: str
    layer: int
    attention: str
    head: int

    @property
    def attention_name(self) -> str:
        """As the record of a pass has it: `encoder.0.self_attention`."""
        return f"{self.part}.{self.layer}.{self.attention}"

    @property
    def kind(self) -> str:
        return _KINDS[self.part, self.attention]

    def __str__(self) -> str:
        return f"{self.attention_name}.{self.head}"


def parse_head(name: str) -> HeadName:
    """`encoder.0.self_attention.3` -> the head."""
    match = _HEAD.fullmatch(name)
    if match is None or (match[1], match[3]) not in _KINDS:
        raise ConfigError(
            f"{name[:_SHOWN_CHARACTERS]!r} does not name a head, expected part.layer.attention.head, "
            f"say encoder.0.self_attention.3 or decoder.1.cross_attention.0"
        )
    return HeadName(match[1], int(match[2]), match[3], int(match[4]))


def parse_request(values: Any) -> TraceRequest:
    """A request from JSON; unknown keys and wrong types are refused."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"the request is a {type(values).__name__}, expected an object with a text")
    if "text" not in values:
        raise ConfigError("the request has no text, expected the text to explain")
    return fill(TraceRequest, values)
