"""An engine that looks its answers up: text to text, with ids in between as any engine has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dragoman.engine.engine import NO_DEMAND, Attention, DecodeOptions, Demand, Done, Ids, Output, make_output
from dragoman.recipe import SearchConfig
from dragoman.text.known_words import KnownWords
from dragoman.text.tokenizer import Tokenizer
from dragoman.translator import Translator
from tiny_bundle import tiny_tokenizer

Answer = Callable[[str, DecodeOptions, Demand], Sequence[str]]
"""A source's translations, best first. One that ends in … is cut off there."""


@dataclass
class Call:
    sources: list[str]
    ids: list[Ids]
    options: DecodeOptions
    demands: list[Demand]


@dataclass
class FakeEngine:
    tokenizer: Tokenizer
    answer: Answer
    lacking: str = ""
    doubts: Mapping[str, float] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    attended: list[tuple[Ids, Ids]] = field(default_factory=list)
    name: str = "fake"
    compute_type: str = "float32"

    def lacks(self, options: DecodeOptions, demands: Sequence[Demand] | None = None) -> str:
        return self.lacking if any(demand.must for demand in demands or ()) else ""

    def submit(self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None) -> Done:
        return Done(self.translate_ids(sources, options, demands))

    def translate_ids(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Output]]:
        texts = [self.tokenizer.decode(source) for source in sources]
        wanted = list(demands or [NO_DEMAND] * len(sources))
        self.calls.append(Call(texts, list(sources), options, wanted))
        return [
            [self._output(answer, rank) for rank, answer in enumerate(self.answer(text, options, demand))]
            for text, demand in zip(texts, wanted, strict=True)
        ]

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Attention]:
        """Target piece t looks at source piece t, and where there is none, at the end."""
        attentions = []
        self.attended += zip(sources, targets, strict=True)
        for source, target in zip(sources, targets, strict=True):
            attention = np.zeros((len(target), len(source)), dtype=np.float32)
            attention[np.arange(len(target)), np.minimum(np.arange(len(target)), len(source) - 1)] = 1.0
            attentions.append(attention)
        return attentions

    def score_ids(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """As `doubts` has it, piece by piece and at the end."""
        doubts = [self.doubts.get(self.tokenizer.decode(target), 0.1) for target in targets]
        return [[-doubt] * (len(target) + 1) for doubt, target in zip(doubts, targets, strict=True)]

    def _output(self, text: str, rank: int) -> Output:
        ids = self.tokenizer.ids_batch([text.removesuffix("…")])[0]
        finished = not text.endswith("…")
        doubt = self.doubts.get(text, 0.1)
        return make_output(ids, -doubt * (rank + 1) * (len(ids) + finished), finished, 0.6)


def fake_translator(
    answer: Answer,
    *,
    lacking: str = "",
    languages: tuple[tuple[str, str], ...] = (("fr", "en"),),
    tags: tuple[str, ...] = (),
    max_length: int = 61,
    known_words: KnownWords | None = None,
    doubts: Mapping[str, float] | None = None,
    tokenizer: Tokenizer | None = None,
) -> tuple[Translator, FakeEngine]:
    """A translator on a fake engine, and the engine; `doubts` of answers are the opposite of its log-probability."""
    tokenizer = tokenizer or tiny_tokenizer(tags)
    engine = FakeEngine(tokenizer, answer, lacking, doubts or {})
    translator = Translator(
        tokenizer,
        engine,
        languages=languages,
        search=SearchConfig(),
        max_length=max_length,
        known_words=known_words,
    )
    return translator, engine
