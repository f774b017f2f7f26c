"""How well a model, or an output that exists already, translates a test set: `Evaluation`.

Nothing here loads a model: `evaluate_model` takes anything with `translate`, `evaluate_output` takes lines.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.errors import DataError
from dragoman.evaluate.evaluation import Evaluation, Line, Link, Part, Speed, System
from dragoman.evaluate.quality import bucket_scores, num_words, rates
from dragoman.evaluate.testset import TestSet
from dragoman.settings import option
from dragoman.text.metrics import METRICS, corpus_scores, sentence_chrf
from dragoman.text.suspect import suspicions

WINDOW_LINES = 1024
"""Lines that are handed to the translator at once: enough to form batches from, few enough to see progress."""


class LinkLike(Protocol):
    """A source word and a target word that belong together."""

    @property
    def source(self) -> int: ...
    @property
    def target(self) -> int: ...
    @property
    def weight(self) -> float: ...


class SentenceLike(Protocol):
    """A sentence of a translation, as `dragoman.translator` has it."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def alignment(self) -> Sequence[LinkLike]: ...


class TranslationLike(Protocol):
    """A translation, as `dragoman.translator` has it."""

    @property
    def text(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def sentences(self) -> Sequence[SentenceLike]: ...
    @property
    def warnings(self) -> Sequence[str]: ...


class Translates(Protocol):
    """Anything that translates lines, in order."""

    def translate(self, texts: list[str], /) -> Sequence[TranslationLike]: ...


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """How outputs are compared with references."""

    lowercase: bool = option(False, "ignore case in BLEU and chrF")
    tokenize: str = option("13a", "BLEU's tokens, one of sacreBLEU's tokenizers")


DEFAULTS = ScoreOptions()


def translate_lines(
    translator: Translates,
    sources: Sequence[str],
    progress: Callable[[int], None] = lambda done: None,
    window_lines: int = WINDOW_LINES,
) -> list[TranslationLike]:
    """Every line's translation, in order. `progress` hears how many lines are done."""
    translations: list[TranslationLike] = []
    for start in range(0, len(sources), window_lines):
        translations.extend(translator.translate(list(sources[start : start + window_lines])))
        progress(len(translations))
    if len(translations) != len(sources):
        raise DataError(f"{len(translations)} translations of {len(sources)} lines, expected as many")
    return translations


def evaluate_model(
    translator: Translates,
    test: TestSet,
    options: ScoreOptions = DEFAULTS,
    *,
    system: System,
    progress: Callable[[int], None] = lambda done: None,
    window_lines: int = WINDOW_LINES,
) -> Evaluation:
    """Translate the test set, timed, and score the output."""
    begin = time.perf_counter()
    translations = translate_lines(translator, test.sources, progress, window_lines)
    seconds = max(time.perf_counter() - begin, 1e-9)
    words = sum(num_words(translation.text) for translation in translations)
    speed = Speed(seconds, len(test) / seconds, words / seconds)
    return _evaluate([_draft(translation) for translation in translations], test, options, system, speed)


def add_alignments(evaluation: Evaluation, aligner: Translates, count: int) -> Evaluation:
    """The evaluation with the alignments of its `count` worst and best lines, by translating these again.

    Aligning every line would cost time that the speed then seems to lack, for lines that nobody looks at.
    """
    chosen = [*evaluation.worst(count), *evaluation.best(count)]
    translations = translate_lines(aligner, [line.source for line in chosen])
    parts = {
        line.number: _draft(translation).parts
        for line, translation in zip(chosen, translations, strict=True)
        if translation.text == line.hypothesis
    }
    lines = (dataclasses.replace(line, parts=parts.get(line.number, line.parts)) for line in evaluation.lines)
    return dataclasses.replace(evaluation, lines=tuple(lines))


def evaluate_output(
    hypotheses: Sequence[str], test: TestSet, options: ScoreOptions = DEFAULTS, *, system: System
) -> Evaluation:
    """Score an output that exists already, a line a sentence of the test set."""
    return _evaluate([_Draft(text, None, (), ()) for text in hypotheses], test, options, system, None)


@dataclass(frozen=True)
class _Draft:
    text: str
    confidence: float | None
    parts: tuple[Part, ...]
    warnings: tuple[str, ...]


def _draft(translation: TranslationLike) -> _Draft:
    parts = tuple(
        Part(
            sentence.source,
            sentence.target,
            tuple(Link(link.source, link.target, float(link.weight)) for link in sentence.alignment),
        )
        for sentence in translation.sentences
    )
    warnings = tuple(map(str, translation.warnings))
    return _Draft(translation.text, float(translation.confidence), parts, warnings)


def _evaluate(
    drafts: Sequence[_Draft], test: TestSet, options: ScoreOptions, system: System, speed: Speed | None
) -> Evaluation:
    hypotheses = [draft.text for draft in drafts]
    case, tokenize = options.lowercase, options.tokenize
    scores = corpus_scores(hypotheses, test.references, lowercase=case, tokenize=tokenize, metrics=METRICS)
    chrfs = sentence_chrf(hypotheses, test.references, lowercase=case)
    lines = [
        Line(
            number, source, references, draft.text, chrf, draft.confidence, draft.parts, draft.warnings,
            suspicions(source, draft.text),
        )
        for number, (source, references, draft, chrf) in enumerate(
            zip(test.sources, test.references, drafts, chrfs, strict=True), start=1
        )
    ]  # fmt: skip
    buckets = bucket_scores(test.sources, hypotheses, test.references, lowercase=case, tokenize=tokenize)
    return Evaluation(
        system=system,
        test_set=test.name,
        num_pairs=len(test),
        scores=tuple(scores),
        buckets=tuple(buckets),
        rates=tuple(rates(test.sources, hypotheses)),
        num_warned=sum(bool(draft.warnings) for draft in drafts),
        speed=speed,
        lines=tuple(lines),
    )
