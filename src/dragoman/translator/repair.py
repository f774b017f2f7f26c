"""When a translation went wrong: the same sentence decoded in other ways, cheap ones first, until one is right.

    another hypothesis    of a beam that found the bad one
    constrained           what is missing must appear; needs an engine that can do that
    without repeats       no three pieces twice
    sampled               drawn, from the likeliest pieces
    with stand-ins        in place of names that are new to the model, and of numbers that are missing
    around                the text between addresses and placeholders, which are put back where they were
    in parts              the sentence in halves
    with terms            what the glossary says already in the source, as models tend to copy what they do not know
    around terms          the text between them, and they are put in

Each way is tried on all the sentences that it may help, in one batch. A draft is replaced only by one with fewer
problems, or at last by one that keeps to the glossary; what stays wrong is warned of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from dragoman.engine.engine import NO_DEMAND, DecodeOptions, Demand, Sampling
from dragoman.recipe import SearchConfig
from dragoman.text.sentences import SPACELESS, Segment, frame, rebuild, split_long
from dragoman.translator.capitals import with_capital
from dragoman.translator.carry import find_verbatims
from dragoman.translator.drafts import MISSING, Desk, Draft, Scribe, Sentence, confidence, find_problems
from dragoman.translator.glossary import Glossary, Place
from dragoman.translator.stand_ins import with_stand_ins

_LOG = logging.getLogger("dragoman.translator")
_WIDER, _CONSTRAINED_BEAM = 5, 8
_ASTRAY = frozenset(("empty", "loop", "copy", "ratio", "cut"))
_TOO_LONG = frozenset(("loop", "cut"))
_VERBATIM, _GLOSSARY = frozenset(("verbatim",)), frozenset(("glossary",))
# Of what is translated beside a part that stays; other marks there would get lost, and stay too.
_OWN_AFTER, _OWN_BEFORE = "'’", "'’.,;:!?…"


@dataclass(frozen=True)
class _Way:
    """One way to decode again, and the kinds of problems that it may solve."""

    name: str
    helps: frozenset[str]
    options: DecodeOptions
    demand: Callable[[Sentence, Draft], Demand] | None = None


def repair(sentences: Sequence[Sentence], drafts: Sequence[Draft], desk: Desk) -> list[Draft]:
    """The drafts, with those that have problems replaced where a better one could be found."""
    best = list(drafts)
    for way in _ways(desk.scribe, desk.search):
        chosen = _helped(best, way.helps)
        demands = [way.demand(sentences[place], best[place]) for place in chosen] if way.demand else None
        if demands is not None:
            able = [(place, one) for place, one in zip(chosen, demands, strict=True) if one != NO_DEMAND]
            chosen, demands = [place for place, _ in able], [one for _, one in able]
        if not chosen or desk.engine.lacks(way.options, demands):
            continue
        _LOG.info("%s: decoding again, %s", _count(len(chosen)), way.name)
        found = desk.engine.translate_ids([sentences[place].ids for place in chosen], way.options, demands)
        for place, outputs in zip(chosen, found, strict=True):
            for output in outputs:
                _keep_better(best, place, desk.scribe.draft(sentences[place], [output], check=True))
    best = with_stand_ins(sentences, best, desk)
    _repair_apart(sentences, best, desk)
    return best


def _ways(scribe: Scribe, search: SearchConfig) -> list[_Way]:
    wide = replace(search, beam=max(search.beam, _WIDER))
    constrained = replace(search, beam=max(search.beam, _CONSTRAINED_BEAM))
    calm = replace(wide, no_repeat_ngram=3)
    drawn = Sampling(temperature=0.7, top_k=20)
    return [
        _Way("another hypothesis", MISSING | _ASTRAY, DecodeOptions(search=wide, num_best=wide.beam)),
        _Way("constrained", MISSING, DecodeOptions(search=constrained), lambda one, draft: phrases(one, draft, scribe)),
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


def _repair_apart(sentences: Sequence[Sentence], best: list[Draft], desk: Desk) -> None:
    """The last ways: what cannot be written in one go is translated apart and put together."""
    scribe = desk.scribe
    for helps, cut in (
        (_VERBATIM, _around),
        (_TOO_LONG, _in_halves),
        (_GLOSSARY, _with_terms),
        (_GLOSSARY, _around_terms),
    ):
        plans = {place: cut(sentences[place], scribe) for place in _helped(best, helps)}
        whole = {place: [Segment(sentences[place].text, True)] for place in plans}
        asked = {place: _encoded(some, scribe) for place, some in plans.items() if some != whole[place]}
        asked = {place: ids for place, ids in asked.items() if max(map(len, ids), default=0) <= desk.max_length}
        if not asked:
            continue
        _LOG.info("%s: decoding again, apart", _count(len(asked)))
        sources = [source for ids in asked.values() for source in ids]
        outputs = iter(desk.engine.translate_ids(sources, DecodeOptions(search=desk.search)) if sources else ())
        for place, ids in asked.items():
            segments, parts = plans[place], [next(outputs)[0] for _ in ids]
            text = rebuild(segments, _spaced(segments, [scribe.decode(output.ids) for output in parts])).strip()
            draft = Draft(
                text=text,
                score=sum(output.score for output in parts) / max(1, len(parts)),
                confidence=min((confidence(output) for output in parts), default=1.0),
                problems=find_problems(sentences[place], text),
                notes=(f"translated in {_count(len(parts), 'part')}, put together again",)
                if parts and len(segments) > 1
                else (),
            )
            _keep_better(best, place, draft, "glossary" if cut is _around_terms else "")


def _encoded(segments: Sequence[Segment], scribe: Scribe) -> list[list[int]]:
    """The ids of what is to be translated of them."""
    return scribe.encode([segment.text for segment in segments if segment.is_sentence])


def _around(sentence: Sentence, scribe: Scribe) -> list[Segment]:
    """The sentence with its addresses and placeholders as parts that stay."""
    return _between(sentence.text, [(one.start, one.end, one.text) for one in find_verbatims(sentence.text)])


def _with_terms(sentence: Sentence, scribe: Scribe) -> list[Segment]:
    """The sentence as a whole, with what the glossary says in place of its terms."""
    return frame("".join(segment.text for segment in _around_terms(sentence, scribe)))


def _around_terms(sentence: Sentence, scribe: Scribe) -> list[Segment]:
    """The sentence with what the glossary says in place of its terms as parts that stay, as addresses do."""
    fixed = [(one.start, one.end, one.text) for one in find_verbatims(sentence.text)]
    for place in Glossary(sentence.terms).places(sentence.text):
        if all(place.end <= start or end <= place.start for start, end, _ in fixed):
            fixed.append((place.start, place.end, _as_written(place, sentence.text)))
    return _between(sentence.text, sorted(fixed))


def _as_written(place: Place, text: str) -> str:
    """What a term becomes; with a capital if it begins a sentence with one."""
    target = place.term.target
    is_capital = place.start == 0 and text[0].isupper()
    return with_capital(target) if is_capital else target


def _between(text: str, fixed: Sequence[tuple[int, int, str]]) -> list[Segment]:
    """The parts of a text to translate, and in place of what is from start to end what is fixed."""
    segments: list[Segment] = []
    at = 0
    for start, end, instead in fixed:
        segments += [*_edged(text[at:start], after=bool(segments), before=True), Segment(instead, False)]
        at = end
    return segments + _edged(text[at:], after=bool(segments), before=False)


def _edged(text: str, after: bool, before: bool) -> list[Segment]:
    """What stands after or before a part that stays, the marks between the two as parts that stay too."""
    if not any(map(str.isalpha, text)):
        return _translatable(text)
    start = _num_marks(text, _OWN_AFTER) if after else 0
    end = len(text) - (_num_marks(reversed(text), _OWN_BEFORE) if before else 0)
    return [*_translatable(text[:start]), *_translatable(text[start:end]), *_translatable(text[end:])]


def _num_marks(letters: Iterable[str], own: str) -> int:
    """How many marks and blanks they begin with."""
    return sum(1 for _ in takewhile(lambda letter: not letter.isalnum() and letter not in own, letters))


def _in_halves(sentence: Sentence, scribe: Scribe) -> list[Segment]:
    half = (len(sentence.ids) + 1) // 2
    parts = split_long(sentence.text, half, scribe.num_pieces)
    return [segment for part in parts for segment in _translatable(part)]


def _translatable(text: str) -> list[Segment]:
    """A part of a sentence, as `frame` gives it; without letters there is nothing to translate."""
    if any(map(str.isalpha, text)):
        return frame(text)
    return [Segment(text, False)] if text else []


def _spaced(segments: Sequence[Segment], translations: Sequence[str]) -> list[str]:
    """The translations, with a space towards a part that stays where they would stick to it."""
    remaining = iter(translations)
    spaced: list[str] = []
    for at, segment in enumerate(segments):
        if segment.is_sentence:
            before, after = segments[at - 1 : at], segments[at + 1 : at + 2]
            text = next(remaining)
            left = " " * any(_sticks(one.text, text) for one in before if not one.is_sentence)
            right = " " * any(_sticks(text, one.text) for one in after if not one.is_sentence)
            spaced.append(left + text + right)
    return spaced


def _sticks(left: str, right: str) -> bool:
    """Whether a space is missing between two texts, of scripts that have spaces."""
    edges = left[-1:], right[:1]
    is_end = edges[0].isalnum() or edges[0] in tuple(".,;:!?…})]")
    is_start = edges[1].isalnum() or edges[1] in tuple("{$%")
    return is_end and is_start and not any(map(SPACELESS.match, edges))


def _helped(drafts: Sequence[Draft], helps: frozenset[str]) -> list[int]:
    """The places of drafts that have a problem of these kinds."""
    return [place for place, draft in enumerate(drafts) if any(problem.kind in helps for problem in draft.problems)]


def _keep_better(best: list[Draft], place: int, draft: Draft, first: str = "") -> None:
    """Keep a draft if it has fewer problems; of the kind that comes `first`, if there is one."""
    before, after = ([one for one in each.problems if one.kind == first] for each in (best[place], draft))
    if len(after) < len(before) or draft.is_better_than(best[place]):
        best[place] = replace(draft, alternatives=best[place].alternatives)


def _count(number: int, what: str = "sentence") -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
