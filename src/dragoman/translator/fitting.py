"""From words to characters: where exactly a span of the source begins and ends in the target."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from dragoman.translator.word_links import WordLinks

_CLOSING_MARKS = ".,;:!?…)]\"'»”’"
_OPENING_MARKS = "([\"'«“‘¿¡"


@dataclass(slots=True)
class Span:
    """A part of a source sentence, from `start` to `end`, and of its target, from `left` to `right`.

    `opening` and `closing` are what the caller puts there, by number. A point is put in one place; one that has
    text, which is white space, takes the place of the white space there. `half` is the half of an element, whose other
    half is in another sentence, or nowhere: it parts words, and belongs to none.
    """

    start: int
    end: int
    opening: tuple[int, ...] = ()
    closing: tuple[int, ...] = ()
    is_point: bool = False
    half: Literal["", "open", "close"] = ""
    children: list[Span] = field(default_factory=list)
    left: int = 0
    right: int = 0


def fit(words: WordLinks, span: Span, run: range) -> None:
    """From words to characters: punctuation at the ends is in if some was at the ends of the source."""
    if not run:
        span.left = span.right = _before(words, run.start)
        return
    inside = words.source.text[span.start : span.end].strip()
    first, last = run.start, run.stop - 1
    target = words.target
    if inside[-1] not in _CLOSING_MARKS:
        while last > first and not target.num_letters(*target.spans[last]):
            last -= 1
    span.left, span.right = target.starts[first], target.ends[last]
    if inside[0] not in _OPENING_MARKS:
        span.left = _without_opening_marks(words, first)
    if inside[-1] not in _CLOSING_MARKS:
        span.right = _without_closing_marks(words, last)


def _without_opening_marks(words: WordLinks, word: int) -> int:
    start, end = words.target.spans[word]
    text = words.target.text
    inner = end - len(text[start:end].lstrip(_OPENING_MARKS))
    return inner if inner < end else start


def _without_closing_marks(words: WordLinks, word: int) -> int:
    start, end = words.target.spans[word]
    inner = start + len(words.target.text[start:end].rstrip(_CLOSING_MARKS))
    return inner if start < inner else end


def _before(words: WordLinks, word: int) -> int:
    """The place before a target word, or after the last."""
    target = words.target
    return target.starts[word] if word < len(target) else (target.ends[-1] if len(target) else 0)


def fit_inside_word(words: WordLinks, span: Span, own: range) -> bool:
    """Place an element that has some letters or marks of one word; False if it has more, or they are not there."""
    source, target = words.source, words.target
    touched = source.touched(span.start, span.end)
    if len(touched) != 1 or source.share(touched[0], span.start, span.end) >= 1.0:
        return False
    first, last = source.core(touched[0])
    start, end = max(span.start, source.starts[touched[0]]), min(span.end, source.ends[touched[0]])
    body, head, tail = source.text[start:end], source.text[first:start], source.text[end:last]
    linked, same = words.targets.get(touched[0], ()), words.places.get(source.word(touched[0]), ())
    for word in chain(linked, same):
        if word not in own:
            continue
        left, right = target.core(word)
        core = target.text[left:right]
        if not source.num_letters(start, end):
            at = target.word(word).find(body) if end <= first else target.word(word).rfind(body)
            if at < 0:
                continue
            left = target.starts[word] + at
            right = left + len(body)
        elif core == source.text[first:last]:
            left, right = left + start - first, left + end - first
        elif head and not tail and core.startswith(head) and core != head:
            left += len(head)
        elif tail and not head and core.endswith(tail) and core != tail:
            right -= len(tail)
        elif not head and len(body) == 1:  # a large initial
            right = left + 1
        else:
            continue
        span.left, span.right = left, right
        return True
    return False


def fit_point(words: WordLinks, point: Span, own: range) -> None:
    """Place a point among a parent's target words: at the word that it touched, else between words."""
    source, target = words.source, words.target
    at = point.start
    num_before = bisect_left(source.starts, at)
    if not own:
        point.left = point.right = 0
        return
    left, right = source.text[at - 1 : at].strip(), source.text[point.end : point.end + 1].strip()
    if not point.half and point.start == point.end and (left or right) and at not in (0, len(source.text)):
        is_behind = bool(left) and (not right or left.isalnum() or not right.isalnum())
        touched = num_before - 1 if is_behind else num_before - bool(left)
        for word in words.targets.get(touched, ()):
            if word in own:
                if is_behind:
                    place = target.ends[word] if left in _CLOSING_MARKS else _without_closing_marks(words, word)
                else:
                    place = target.starts[word] if right in _OPENING_MARKS else _without_opening_marks(words, word)
                point.left = point.right = place
                return
    cut = words.cut(num_before, own.start, own.stop)
    if point.start < point.end and own.start < cut < own.stop:
        point.left, point.right = target.ends[cut - 1], target.starts[cut]
    elif point.half == "close" and cut > own.start:
        is_marked = left in _CLOSING_MARKS
        point.left = point.right = target.ends[cut - 1] if is_marked else _without_closing_marks(words, cut - 1)
    else:
        point.left = point.right = target.starts[cut] if cut < own.stop else target.ends[own.stop - 1]
