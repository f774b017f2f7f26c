"""A sentence on its way: what goes to the engine, what came of it, and what is wrong with that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.engine.engine import Engine, Output
from dragoman.recipe import SearchConfig
from dragoman.text.suspect import Suspicion, suspicions
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.whole_words import has_form
from dragoman.translator.carry import NOTHING, Carried, missing_names, missing_numbers, missing_verbatims
from dragoman.translator.glossary import Term, is_used
from dragoman.translator.translation import Alternative

MISSING = frozenset(("verbatim", "number", "glossary"))
_SUSPICIONS: dict[Suspicion, str] = {
    "empty": "nothing was written",
    "loop": "the translation repeats itself",
    "copy": "the source was copied, not translated",
    "ratio": "the translation is far longer or shorter than the source",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a translation: `kind` is a suspicion, cut, verbatim, number, name or glossary. One without a
    message is worth another try, but no warning.
    """

    kind: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to translate: its text, its ids with tag and end, what must be in the translation, and what there is
    to say already. `written` is what was written where that is not what is translated; what was `shouted`, in capitals,
    is translated in small letters.
    """

    text: str
    ids: list[int]
    carried: Carried = NOTHING
    terms: tuple[Term, ...] = ()
    warnings: tuple[str, ...] = ()
    written: str = ""
    shouted: bool = False

    @property
    def source(self) -> str:
        return self.written or self.text


@dataclass(frozen=True, slots=True)
class Draft:
    """A translation of a sentence. `ids` is empty where the text was not written by the engine in one go."""

    text: str
    score: float
    confidence: float
    ids: tuple[int, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    def is_better_than(self, other: Draft) -> bool:
        """Fewer problems to warn of; a higher score alone is no reason to leave what the search found best."""
        return self.num_warnings < other.num_warnings

    @property
    def num_warnings(self) -> int:
        return sum(1 for problem in self.problems if problem.message)


class Scribe:
    """Text to ids and back: one target language, one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, target: str) -> None:
        self.tokenizer = tokenizer
        self.target = target
        # A model of several directions is told the target language at the head of the source.
        self.head = [tokenizer.language_id(target)] if tokenizer.languages else []

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Source ids as the model was trained on: the tag of the target language if there is one, the text, the end."""
        end = self.tokenizer.end_id
        return [[*self.head, *ids, end] for ids in self.tokenizer.ids_batch(texts)]

    def own_ids(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of the text alone."""
        return ids[len(self.head) : -1]

    def num_pieces(self, text: str) -> int:
        return len(self.tokenizer.ids_batch([text])[0])

    def decode(self, ids: Sequence[int]) -> str:
        text = self.tokenizer.target_side.decode(ids)
        # Pieces of single bytes can spell line ends and controls, which would break line for line output.
        return text if text.isprintable() else self.tokenizer.target_side.normalize(text)

    def draft(self, sentence: Sentence, outputs: Sequence[Output], check: bool) -> Draft:
        """The first output as a draft, the others as its alternatives."""
        best = outputs[0]
        text = self.decode(best.ids)
        return Draft(
            text=text,
            score=best.score,
            confidence=confidence(best),
            ids=best.ids,
            problems=find_problems(sentence, text, best) if check else (),
            alternatives=self._alternatives(sentence, outputs[1:], check),
        )

    def _alternatives(self, sentence: Sentence, outputs: Sequence[Output], check: bool) -> tuple[Alternative, ...]:
        """Others that lack nothing."""
        found = []
        for output in outputs:
            text = self.decode(output.ids)
            lacks = check and MISSING & {problem.kind for problem in find_problems(sentence, text)}
            if text and not lacks:
                found.append(Alternative(text, output.score, confidence(output)))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Desk:
    """What sentences are translated again with: `max_length` is the most pieces that the engine takes, `stand_ins` are
    names that the model copies.
    """

    scribe: Scribe
    engine: Engine
    search: SearchConfig
    max_length: int
    stand_ins: tuple[str, ...] = ()

    def target_ids(self, text: str) -> tuple[int, ...]:
        """The ids of a translation that the engine did not write as it is now; none if they are too many for it."""
        ids = tuple(self.scribe.tokenizer.target_side.ids_batch([text])[0])
        return ids if len(ids) < self.max_length else ()


def confidence(output: Output) -> float:
    """The geometric mean of the probabilities of a translation's pieces, its end among them."""
    return min(1.0, math.exp(output.mean_log_probability))


def find_problems(sentence: Sentence, target: str, output: Output | None = None) -> tuple[Problem, ...]:
    """What is wrong with a sentence's translation; `output` tells whether it came to its end."""
    problems = [Problem(kind, _SUSPICIONS[kind]) for kind in suspicions(sentence.text, target)]
    if output is not None and not output.finished:
        problems.append(Problem("cut", f"the translation was cut off after {len(output.ids)} pieces"))
    if sentence.carried:
        for one in missing_verbatims(sentence.carried, target):
            problems.append(Problem("verbatim", f"{one.text} is missing in the translation"))
        for number in missing_numbers(sentence.carried, target):
            problems.append(Problem("number", f"the number {number} is missing in the translation"))
        for name in missing_names(sentence.carried, target):
            is_sure = name.certain and not has_form(name.text, target)
            problems.append(Problem("name", f"{name.text} is missing in the translation" if is_sure else ""))
    for term in sentence.terms:
        if not is_used(term, target):
            message = f"{term.source!r} did not become {term.target!r}, as the glossary says"
            problems.append(Problem("glossary", message))
    return tuple(problems)
