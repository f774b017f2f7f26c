"""Where the tags of a sentence go in its translation: on the words that are linked to those they were on.

Each target word goes with the element that most of its links point into. An element takes the one run of words that
has most of its own, so that nothing is opened twice; its children share that run among them in the same way. Points
(an image, a line break, a tag without its other half) stay at the word they touched, or else go where they part the
words that came before from those that came after as well as can be. Words, not letters, are linked: a tag inside a word
finds its letters again only if they stayed the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from dragoman.translator.fitting import Span, fit, fit_inside_word, fit_point
from dragoman.translator.translation import Link
from dragoman.translator.word_links import WordLinks

PLACEHOLDER = re.compile(r"\{\d+\}")
"""What the model sees of an opaque piece that is not of words."""
_FOREIGN = 0.75
"""What a word that is not an element's own costs in its run, against one that is: rather a word too many."""


def arrange(source: str, target: str, links: Iterable[Link], root: Span, opaque: Sequence[Span]) -> list[str | int]:
    """The parts of `target`, and between them what the spans open, close and put there, by number.

    An opaque span is put in place of what it has become; each number is in the result once, whatever happens.
    """
    words = WordLinks(source, target, links)
    substitutes = _substitute(words, opaque)
    root.left, root.right = 0, len(target)
    unsettled = [root]
    while unsettled:
        span = unsettled.pop()
        _settle(words, span, substitutes)
        unsettled += [child for child in span.children if child.children]
    return _emit(target, root, substitutes)


def _settle(words: WordLinks, parent: Span, substitutes: Sequence[Span]) -> None:
    """Give each child its place within that of its parent, so that they do not overlap."""
    children = parent.children
    for child in children:
        if not child.is_point and not words.source.text[child.start : child.end].strip():
            _make_point(child)
    own = words.target.touched(parent.left, parent.right)
    elements = [child for child in children if not child.is_point]
    whole = [child for child in elements if not fit_inside_word(words, child, own)]
    for child, run in zip(whole, _share_out(words, parent, whole, own), strict=True):
        fit(words, child, run)
    for child in elements:
        _avoid(child, substitutes)
        child.left, child.right = max(child.left, parent.left), min(child.right, parent.right)
    taken = sorted((child.left, child.right) for child in elements if child.left < child.right)
    for child in children:
        if child.is_point:
            fit_point(words, child, own)
            _avoid(child, substitutes)
            _step_out(child, taken)
    order = sorted(range(len(children)), key=lambda at: (children[at].left, children[at].left < children[at].right, at))
    parent.children = [children[at] for at in order]
    cursor = parent.left
    for child in parent.children:
        child.left = min(max(child.left, cursor), parent.right)
        child.right = cursor = min(max(child.right, child.left), parent.right)


def _make_point(span: Span) -> None:
    """An element without words, and all that is in it, stays together."""
    numbers: list[int] = []
    rest: list[Span | tuple[int, ...]] = [span]
    while rest:
        one = rest.pop()
        if isinstance(one, tuple):
            numbers += one
        else:
            numbers += one.opening
            rest += [one.closing, *reversed(one.children)]
    span.opening, span.closing, span.children, span.is_point, span.end = tuple(numbers), (), [], True, span.start


def _share_out(
    words: WordLinks, parent: Span, children: Sequence[Span], own: range, borrow: bool = True
) -> list[range]:
    """The run of its parent's target words that each child gets; an empty one where it goes if it gets none.

    With `borrow`, a child whose words became nothing gets a word beside its place, if that is free.
    """
    if len(children) == 1 and _covers_all(words, children[0], parent):
        return [own]
    if not words.is_cheap(len(own)):
        covered = [words.source.touched(child.start, child.end) for child in children]
        places = [[words.by_position(at, own.start, own.stop) for at in (one.start, one.stop)] for one in covered]
        return [range(*pair) for pair in places]
    cover: dict[int, list[tuple[int, float]]] = {}
    for index, child in enumerate(children):
        for place in words.source.touched(child.start, child.end):
            if share := words.source.share(place, child.start, child.end):
                cover.setdefault(place, []).append((index, share))
    best, weak = [(0.0, range(0))] * len(children), [(0.0, -1)] * len(children)
    current, total, begin = -1, 0.0, own.start
    for word in own if children else ():
        claims: dict[int, float] = {}
        for place, share in words.shares[word].items():
            for index, part in cover.get(place, ()):
                claims[index] = claims.get(index, 0.0) + share * part
                weak[index] = max(weak[index], (claims[index], -word))
        owner = max(claims, key=lambda index: claims[index], default=-1)
        if owner >= 0 and claims[owner] < 1.0 - sum(claims.values()):
            owner = -1
        if owner >= 0:
            if owner != current or total <= 0.0:
                current, total, begin = owner, 0.0, word
            total += claims[owner]
            if total > best[owner][0]:
                best[owner] = (total, range(begin, word + 1))
        elif current >= 0:
            total -= _FOREIGN * (1.0 - claims.get(current, 0.0))
    runs = [run for _, run in best]
    taken = {word for run in runs for word in run}
    for index, child in enumerate(children):
        if not runs[index]:
            # Rather a neighbour's word than a link that nobody sees.
            place = words.cut(bisect_left(words.source.starts, child.start), own.start, own.stop)
            weakly = [-weak[index][1]] if weak[index][0] else []
            nearby = [*weakly, place, place - 1] if borrow else weakly
            free = [word for word in nearby if word in own and word not in taken]
            runs[index] = range(free[0], free[0] + 1) if free else range(place, place)
            taken.update(runs[index])
    return runs


