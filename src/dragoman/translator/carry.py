"""What a translation must carry over: addresses and placeholders letter by letter, numbers digit by digit, and names
that are new to the model.

Numbers are compared by their value, as languages group digits differently and have other decimal marks. Those that are
often written out (small ones, tens, hundreds) may be missing, as long as no other number stands in their place; times
of day, which some languages count to 12 and others to 24, are not compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.text.known_words import KnownWords, Name
from dragoman.text.whole_words import has_word

# Strangers choose the text: what is tried once is not tried again from the next letter on, nor given back.
_MAIL = r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++"
_ADDRESS = rf"(?:https?|ftp)://[^\s<>\"«»]++|www\.[^\s<>\"«»]++|{_MAIL}"
_CONVERSION = r"[-+#0]*+\d*+(?:\.\d++)?+[diouxXeEfFgGcrsa](?![A-Za-z])"
_PLACEHOLDER = (
    rf"\{{\{{[^{{}}]*+\}}\}}|\$?\{{[^{{}}\s]*+\}}|%\([A-Za-z_]\w*+\){_CONVERSION}"
    rf"|(?<!\d)%(?:\d++\$)?+{_CONVERSION}|%%"
)
_VERBATIM = re.compile(f"{_ADDRESS}|{_PLACEHOLDER}")
_MARKS = frozenset(".,;:!?…'’\")]")  # at the end of an address they are the sentence's
_NUMBER = re.compile(r"\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?")
_TIME = re.compile(r"\b\d{1,2}(?:[.:]\d{2})? ?(?:h|uhr|[ap]\.?m)\b|\b\d{1,2} ?[h:] ?\d{2}\b", re.IGNORECASE)
_DATE = re.compile(r"\b(\d{1,4})[./-](\d{1,2})[./-](\d{1,4})\b")
_LARGEST_WORD = 20
_SEPARATORS = re.compile(r"\D")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")  # thousands here, thousandths there
_DECIMALS = re.compile(r"(?:(?<=^0)[.,]\d+|[.,](?:\d{1,2}|\d{4,}))$")  # three digits behind a mark are a group


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Something to carry over as it is, and where it stands in the sentence."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Carried:
    """What a sentence has that its translation must have too."""

    verbatims: tuple[Verbatim, ...] = ()
    numbers: tuple[str, ...] = ()
    names: tuple[Name, ...] = ()

    @property
    def distinct_names(self) -> tuple[Name, ...]:
        """Each name once, certain if it is so anywhere."""
        by_text: dict[str, Name] = {}
        for name in self.names:
            if name.certain or name.text not in by_text:
                by_text[name.text] = name
        return tuple(by_text.values())

    def __bool__(self) -> bool:
        return bool(self.verbatims or self.numbers or self.names)


NOTHING = Carried()


def find_carried(sentence: str, known: KnownWords | None = None, settled: Sequence[tuple[int, int]] = ()) -> Carried:
    """What must be carried over; numbers as they are written. Names are those that are not `known`, and not in parts
    of the sentence that are `settled` otherwise, from start to end.
    """
    verbatims = find_verbatims(sentence)
    numbers = _numbers(_without(verbatims, sentence, " "))
    taken = [*settled, *((one.start, one.end) for one in verbatims)]
    names = tuple(
        name
        for name in (known.unknown_names(sentence) if known else ())
        if all(name.end <= start or end <= name.start for start, end in taken)
    )
    return Carried(verbatims, numbers, names) if verbatims or numbers or names else NOTHING


def find_verbatims(sentence: str) -> tuple[Verbatim, ...]:
    """Addresses and placeholders, in order."""
    found = []
    for match in _VERBATIM.finditer(sentence):
        text = match[0]
        if text[0] not in "{$%":
            text = _without_marks(text)
        found.append(Verbatim(text, match.start()))
    return tuple(found)


def _without_marks(address: str) -> str:
    """An address without the sentence's marks behind it; a bracket that was opened in it is its own."""
    surplus = {closing: address.count(closing) - address.count(opening) for opening, closing in ("()", "[]")}
    end = len(address)
    while address[end - 1 : end] in _MARKS:
        mark = address[end - 1]
        if mark in surplus:
            if surplus[mark] <= 0:
                break
            surplus[mark] -= 1
        end -= 1
    return address[:end]


def missing_verbatims(carried: Carried, target: str) -> tuple[Verbatim, ...]:
    """Those that `target` does not have, or not as often."""
    if not carried.verbatims:
        return ()
    left = {text: target.count(text) for text in {one.text for one in carried.verbatims}}
    missing = []
    for one in carried.verbatims:
        left[one.text] -= 1
        if left[one.text] < 0:
            missing.append(one)
    return tuple(missing)


def missing_names(carried: Carried, target: str) -> tuple[Name, ...]:
    """Those that `target` does not have as they are."""
    return tuple(name for name in carried.distinct_names if not has_word(name.text, target))


def missing_numbers(carried: Carried, target: str) -> tuple[str, ...]:
    """Those that `target` does not have and does not seem to have written out."""
    if not carried.numbers:
        return ()
    for one in carried.verbatims:
        target = target.replace(one.text, " ")
    there = Counter(map(_value, _numbers(target)))
    missing = []
    for number in carried.numbers:
        if there[_value(number)]:
            there[_value(number)] -= 1
        else:
            missing.append(number)
    # What is left over in the target is a number that the source does not have.
    replaced = there.total() > 0
    return tuple(number for number in missing if replaced or not _may_be_words(number))


def has_nothing_to_translate(sentence: str) -> bool:
    """Whether a sentence has no letters besides what is carried over as it is."""
    if not any(map(str.isalpha, sentence)):
        return True
    return not any(map(str.isalpha, _without(find_verbatims(sentence), sentence, "")))


def _without(verbatims: Sequence[Verbatim], sentence: str, instead: str) -> str:
    starts, ends = [one.start for one in verbatims], [one.end for one in verbatims]
    pieces = zip([0, *ends], [*starts, len(sentence)], strict=True)
    return instead.join(sentence[start:end] for start, end in pieces)


def _numbers(text: str) -> tuple[str, ...]:
    """The numbers of a text, as they are written; a date is three."""
    return tuple(_NUMBER.findall(_DATE.sub(r"\1 / \2 / \3", _TIME.sub(" ", text))))


def is_clear(number: str) -> bool:
    """Whether a number is the same in all languages, as it is written; 3,417 is not."""
    return not _UNCLEAR.fullmatch(number)


def ungrouped(number: str) -> str:
    """A number without what groups its digits, its decimal mark as it is: 1 234,50 is 1234,50."""
    decimals = _DECIMALS.search(number)
    end = decimals.start() if decimals else len(number)
    return _SEPARATORS.sub("", number[:end]) + number[end:]


def _value(number: str) -> str:
    """What a number is, however it is written: 12,50 and 12.5 are one, 1,250 and 1 250 another."""
    whole, _, decimals = ungrouped(number).replace(",", ".").partition(".")
    decimals = decimals.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{decimals}" if decimals else "")


def _may_be_words(number: str) -> bool:
    value = _value(number)
    if not value.isdigit():
        return False
    return len(value.rstrip("0")) == 1 or (len(value) < 3 and int(value) <= _LARGEST_WORD)
