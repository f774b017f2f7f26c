"""How a translator behaves where everyday users are: text without full stop, capitals, accents, apostrophes; single
words; numbers and names that nobody has seen.

A score on tidy sentences does not show it. A kind of trial asks for something whose answer is known, or changes text in
a way that should not change what is said. There `held` counts how often the translation was that of the tidy text, be
that right or wrong: whether it is right, the tidy sentences themselves are held against references for.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import ConfigError
from dragoman.text.dataset import PairText
from dragoman.text.variation import Change, other_apostrophes, without_accents, without_capitals, without_full_stop

SUITE = Path(__file__).with_name("behaviour.toml")
LEAST_AGREEMENT = 0.75
"""The share of words, whatever their order, that translations of the same thing must have in common."""
SHOWN_FAILURES = 3

Translate = Callable[[list[str]], list[str]]

_WORD = re.compile(r"\w+")
_INNER_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_ENDS = re.compile(r"[.!?…]$")


@dataclass(frozen=True)
class Trial:
    """A text, what came of it, and what it is held against: the translation of the tidy text, or what is expected."""

    text: str
    translation: str
    expected: str
    held: bool


@dataclass(frozen=True)
class Behaviour:
    """The trials of one kind."""

    kind: str
    trials: tuple[Trial, ...]

    @property
    def held(self) -> int:
        return sum(trial.held for trial in self.trials)

    def summary(self) -> dict[str, Any]:
        """As scorecard.json holds it, with a few of the failures."""
        failures = [trial for trial in self.trials if not trial.held][:SHOWN_FAILURES]
        shown = [{"text": one.text, "translation": one.translation, "expected": one.expected} for one in failures]
        return {"kind": self.kind, "tried": len(self.trials), "held": self.held, "failures": shown}


def run_suite(translate: Translate, source: str, target: str, sentences: Sequence[str] = ()) -> list[Behaviour]:
    """All kinds of trials for one direction; `sentences` stand in for those of the suite, which knows few languages."""
    suite = tomllib.loads(SUITE.read_text(encoding="utf-8"))
    own = suite.get(source, {})
    references = [] if sentences else suite.get(target, {}).get("sentences", [])
    sentences = list(sentences) or own.get("sentences", [])
    if not sentences:
        known = ", ".join(name for name, part in suite.items() if "sentences" in part)
        raise ConfigError(
            f"there are no sentences in {source} to try: the suite has {known}; give --test, whose sources will do"
        )
    translate = _once(translate)
    numbers, names = suite["fillings"]["numbers"], suite["fillings"]["names"]
    found = [_tidy(sentences, references, translate)] if references else []
    found += (_changed(kind, change, sentences, translate) for kind, change in CHANGES.items())
    found.append(_several(sentences, translate))
    found.append(_copied("unseen number", own.get("numbers", []), "{number}", numbers, translate))
    found.append(_copied("unseen name", own.get("names", []), "{name}", names, translate))
    found.append(_words(suite.get(f"{source}-{target}", {}).get("words", []), translate))
    return [behaviour for behaviour in found if behaviour.trials]


def agreement(one: str, other: str) -> float:
    """The share of two texts' words that they have in common (F1), case and punctuation apart; none without words."""
    words = [Counter(_WORD.findall(text.casefold())) for text in (one, other)]
    total = sum(map(Counter.total, words))
    return 2 * (words[0] & words[1]).total() / total if total else 0.0


def _once(translate: Translate) -> Translate:
    """Translates no text twice: each tidy sentence is held against several others."""
    known: dict[str, str] = {}

    def look_up(texts: list[str]) -> list[str]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, translate(new) if new else [], strict=True))
        return [known[text] for text in texts]

    return look_up


def _capitals(pair: PairText, rng: np.random.Generator) -> PairText:
    return PairText(pair.source.upper(), pair.target)


def _no_apostrophes(pair: PairText, rng: np.random.Generator) -> PairText | None:
    return PairText(_INNER_APOSTROPHE.sub("", pair.source), pair.target)