def _covers_all(words: WordLinks, child: Span, parent: Span) -> bool:
    """Whether a child has all the words of its parent."""
    covered = words.source.touched(parent.start, parent.end)
    if covered != words.source.touched(child.start, child.end):
        return False
    edges = {covered[0], covered[-1]} if covered else ()
    shares = [[words.source.share(place, one.start, one.end) for one in (child, parent)] for place in edges]
    return all(of_child >= of_parent for of_child, of_parent in shares)


def _avoid(span: Span, substitutes: Sequence[Span]) -> None:
    """Nothing begins or ends within what is put in place of something else."""
    at = bisect_right(substitutes, span.left, key=lambda one: one.left) - 1
    if at >= 0 and substitutes[at].left < span.left < substitutes[at].right:
        span.left = substitutes[at].right if span.is_point else substitutes[at].left
    at = bisect_right(substitutes, span.right, key=lambda one: one.left) - 1
    if at >= 0 and substitutes[at].left < span.right < substitutes[at].right:
        span.right = substitutes[at].right
    span.right = max(span.left, span.right)


def _step_out(point: Span, taken: Sequence[tuple[int, int]]) -> None:
    """A point was beside elements, and does not land in them."""
    at = bisect_left(taken, (point.right, -1)) - 1
    if at >= 0 and point.left < taken[at][1] and taken[at][0] < point.right:
        left, right = taken[at]
        point.left = point.right = left if point.left - left < right - point.right else right


def _substitute(words: WordLinks, opaque: Sequence[Span]) -> list[Span]:
    """Where the opaque spans go: in place of themselves if they are found, else of what is linked to them.

    A placeholder that was written more than once is left out where it stands in for nothing.
    """
    found: list[Span] = []
    places: dict[str, deque[int]] = {}
    for span in opaque:
        shown = words.source.text[span.start : span.end]
        covered = words.source.touched(span.start, span.end)
        linked = {word for place in covered for word in words.targets.get(place, ())}
        if shown not in places:
            places[shown] = deque(_occurrences(shown, words.target.text))
        free = _free_place(words, places[shown], found, len(shown), linked)
        if free is not None:
            span.left, span.right = free, free + len(shown)
        elif words.is_guess:
            # No word is given up for it.
            at = words.cut(bisect_left(words.source.starts, span.start), 0, len(words.target))
            fit(words, span, range(at, at))
        else:
            root = Span(0, len(words.source.text))
            fit(words, span, _share_out(words, root, [span], range(len(words.target)), borrow=False)[0])
        if free is None and (taken := _overlapped(found, span.left, span.right)) is not None:
            span.left = span.right = taken.right
        words.relink(words.target.touched(span.left, span.right), covered)
        insort(found, span, key=lambda one: (one.left, one.right))
    for shown, rest in places.items():
        if PLACEHOLDER.fullmatch(shown):
            for at in rest:
                if _overlapped(found, at, at + len(shown)) is None:
                    insort(found, Span(0, 0, left=at, right=at + len(shown)), key=lambda one: (one.left, one.right))
    return found


def _free_place(
    words: WordLinks, places: deque[int], found: Sequence[Span], length: int, linked: Collection[int]
) -> int | None:
    """The first of these places that is not taken, at words that are linked if there is one there."""
    if words.is_cheap(len(places)):
        free = [at for at in places if _overlapped(found, at, at + length) is None]
        near = (at for at in free if any(word in linked for word in words.target.touched(at, at + length)))
        return next(near, free[0] if free else None)
    while places and _overlapped(found, places[0], places[0] + length) is not None:
        places.popleft()
    return places[0] if places else None


def _occurrences(shown: str, text: str) -> Iterator[int]:
    """Where a text has this, not as a part of a longer word."""
    at = text.find(shown) if shown else -1
    while at >= 0:
        end = at + len(shown)
        is_part = _joins(text[at - 1 : at], shown[0]) or _joins(text[end : end + 1], shown[-1])
        if not is_part:
            yield at
        at = text.find(shown, at + 1 if is_part else end)


def _joins(beside: str, edge: str) -> bool:
    return edge.isalnum() and (beside.isalnum() or beside == "_")


def _overlapped(spans: Sequence[Span], left: int, right: int) -> Span | None:
    """The first of some spans, in order and apart from each other, that reaches into this place."""
    at = bisect_right(spans, left, key=lambda one: one.right)
    return spans[at] if at < len(spans) and spans[at].left < right else None


def _emit(target: str, root: Span, substitutes: Sequence[Span]) -> list[str | int]:
    """The target, with all that is opened, closed and put into it."""
    emitted: list[str | int] = []
    cursor = 0
    waiting = list(reversed(substitutes))

    def advance(end: int) -> None:
        nonlocal cursor
        while waiting and (waiting[-1].left < end or end == len(target)):
            span = waiting.pop()
            emitted.append(target[cursor : span.left])
            emitted.extend(span.opening)
            if span.left == span.right:  # it stands in for no word, so that there is no space for it
                emitted.append(" ") if span.left < len(target) else emitted.insert(len(emitted) - 1, " ")
            cursor = max(cursor, span.right)
        emitted.append(target[cursor:end])
        cursor = max(cursor, end)

    path = [(root, iter(root.children))]
    while path:
        span, children = path[-1]
        child = next(children, None)
        if child is None:
            advance(span.right)
            emitted.extend(span.closing)
            path.pop()
        elif child.is_point:
            advance(child.left)
            emitted.extend(child.opening)
            cursor = max(cursor, child.right)
        else:
            advance(child.left)
            emitted.extend(child.opening)
            path.append((child, iter(child.children)))
    return [part for part in emitted if part != ""]
