"""Which languages a request means, and its texts translated, each from its own.

A language may be asked for by a code that is more exact than what is served (`EN-US`, `pt_BR`): its base is meant.
Texts that are in the target language already come back as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from dragoman.serve.access_log import note
from dragoman.serve.service import Client, Service
from dragoman.translator import Glossary, Translation
from dragoman.translator.markup import Markup

AUTO = "auto"
SURE = 0.8
"""From this confidence on, a text is taken to be in the language that it shall be translated into."""


@dataclass(frozen=True)
class Detected:
    """The language that a text was taken for, and how sure that is, from 0 to 1."""

    language: str
    confidence: float


def served_languages(service: Service) -> tuple[str, ...]:
    """All languages, sources first."""
    sources = [source for source, _ in service.models.directions]
    return tuple(dict.fromkeys([*sources, *service.models.targets]))


def find_language(code: str, known: Collection[str]) -> str | None:
    """The language of `known` that a code means: itself, whatever its case, or else its base language.

    >>> find_language("EN-us", ("fr", "en"))
    'en'
    """
    by_name = {one.lower().replace("_", "-"): one for one in known}
    name = code.strip().lower().replace("_", "-")
    return by_name.get(name) or by_name.get(name.partition("-")[0])


def choose_source(
    candidates: Sequence[tuple[str, float]], target: str, directions: Collection[tuple[str, str]]
) -> Detected:
    """The likeliest language that can become `target`.

    Who asks for a translation into a language is likely to have a text in another, so the target itself is chosen only
    if that is sure. If it is sure that a text is in a language that cannot become `target`, that is told, and refused
    later.
    """
    best = Detected(*candidates[0])
    if best.confidence >= SURE or (best.language, target) in directions:
        return best
    others = [Detected(*one) for one in candidates if (one[0], target) in directions]
    return others[0] if others else best


async def detect_sources(service: Service, texts: Sequence[str], target: str, client: Client) -> list[Detected]:
    """The language of each text."""
    directions = service.models.directions
    return [choose_source(found, target, directions) for found in await service.detect_each(texts, client)]


async def translate_each(
    service: Service,
    texts: Sequence[str],
    sources: Sequence[str],
    target: str,
    *,
    client: Client,
    alternatives: int = 0,
    glossary: Glossary | None = None,
    align: bool = False,
    markup: Callable[[str], Markup] | None = None,
    split_sentences: bool = True,
    limited: bool = True,
) -> list[Translation]:
    """Translate texts that are in several languages; those of one language go together. One line tells of all."""
    places: dict[str, list[int]] = {}
    for place, source in enumerate(sources):
        places.setdefault(source, []).append(place)
    for source in places:
        if source != target:
            service.models.check(source, target)  # before it is noted: a code that is no language may be anything
    note(source=",".join(places), target=target, texts=len(texts), characters=sum(map(len, texts)))

    async def translate(source: str) -> list[Translation]:
        own = [texts[place] for place in places[source]]
        if source == target:
            return [Translation(text, 0.0, 1.0) for text in own]
        return await service.translate(
            own, source, target, client=client, alternatives=alternatives, glossary=glossary, align=align,
            markup=markup, split_sentences=split_sentences, limited=limited,
        )  # fmt: skip

    async with _Group() as group:
        tasks = {source: group.create_task(translate(source)) for source in places}
    results: dict[int, Translation] = {}
    for source, task in tasks.items():
        results |= zip(places[source], task.result(), strict=True)
    translations = [results[place] for place in range(len(texts))]
    note(sentences=sum(len(translation.sentences) for translation in translations))
    if service.log.log_text:
        note(text=list(texts), translation=[translation.text for translation in translations])
    return translations


class _Group(asyncio.TaskGroup):
    """Tasks that end together; the first refusal is raised as itself."""

    async def __aexit__(self, *exception: object) -> None:
        try:
            await super().__aexit__(*exception)  # type: ignore[arg-type]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