def _typographic_apostrophes(pair: PairText, rng: np.random.Generator) -> PairText | None:
    return other_apostrophes(PairText(pair.source.replace("’", "'"), pair.target), rng)


CHANGES: dict[str, Change] = {
    "missing full stop": without_full_stop,
    "all capitals": _capitals,
    "all small letters": without_capitals,
    "no accents": without_accents,
    "typographic apostrophes": _typographic_apostrophes,
    "no apostrophes": _no_apostrophes,
}


def _tidy(sentences: Sequence[str], references: Sequence[str], translate: Translate) -> Behaviour:
    """The translation says what the reference says, in mostly the same words."""
    return Behaviour(
        "tidy sentence",
        tuple(
            Trial(text, result, reference, agreement(reference, result) >= LEAST_AGREEMENT)
            for text, result, reference in zip(sentences, translate(list(sentences)), references, strict=True)
        ),
    )


def _changed(kind: str, change: Change, sentences: Sequence[str], translate: Translate) -> Behaviour:
    """The translation of the changed text says what that of the tidy text says."""
    rng = np.random.default_rng(1)
    pairs = [(text, changed.source) for text in sentences if (changed := change(PairText(text, text), rng))]
    pairs = [(text, changed) for text, changed in pairs if text != changed]
    results = translate([text for pair in pairs for text in pair])
    return Behaviour(
        kind,
        tuple(
            Trial(changed, after, before, agreement(before, after) >= LEAST_AGREEMENT)
            for (_, changed), before, after in zip(pairs, results[::2], results[1::2], strict=True)
        ),
    )


def _several(sentences: Sequence[str], translate: Translate) -> Behaviour:
    """Two sentences together are translated as they are one by one, white space apart."""
    sentences = [text for text in sentences if _ENDS.search(text)]  # others would become one
    pairs = list(zip(sentences[::2], sentences[1::2], strict=False))
    together = translate([" ".join(pair) for pair in pairs])
    alone = iter(translate([text for pair in pairs for text in pair]))
    expected = [f"{next(alone)} {next(alone)}" for _ in pairs]
    return Behaviour(
        "several sentences",
        tuple(
            Trial(" ".join(pair), result, wanted, "".join(result.split()) == "".join(wanted.split()))
            for pair, result, wanted in zip(pairs, together, expected, strict=True)
        ),
    )


def _stands_in(filling: str, result: str) -> bool:
    """As a whole word, whatever separates thousands in it; 21040 does not hold 2104, nor Arvida Arvid."""
    together = re.sub(r"(?<=\d)[\s,.](?=\d)", "", result)
    return re.search(rf"(?<!\w){re.escape(filling)}(?!\w)", together) is not None


def _copied(kind: str, templates: Sequence[str], gap: str, fillings: Sequence[str], translate: Translate) -> Behaviour:
    """What fills the gap stands in the translation, whole."""
    texts = [template.replace(gap, filling) for template, filling in zip(cycle(templates), fillings, strict=False)]
    return Behaviour(
        kind,
        tuple(
            Trial(text, result, filling, _stands_in(filling, result))
            for text, result, filling in zip(texts, translate(texts), fillings, strict=False)
        ),
    )


def _words(words: Sequence[Sequence[str]], translate: Translate) -> Behaviour:
    """One of the expected translations stands in the result, which has a word besides it at most (an article)."""
    results = translate([word for word, *_ in words])
    return Behaviour(
        "single word",
        tuple(
            Trial(word, result, " / ".join(expected), _is_one_of(result, expected))
            for (word, *expected), result in zip(words, results, strict=True)
        ),
    )


def _is_one_of(result: str, expected: Sequence[str]) -> bool:
    found = _WORD.findall(result.casefold())
    for one in expected:
        wanted = _WORD.findall(one.casefold())
        if len(found) <= len(wanted) + 1 and all(word in found for word in wanted):
            return True
    return False
