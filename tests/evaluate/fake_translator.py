"""A translator that looks its answers up, in the shape of `dragoman.translator`'s results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FakeLink:
    source: int
    target: int
    weight: float


@dataclass(frozen=True)
class FakeSentence:
    source: str
    target: str
    alignment: Sequence[FakeLink] = ()


@dataclass(frozen=True)
class FakeTranslation:
    text: str
    confidence: float = 0.5
    sentences: Sequence[FakeSentence] = ()
    warnings: Sequence[str] = ()


@dataclass
class FakeTranslator:
    answers: Mapping[str, FakeTranslation]
    calls: list[int] = field(default_factory=list)

    def translate(self, texts: list[str], /) -> list[FakeTranslation]:
        self.calls.append(len(texts))
        return [self.answers[text] for text in texts]
