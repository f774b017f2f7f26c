"""What a translation is: the text, and what there is to know about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """A source word and a target word that belong together, and how strongly; words are counted from 0, as white
    space separates them.
    """

    source: int
    target: int
    weight: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to put it."""

    text: str
    score: float
    confidence: float


@dataclass(frozen=True, slots=True)
class SentenceTranslation:
    """One sentence's translation.

    `score` is its log-probability over the paper's length penalty. `confidence` is the geometric mean of the
    probabilities of its pieces, between 0 and 1: how sure the model was, piece by piece. `alignment` is there if it
    was asked for.
    """

    source: str
    target: str
    score: float
    confidence: float
    alignment: tuple[Link, ...] = ()
    warnings: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Translation:
    """A text's translation.

    `score` is the mean of its sentences' scores, `confidence` that of the sentence the model was least sure of: a text
    is no better than its worst sentence. A text without sentences has score 0 and confidence 1. `alternatives` are
    other versions of the whole text, best first; `warnings` those of all sentences.
    """

    text: str
    score: float
    confidence: float
    sentences: tuple[SentenceTranslation, ...] = ()
    warnings: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
