"""Names that are new to a model, and numbers that it lost, translated with others in their place.

    Où habite Oyelaran ?  ->  Où habite Tom ?  ->  Where does Tom live?  ->  Where does Oyelaran live?
    It costs 1847 euros.  ->  It costs 1985 euros.  ->  Ça coûte 1985 euros.  ->  Ça coûte 1847 euros.

Cut into pieces that the model has seen elsewhere, a new name comes out garbled, and the sentence around it suffers.
Long numbers get a digit too many, others lose their decimal mark. What stands in are names that the model copies, as
its training pairs did, and years.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dragoman.engine.engine import DecodeOptions, Output
from dragoman.text.whole_words import has_word, replace_words
from dragoman.translator.carry import is_clear, missing_numbers, ungrouped
from dragoman.translator.drafts import Desk, Draft, Sentence, find_problems

_SURE, _NEARLY = 0.7, 0.8
_LOST = frozenset(("name", "number"))
_YEARS = ("1985", "2013", "1976", "1945")  # round numbers would be written out


def with_stand_ins(sentences: Sequence[Sentence], drafts: Sequence[Draft], desk: Desk) -> list[Draft]:
    """The drafts, with those that lack a name or a number replaced if the model is not unsure of the sentence with a
    stand-in.
    """
    best = list(drafts)
    lacking = [place for place, draft in enumerate(drafts) if _LOST & {one.kind for one in draft.problems}]
    chosen = {place: found for place in lacking if (found := _choose(sentences[place], drafts[place], desk.stand_ins))}
    encoded = desk.scribe.encode([replace_words(found, sentences[place].text) for place, found in chosen.items()])
    asked = {place: ids for place, ids in zip(chosen, encoded, strict=True) if len(ids) <= desk.max_length}
    outputs = desk.engine.translate_ids(list(asked.values()), DecodeOptions(search=desk.search)) if asked else []
    for place, (output, *_) in zip(asked, outputs, strict=True):
        draft = _put_back(sentences[place], output, chosen[place], desk)
        if draft is not None and _is_better(draft, drafts[place], sentences[place]):
            best[place] = replace(draft, alternatives=drafts[place].alternatives)
    return best


def _choose(sentence: Sentence, draft: Draft, stand_ins: Sequence[str]) -> dict[str, str]:
    """A stand-in for each name of a sentence and each number that its draft lacks; none if there are not enough."""
    names = [name.text for name in sentence.carried.distinct_names]
    missing = dict.fromkeys(missing_numbers(sentence.carried, draft.text))
    numbers = [number for number in missing if len(number) > 1 and is_clear(number)]
    chosen: dict[str, str] = {}
    for lost, known in ((names, stand_ins), (numbers, _YEARS)):
        free = [one for one in known if not has_word(one, sentence.text)]
        if len(lost) > len(free):
            return {}
        chosen |= zip(lost, free, strict=False)
    return chosen


def _put_back(sentence: Sentence, output: Output, found: Mapping[str, str], desk: Desk) -> Draft | None:
    """The output with what they stood in for; None if a stand-in was lost."""
    stood_in = desk.scribe.draft(sentence, [output], check=False)
    if not all(has_word(instead, stood_in.text) for instead in found.values()):
        return None
    names = {name.text for name in sentence.carried.distinct_names}
    own = {instead: lost if lost in names else ungrouped(lost) for lost, instead in found.items()}
    text = replace_words(own, stood_in.text)
    problems = find_problems(sentence, text, output)
    return replace(stood_in, text=text, ids=desk.target_ids(text), problems=problems)


def _is_better(draft: Draft, before: Draft, sentence: Sentence) -> bool:
    """Less is missing, nothing else is worse, and the model is about as sure. Where a verb stood and not a
    name, the rest is hard to make sense of: where that may be, it must be surer, and quite sure.
    """
    are_certain = all(name.certain for name in sentence.carried.distinct_names)
    least = _NEARLY * before.confidence if are_certain else max(_SURE, before.confidence)
    is_no_worse = draft.num_warnings <= before.num_warnings and draft.confidence > least
    return is_no_worse and len(draft.problems) < len(before.problems)
