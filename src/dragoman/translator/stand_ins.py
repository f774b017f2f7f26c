"""Names that are new to a model, translated with others in their place.

    Où habite Oyelaran ?  ->  Où habite Tom ?  ->  Where does Tom live?  ->  Where does Oyelaran live?

Cut into pieces that the model has seen elsewhere, a new name comes out garbled, and the sentence around it suffers.
What stands in are names that it copies, as its training pairs did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.engine.engine import DecodeOptions, Engine
from dragoman.recipe import SearchConfig
from dragoman.text.known_words import has_word, replace_word
from dragoman.translator.drafts import Draft, Scribe, Sentence, find_problems

_SURE = 0.7


def with_stand_ins(
    sentences: Sequence[Sentence],
    drafts: Sequence[Draft],
    scribe: Scribe,
    engine: Engine,
    search: SearchConfig,
    stand_ins: Sequence[str],
) -> list[Draft]:
    """The drafts, with those that lack a name replaced where the model is surer of the sentence with a stand-in."""
    best = list(drafts)
    lacking = [place for place, draft in enumerate(drafts) if any(one.kind == "name" for one in draft.problems)]
    chosen = {place: found for place in lacking if (found := _choose(sentences[place], stand_ins))}
    asked = scribe.encode([_exchange(sentences[place].text, found) for place, found in chosen.items()])
    outputs = engine.translate_ids(asked, DecodeOptions(search=search)) if asked else []
    for (place, found), (output, *_) in zip(chosen.items(), outputs, strict=True):
        stood_in = scribe.draft(sentences[place], [output], check=False)
        if not all(has_word(instead, stood_in.text) for instead in found.values()):
            continue
        text = _exchange(stood_in.text, {instead: name for name, instead in found.items()})
        draft = replace(
            stood_in,
            text=text,
            ids=tuple(scribe.tokenizer.target_side.ids_batch([text])[0]),
            problems=find_problems(sentences[place], text, output),
            alternatives=drafts[place].alternatives,
        )
        if draft.is_better_than(drafts[place]) and draft.confidence > _least(sentences[place], drafts[place]):
            best[place] = draft
    return best


def _least(sentence: Sentence, draft: Draft) -> float:
    """What a draft's confidence must be above. Where a verb stood and not a name, the rest is hard to make sense of."""
    return draft.confidence if all(name.certain for name in sentence.carried.names) else max(draft.confidence, _SURE)


def _choose(sentence: Sentence, stand_ins: Sequence[str]) -> dict[str, str]:
    """A stand-in for each name of a sentence; none if there are not enough."""
    names = dict.fromkeys(name.text for name in sentence.carried.names)
    free = [one for one in stand_ins if not has_word(one, sentence.text)]
    return dict(zip(names, free, strict=False)) if len(names) <= len(free) else {}


def _exchange(text: str, instead_of: dict[str, str]) -> str:
    for word, instead in instead_of.items():
        text = replace_word(word, instead, text)
    return text
