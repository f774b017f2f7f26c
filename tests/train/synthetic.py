"""A small made-up language with a grammar of its own: adjectives move, a plural agrees, a question turns around."""

import itertools
import random
from pathlib import Path

NOUNS = {
    "taro": "cat",
    "miku": "dog",
    "sela": "tree",
    "nopi": "house",
    "ruda": "book",
    "keto": "apple",
    "loma": "child",
}
ADJECTIVES = {"ba": "red", "de": "big", "gi": "small", "vu": "old", "zo": "black"}
VERBS = {"peli": "sees", "fano": "loves", "huri": "finds", "wesa": "wants"}


def sentence(subject: str, first: str, verb: str, thing: str, second: str, asked: bool) -> tuple[str, str]:
    """Adjectives follow the noun there and stand before it here; a question ends in `ka` there."""
    source = f"{subject} {first} {thing} {second} {verb}{' ka ?' if asked else ' .'}"
    who, what = f"the {ADJECTIVES[first]} {NOUNS[subject]}", f"the {ADJECTIVES[second]} {NOUNS[thing]}"
    target = f"is it {who} that {VERBS[verb]} {what} ?" if asked else f"{who} {VERBS[verb]} {what} ."
    return source, target


def make_pairs(count: int, seed: int = 5) -> list[tuple[str, str]]:
    """Different sentences, in a random order."""
    everything = list(itertools.product(NOUNS, ADJECTIVES, VERBS, NOUNS, ADJECTIVES, (False, True)))
    return [sentence(*choice) for choice in random.Random(seed).sample(everything, count)]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path
