"""The models that are served, and which of them does a direction."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.bundle import Bundle, find, in_the_box
from dragoman.engine.auto import open_fast_engine
from dragoman.engine.convert import ComputeType
from dragoman.engine.ensemble import Ensemble
from dragoman.errors import BundleError, ConfigError
from dragoman.recipe import CorpusConfig
from dragoman.serve.refusal import Refusal
from dragoman.text.corpus import corpus_languages, corpus_of
from dragoman.text.language_names import name_of
from dragoman.translator import Glossary, SentenceTranslation, Translation, Translator
from dragoman.translator import Settings as TranslatorSettings
from dragoman.translator.drafts import Scribe
from dragoman.translator.markup import Markup
from dragoman.translator.memory import can_use, read_memories
from dragoman.translator.prepare import Prepared, prepare
from dragoman.translator.translator import assemble


@dataclass(frozen=True)
class Language:
    """A language that is served as a source, and what it can become."""

    code: str
    name: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Options:
    """How sentences are translated; those with equal options, of one model, can go in one batch."""

    source: str
    target: str
    alternatives: int = 0
    beam: int | None = None
    glossary: Glossary | None = None
    align: bool = False
    split_sentences: bool = True


@dataclass(frozen=True)
class Ready:
    """Texts as sentences. If they had tags, `pages` has what stood around, and how many of the texts are in it."""

    options: Options
    prepared: Prepared
    pages: tuple[tuple[Markup, int], ...] = ()


class Model:
    """A model that is served. Its methods may be called from threads."""

    def __init__(
        self, folder: Path, compute_type: ComputeType, threads: int, memory: Sequence[CorpusConfig] = ()
    ) -> None:
        self.bundle = bundle = Bundle.open(folder)
        self.name = folder.resolve().name
        max_length = bundle.model_config.max_length
        # Without torch where it can be, slow to load and large to keep: a glossary's terms are looked for among
        # hypotheses only, and so is what a memory has. The batcher has shared the sentences out among the workers.
        engine = open_fast_engine(bundle, compute_type, threads, divide=False)
        if examples := read_memories(memory, bundle.tokenizer, bundle.languages, max_length):
            engine = Ensemble(engine, (), examples, begin_id=bundle.model_config.begin_id)
        self._translator = Translator(
            bundle.tokenizer,
            engine,
            languages=bundle.languages,
            search=bundle.search,
            max_length=max_length,
            known_words=bundle.known_words,
        )

    def prepare(self, texts: Sequence[str], options: Options) -> Prepared:
        """The skeletons of texts and their sentences, cut to what the model takes."""
        scribe = Scribe(self.bundle.tokenizer, options.target)
        settings = TranslatorSettings(glossary=options.glossary, split_sentences=options.split_sentences)
        return prepare(texts, scribe, options.source, self.bundle.model_config.max_length, settings)

    def translate(self, sentences: Sequence[str], options: Options) -> list[SentenceTranslation]:
        """Sentences that `prepare` found, as they were written, in one call."""
        translations = self._translator.translate(
            list(sentences),
            source=options.source,
            target=options.target,
            alternatives=options.alternatives,
            beam=options.beam,
            glossary=options.glossary,
            align=options.align,
            split_sentences=False,
        )
        return [translation.sentences[0] for translation in translations]


class Models:
    """The models, by direction; of several the one that does least else, then the one named first."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._by_direction: dict[tuple[str, str], Model] = {}
        for model in models:
            for direction in model.bundle.languages:
                other = self._by_direction.setdefault(direction, model)
                if len(model.bundle.languages) < len(other.bundle.languages):
                    self._by_direction[direction] = model

    @classmethod
    def load(cls, names: Sequence[str], compute_type: ComputeType, threads: int, memory: Sequence[str] = ()) -> Models:
        """Open models by folder or name; all of the box if none is named. Each goes by what `memory` has for it."""
        corpora = [corpus_of(one) for one in memory]
        models = cls([Model(folder, compute_type, threads, corpora) for folder in find_models(names)])
        for corpus in corpora:
            if not can_use(corpus, models.directions):
                told, pairs = "-".join(corpus_languages(corpus)), ", ".join(map("-".join, models.directions))
                raise ConfigError(f"{corpus.path} is {told}, this server translates {pairs}: leave it out")
        return models

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        """(source, target), the first model's first."""
        return tuple(self._by_direction)

    @property
    def languages(self) -> tuple[Language, ...]:
        """The source languages, each with its English name and its targets."""
        targets: dict[str, list[str]] = {}
        for source, target in self._by_direction:
            targets.setdefault(source, []).append(target)
        return tuple(Language(source, name_of(source), tuple(found)) for source, found in targets.items())

    @property
    def targets(self) -> tuple[str, ...]:
        """All languages that something can be translated into."""
        return tuple(dict.fromkeys(target for _, target in self._by_direction))

    def check(self, source: str, target: str) -> None:
        """Refuse (400) a language or a pair that no model does."""
        if (source, target) in self._by_direction:
            return
        for language, known in ((source, {one for one, _ in self._by_direction}), (target, set(self.targets))):
            if language not in known:
                raise Refusal(400, f"{language} is not supported")
        pairs = ", ".join("-".join(pair) for pair in self._by_direction)
        raise Refusal(400, f"{source} to {target} is not supported: this server translates {pairs}")

    def pick(self, source: str, target: str) -> Model:
        """The model for a direction; refuses as `check` does."""
        self.check(source, target)
        return self._by_direction[source, target]

    def describe(self) -> str:
        """What is served, in a line: `fr-en, en-fr (mine), fr-de (other)`."""
        by_model: dict[str, list[str]] = {}
        for direction, model in self._by_direction.items():
            by_model.setdefault(model.name, []).append("-".join(direction))
        return ", ".join(f"{', '.join(directions)} ({name})" for name, directions in by_model.items())


