"""When a translation went wrong: the same sentence decoded in other ways, cheap ones first, until one is right.

    another hypothesis    of a beam that found the bad one
    constrained           what is missing must appear; needs an engine that can do that
    without repeats       no three pieces twice
    sampled               drawn, from the likeliest pieces
    around                the text between addresses and placeholders, which are put back where they were
    in parts              the sentence in halves

Each way is tried on all the sentences that it may help, in one batch. A draft is replaced only by one with fewer
problems; what stays wrong is warned of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dragoman.engine.engine import NO_DEMAND, DecodeOptions, Demand, Engine, Sampling
from dragoman.recipe import SearchConfig
from dragoman.text.sentences import Segment, frame, rebuild, split_long
from dragoman.translator.carry import find_verbatims
from dragoman.translator.drafts import Draft, Scribe, Sentence, confidence, find_problems

_LOG = logging.getLogger("dragoman.translator")
_WIDER, _CONSTRAINED_BEAM = 5, 8
_MISSING = frozenset(("verbatim", "number", "glossary"))
_ASTRAY = frozenset(("empty", "loop", "copy", "ratio", "cut"))
_TOO_LONG = frozenset(("loop", "cut"))


@dataclass(frozen=True)
class _Way:
    """One way to decode again, and the kinds of problems that it may solve."""

    name: str
    helps: frozenset[str]
    options: DecodeOptions
    demand: Callable[[Sentence, Draft], Demand] | None = None


def repair(
    sentences: Sequence[Sentence],
    drafts: Sequence[Draft],
    scribe: Scribe,
    engine: Engine,
    search: SearchConfig,
) -> list[Draft]:
    """The drafts, with those that have problems replaced where a better one could be found."""
    best = list(drafts)
    for way in _ways(scribe, search):
        chosen = _helped(best, way.helps)
        demands = [way.demand(sentences[place], best[place]) for place in chosen] if way.demand else None
        if demands is not None:
            able = [(place, one) for place, one in zip(chosen, demands, strict=True) if one != NO_DEMAND]
            chosen, demands = [place for place, _ in able], [one for _, one in able]
        if not chosen or engine.lacks(way.options, demands):
            continue
        _LOG.info("%s: decoding again, %s", _count(len(chosen)), way.name)
        found = engine.translate_ids([sentences[place].ids for place in chosen], way.options, demands)
        for place, outputs in zip(chosen, found, strict=True):
            for output in outputs:
                _keep_better(best, place, scribe.draft(sentences[place], [output], check=True))
    _repair_apart(sentences, best, scribe, engine, search)
    return best


def _ways(scribe: Scribe, search: SearchConfig) -> list[_Way]:
    wide = replace(search, beam=max(search.beam, _WIDER))
    constrained = replace(search, beam=max(search.beam, _CONSTRAINED_BEAM))
    calm = replace(wide, no_repeat_ngram=3)
    drawn = Sampling(temperature=0.7, top_k=20)
    return [
        _Way("another hypothesis", _MISSING | _ASTRAY, DecodeOptions(search=wide, num_best=wide.beam)),
        _Way(
            "constrained", _MISSING, DecodeOptions(search=constrained), lambda one, draft: phrases(one, draft, scribe)
        ),
        _Way("without repeats", _ASTRAY, DecodeOptions(search=calm, num_best=calm.beam)),
        _Way("sampled", _ASTRAY, DecodeOptions(search=search, num_best=_WIDER, sampling=drawn)),
    ]


def phrases(sentence: Sentence, draft: Draft, scribe: Scribe) -> Demand:
    """What the translation must have, in ids; not numbers with separators, which languages write differently."""
    missing = {problem.kind for problem in draft.problems}
    texts = [term.target for term in sentence.terms] if "glossary" in missing else []
    if "number" in missing:
        texts += [number for number in sentence.carried.numbers if number.isdigit()]
    must = [tuple(ids) for ids in scribe.tokenizer.target_side.ids_batch(texts) if ids]
    if "verbatim" in missing:
        must += [_ids_in_place(sentence.text, one.start, one.end, scribe) for one in sentence.carried.verbatims]
    return Demand(must=tuple(filter(None, must)))


def _ids_in_place(text: str, start: int, end: int, scribe: Scribe) -> tuple[int, ...]:
    """The ids of a part of a text: at a word's start they have its mark, after a bracket they have not."""
    attached = text[start - 1 : start] if start and not text[start - 1].isspace() else ""
    encoded = scribe.tokenizer.target_side.encode(attached + text[start:end])
    pairs = zip(encoded.ids, encoded.spans, strict=True)
    return tuple(id for id, (first, _) in pairs if first >= len(attached))


def _repair_apart(
    sentences: Sequence[Sentence], best: list[Draft], scribe: Scribe, engine: Engine, search: SearchConfig
) -> None:
    """The last ways: what cannot be written in one go is translated apart and put together."""
    for helps, cut in ((frozenset(("verbatim",)), _around), (_TOO_LONG, _in_halves)):
        plans = {place: cut(sentences[place], scribe) for place in _helped(best, helps)}
        plans = {place: segments for place, segments in plans.items() if len(segments) > 1}
        texts = [segment.text for segments in plans.values() for segment in segments if segment.is_sentence]
        if not texts:
            continue
        _LOG.info("%s: decoding again, apart", _count(len(plans)))
        outputs = iter(engine.translate_ids(scribe.encode(texts), DecodeOptions(search=search)))
        for place, segments in plans.items():
            parts = [next(outputs)[0] for segment in segments if segment.is_sentence]
            text = rebuild(segments, [scribe.decode(output.ids) for output in parts])
            draft = Draft(
                text=text,
                score=sum(output.score for output in parts) / max(1, len(parts)),
                confidence=min((confidence(output) for output in parts), default=1.0),
                problems=find_problems(sentences[place], text),
                notes=(f"translated in {len(parts)} parts, put together again",),
            )
            _keep_better(best, place, draft)


def _around(sentence: Sentence, scribe: Scribe) -> list[Segment]:
    """The sentence with its addresses and placeholders as parts that stay."""
    segments: list[Segment] = []
    start = 0
    for one in find_verbatims(sentence.text):
        segments += [*_translatable(sentence.text[start : one.start]), Segment(one.text, False)]
        start = one.end
    return segments + _translatable(sentence.text[start:])


def _in_halves(sentence: Sentence, scribe: Scribe) -> list[Segment]:
    half = (len(sentence.ids) + 1) // 2
    parts = split_long(sentence.text, half, scribe.num_pieces)
    return [segment for part in parts for segment in _translatable(part)]


def _translatable(text: str) -> list[Segment]:
    """A part of a sentence, as `frame` gives it; without letters there is nothing to translate."""
    if any(map(str.isalpha, text)):
        return frame(text)
    return [Segment(text, False)] if text else []


def _helped(drafts: Sequence[Draft], helps: frozenset[str]) -> list[int]:
    """The places of drafts that have a problem of these kinds."""
    return [place for place, draft in enumerate(drafts) if any(problem.kind in helps for problem in draft.problems)]


def _keep_better(best: list[Draft], place: int, draft: Draft) -> None:
    if draft.is_better_than(best[place]):
        best[place] = replace(draft, alternatives=best[place].alternatives)


def _count(number: int) -> str:
    return "1 sentence" if number == 1 else f"{number} sentences"
