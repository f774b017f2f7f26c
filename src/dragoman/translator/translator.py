"""`Translator`: text in, `Translation` out.

    split -> normalise -> ids -> engine -> text -> checks, and repairs -> put together as it was

Nothing is kept between calls, so threads may share a translator.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack, overload

from dragoman.bundle import Bundle, find
from dragoman.engine.auto import EngineName, open_engine
from dragoman.engine.convert import ComputeType
from dragoman.engine.engine import DecodeOptions, Engine, Pending
from dragoman.engine.ensemble import open_ensemble
from dragoman.errors import ConfigError
from dragoman.recipe import CorpusConfig, SearchConfig
from dragoman.text.corpus import corpus_of
from dragoman.text.known_words import KnownWords
from dragoman.text.languages import matching_direction
from dragoman.text.lexicon import Lexicon
from dragoman.text.sentences import Segment, rebuild
from dragoman.text.tokenizer import Tokenizer
from dragoman.translator.alignment import link_words
from dragoman.translator.drafts import Desk, Draft, Scribe, Sentence
from dragoman.translator.elisions import elide
from dragoman.translator.memory import read_memory
from dragoman.translator.options import Settings, TranslateOptions
from dragoman.translator.prepare import Prepared, prepare
from dragoman.translator.readings import read_again
from dragoman.translator.repair import repair
from dragoman.translator.single_words import look_up
from dragoman.translator.translation import Alternative, Link, SentenceTranslation, Translation

WINDOW_TEXTS = 512
"""Texts of a stream that are handed to the engine at once; two such windows are under way."""


def load(
    path_or_name: Path | str,
    *,
    engine: EngineName = "auto",
    compute_type: ComputeType = "int8",
    workers: int = 0,
    ensemble: Sequence[Path | str] = (),
    memory: CorpusConfig | Path | str | None = None,
) -> Translator:
    """The translator of a model folder, or of a model in the box by name.

    `engine` is "ctranslate2", "torch", or "auto": the first, and the second for what it lacks. `workers` 0 is one a
    core. Models of an `ensemble`, which have the same pieces, have a say in which of a beam's translations is best,
    and with "torch" in what is written at every step. So do the pairs of a `memory`, for which "auto" is "torch" where
    that is installed.
    """
    bundle = Bundle.open(find(path_or_name))
    others = [Bundle.open(find(other)) for other in ensemble]
    examples = None
    if memory:
        corpus = memory if isinstance(memory, CorpusConfig) else corpus_of(str(memory))
        examples = read_memory(corpus, bundle.tokenizer, bundle.languages, bundle.model_config.max_length)
    if others or memory:
        opened: Engine = open_ensemble(bundle, others, engine, compute_type, workers, examples)
    else:
        opened = open_engine(bundle, engine, compute_type, workers)
    return Translator(
        bundle.tokenizer,
        opened,
        languages=bundle.languages,
        search=bundle.search,
        max_length=bundle.model_config.max_length,
        known_words=bundle.known_words,
    )


@dataclass(frozen=True)
class _Window:
    """Texts on their way through the engine; `asked` are the sentences that it was given."""

    settings: Settings
    scribe: Scribe
    search: SearchConfig
    prepared: Prepared
    asked: Sequence[int]
    pending: Pending
    lexicon: Lexicon


class Translator:
    """Translates text with one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        engine: Engine,
        *,
        languages: Sequence[tuple[str, str]],
        search: SearchConfig,
        max_length: int,
        known_words: KnownWords | None = None,
    ) -> None:
        """`languages` are the (source, target) that the model can do, `max_length` the most pieces of a sentence."""
        self.languages = tuple(languages)
        self._tokenizer = tokenizer
        self._engine = engine
        self._search = search
        self._max_length = max_length
        self._known_words = known_words or KnownWords()

    @property
    def engine_name(self) -> str:
        return self._engine.name

    @property
    def compute_type(self) -> str:
        return self._engine.compute_type

    @overload
    def translate(self, text: str, **options: Unpack[TranslateOptions]) -> Translation: ...
    @overload
    def translate(
        self, text: list[str] | tuple[str, ...], **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...
    def translate(
        self, text: str | list[str] | tuple[str, ...], **options: Unpack[TranslateOptions]
    ) -> Translation | list[Translation]:
        """Translate a text, or several at once, which is faster than one by one. `Settings` explains the options."""
        settings = Settings(**options)
        if isinstance(text, str):
            return self._finish(self._begin([text], settings))[0]
        return self._finish(self._begin(text, settings))

    def stream(
        self, texts: Iterable[str], *, window_texts: int = WINDOW_TEXTS, **options: Unpack[TranslateOptions]
    ) -> Iterator[Translation]:
        """The translations of texts without end, in order; memory stays flat.

        Texts are taken in windows, the next one is prepared while the engine works on the last. With windows of one, a
        text is translated before the next is taken, as whoever types it waits for that.
        """
        settings = Settings(**options)
        under_way: deque[_Window] = deque()
        remaining = iter(texts)
        while window := list(itertools.islice(remaining, window_texts)):
            under_way.append(self._begin(window, settings))
            if len(under_way) == min(2, window_texts):
                yield from self._finish(under_way.popleft())
        while under_way:
            yield from self._finish(under_way.popleft())

    def direction(self, source: str | None, target: str | None) -> tuple[str, str]:
        """The first direction of the model that fits."""
        if found := matching_direction(self.languages, source, target):
            return found
        known = ", ".join("-".join(one) for one in self.languages)
        wanted = " ".join(
            f"{word} {language}" for word, language in (("from", source), ("to", target)) if language is not None
        )
        raise ConfigError(f"this model does not translate {wanted}: it knows {known}")

    def _begin(self, texts: Sequence[str], settings: Settings) -> _Window:
        source, target = self.direction(settings.source, settings.target)
        scribe = Scribe(self._tokenizer, target)
        prepared = prepare(texts, scribe, source, self._max_length, settings, self._known_words)
        num_best = settings.alternatives + 1
        search = replace(
            self._search,
            beam=max(settings.beam or self._search.beam, num_best),
            length_penalty=self._search.length_penalty if settings.length_penalty is None else settings.length_penalty,
        )
        decode = DecodeOptions(search=search, num_best=num_best, sampling=settings.sampling)
        asked = [place for place, sentence in enumerate(prepared.sentences) if sentence.ids]
        pending = self._engine.submit([prepared.sentences[place].ids for place in asked], decode)
        lexicon = self._known_words.lexicons.get(f"{source}-{target}", {})
        return _Window(settings, scribe, search, prepared, asked, pending, lexicon)

    def _finish(self, window: _Window) -> list[Translation]:
        sentences, settings, scribe = window.prepared.sentences, window.settings, window.scribe
        asked = [sentences[place] for place in window.asked]
        outputs = window.pending.results()
        drafts = [
            scribe.draft(sentence, found, settings.checks) for sentence, found in zip(asked, outputs, strict=True)
        ]
        if settings.checks:
            desk = Desk(scribe, self._engine, window.search, self._max_length, self._known_words.stand_ins)
            if settings.sampling is None:
                drafts = read_again(asked, drafts, desk, settings.alternatives + 1)
                drafts = repair(asked, look_up(asked, drafts, desk, window.lexicon), desk)
            drafts = [elide(sentence, draft, desk) for sentence, draft in zip(asked, drafts, strict=True)]
        alignments = self._align(asked, drafts, scribe) if settings.align else [()] * len(asked)
        results = [SentenceTranslation(sentence.text, sentence.text, 0.0, 1.0) for sentence in sentences]
        for place, sentence, draft, links in zip(window.asked, asked, drafts, alignments, strict=True):
            results[place] = _result(sentence, draft, links)
        return [
            assemble(segments, [results[place] for place in places])
            for segments, places in zip(window.prepared.segments, window.prepared.places, strict=True)
        ]

    def _align(self, sentences: Sequence[Sentence], drafts: Sequence[Draft], scribe: Scribe) -> list[tuple[Link, ...]]:
        links: list[tuple[Link, ...]] = [()] * len(sentences)
        written = [place for place, draft in enumerate(drafts) if draft.ids]
        attentions = self._engine.attend(
            [sentences[place].ids for place in written], [drafts[place].ids for place in written]
        )
        for place, attention_TS in zip(written, attentions, strict=True):
            sentence, draft = sentences[place], drafts[place]
            links[place] = link_words(
                scribe.tokenizer, sentence.text, scribe.own_ids(sentence.ids), draft.text, draft.ids, attention_TS
            )
        return links


def assemble(segments: Sequence[Segment], sentences: Sequence[SentenceTranslation]) -> Translation:
    """A text from its skeleton and its sentences."""
    if not sentences:
        return Translation("".join(segment.text for segment in segments), 0.0, 1.0)
    text = rebuild(segments, [sentence.target for sentence in sentences])
    versions: dict[str, None] = {}
    for rank in range(max(len(sentence.alternatives) for sentence in sentences)):
        others = [
            sentence.alternatives[rank].text if rank < len(sentence.alternatives) else sentence.target
            for sentence in sentences
        ]
        versions[rebuild(segments, others)] = None
    versions.pop(text, None)
    return Translation(
        text=text,
        score=sum(sentence.score for sentence in sentences) / len(sentences),
        confidence=min(sentence.confidence for sentence in sentences),
        sentences=tuple(sentences),
        warnings=tuple(dict.fromkeys(warning for sentence in sentences for warning in sentence.warnings)),
        alternatives=tuple(versions),
    )


def _result(sentence: Sentence, draft: Draft, links: tuple[Link, ...]) -> SentenceTranslation:
    text, alternatives = draft.text, draft.alternatives
    if sentence.shouted:
        text, alternatives = text.upper(), tuple(replace(one, text=one.text.upper()) for one in alternatives)
    # Different pieces may spell the same text, and so may what was mended.
    others: dict[str, Alternative] = {}
    for one in alternatives:
        others.setdefault(one.text, one)
    others.pop(text, None)
    return SentenceTranslation(
        source=sentence.source,
        target=text,
        score=draft.score,
        confidence=draft.confidence,
        alignment=links,
        warnings=(
            *sentence.warnings,
            *draft.notes,
            *(problem.message for problem in draft.problems if problem.message),
        ),
        alternatives=tuple(others.values()),
    )