def find_models(names: Sequence[str]) -> list[Path]:
    """The folders of models; all of the box if none is named."""
    chosen = list(names) or in_the_box()
    if not chosen:
        raise BundleError("there is no model to serve, the box is empty: give --model FOLDER")
    return [find(name) for name in chosen]


def make_ready(model: Model, texts: Sequence[str], options: Options, markup: Callable[[str], Markup] | None) -> Ready:
    """Texts made ready for a model; `markup` reads those with tags."""
    if markup is None:
        return Ready(options, model.prepare(texts, options))
    pages = [markup(text) for text in texts]
    plain = [page.texts for page in pages]
    if any(page.needs_alignment for page in pages):
        options = replace(options, align=True)
    prepared = model.prepare([text for some in plain for text in some], options)
    return Ready(options, prepared, tuple(zip(pages, map(len, plain), strict=True)))


def put_together(ready: Ready, found: Sequence[SentenceTranslation]) -> list[Translation]:
    """The texts again; `found` has what became of the sentences that had anything to translate."""
    remaining, prepared = iter(found), ready.prepared
    results = [
        _with_notes(next(remaining), sentence.warnings)
        if sentence.ids
        else SentenceTranslation(sentence.text, sentence.text, 0.0, 1.0)
        for sentence in prepared.sentences
    ]
    translations = [
        assemble(segments, [results[place] for place in places])
        for segments, places in zip(prepared.segments, prepared.places, strict=True)
    ]
    if not ready.pages:
        return translations
    parts = iter(translations)
    return [page.assemble(list(itertools.islice(parts, num_texts))) for page, num_texts in ready.pages]


def _with_notes(result: SentenceTranslation, notes: tuple[str, ...]) -> SentenceTranslation:
    """A sentence's translation, with what there was to say of the sentence before."""
    return replace(result, warnings=(*notes, *result.warnings)) if notes else result
