"""Text to sentences and back, without losing a character.

`split` cuts text into sentences to translate and a skeleton that stays: line ends, indentation, blank lines, tabs,
the marks of a list, the spaces between sentences. `rebuild` puts translations into the skeleton. `split_long` cuts a
sentence that is too long for the model. Joined again, the parts are the text, whatever the text is.
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.errors import DataError, LengthError

# What may stand around a sentence without being of it: white space, controls, and what has no width.
_BLANKS = "".join(map(chr, (*range(0x21), *range(0x7F, 0xA1), 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029)))
_BLANKS += "\u202f\u205f\u2060\u3000\ufeff"
# A tab is layout, as a line end is: what stands around it are cells, not one sentence. U+0085 is not here: in real
# text it is an ellipsis that was decoded wrongly.
_LAYOUT = re.compile(r"([\n\r\v\f\t\u2028\u2029]+)")
# sentencex takes white space beyond ASCII for one byte and fails in the middle of it.
_WIDE_SPACE = re.compile(r"[^\S ]")
# A line without a mark inside is one sentence, and sentencex need not be loaded to say so.
_INNER_MARK = re.compile(r"[^\w\s,'’-](?=\s*[^\s])")
# sentencex pairs quotes in time that grows with their square and more: a line is cut into windows, and where a window
# is full of quotes, they mean nothing.
_WINDOW = 2000
_MANY_QUOTES = 200
_QUOTES = str.maketrans(dict.fromkeys("\"'“”„‟‘’‚‛«»‹›「」『』《》〈〉", " "))

_LIST_MARK = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxlcIVXLC]{2,5})[.)]")
# What a line of a list begins with, a word to come. In some languages 3. is the third, a part of the sentence.
_MARK = r"[-*•‣▪◦–—]|\(?\d{1,3}\)"
_MARKED = re.compile(rf"\s*(?:{_MARK}|\d{{1,3}}\.)\s+(?=\S*\w)")
_MARKED_BUT_DOT = re.compile(rf"\s*(?:{_MARK})\s+(?=\S*\w)")
_HAS_ORDINALS = re.compile("cs|da|de|et|fi|hr|hu|is|lb|lv|nb|nn|no|pl|sk|sl|sr|tr")
_LAST_WORD = re.compile(r"([\w.°-]{1,12})\.$")
# What sentencex takes for a sentence's end though more must follow: titles, and words before a name or a number.
_ABBREVIATIONS = {
    "el": "αρ Αγ",
    "en": "Mr Mrs Ms Mx Dr Prof St approx fig vol",
    "fi": "klo ns",
    "fr": "M MM Mme Mmes Mlle Mlles Dr Drs Pr Me Mgr St Ste Bd bd Av av apr art chap env fig n no p pp vol janv févr "
    "avr juil sept oct nov déc Exc",
    "hu": "Szt ún",
    "it": "pag n",
    "nl": "Mevr mevr",
    "pl": "dr inż m.in nr p św tzw",
    "pt": "n pág",
    "ro": "dl ex Sf str",
    "ru": "д-р им т.е е",
    "sv": "kl t.ex",
    "tr": "Av örn Sn",
    "uk": "д-р",
}
_KNOWN = {language: frozenset(words.split()) for language, words in _ABBREVIATIONS.items()}
# Scripts that put no space between sentences: kana, ideographs, their punctuation, full-width forms.
SPACELESS = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")

# Where a sentence that is too long is cut, best place first; the cut is at the end of the match. A run of marks or
# spaces is tried from its start only: from each of them, a long one would take time that grows with its square.
_CUTS = (
    re.compile(r"(?<![!?…])[!?…]++[\"'”’»)\]]*+\s+|\.[\"”»)\]]++\s+|[。！？]+[」』”’）]*"),
    re.compile(r"[;:]\s+|[；：]|(?<!\s)\s++(?=[–—]\s)"),
    re.compile(r"[,،]\s+|[，、]"),
    re.compile(r"\s+"),
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence to translate, or a part of the skeleton that stays as it is."""

    text: str
    is_sentence: bool


def split(text: str, language: str = "") -> list[Segment]:
    """The sentences of `text` and what stands around them, in order; their texts joined are `text`."""
    segments: list[Segment] = []
    for index, part in enumerate(_LAYOUT.split(text)):
        if index % 2:
            segments.append(Segment(part, False))
            continue
        mark = _list_mark(part, _primary(language))
        segments.extend([Segment(mark, False)] if mark else [])
        for sentence in _sentences(part[len(mark) :], _primary(language)):
            segments.extend(frame(sentence))
    return _with_whole_skeleton(segments)


def frame(text: str) -> list[Segment]:
    """One sentence, with the blanks before and after it as skeleton; only skeleton where there is nothing else."""
    from_sentence = text.lstrip(_BLANKS)
    sentence = from_sentence.rstrip(_BLANKS)
    before, after = text[: len(text) - len(from_sentence)], from_sentence[len(sentence) :]
    return [Segment(part, part is sentence) for part in (before, sentence, after) if part]


def rebuild(segments: Sequence[Segment], translations: Sequence[str]) -> str:
    """The skeleton with `translations` in place of the sentences, one each, in order.

    Between sentences of a script that needs no space between them, one is put where the translations do need it.
    """
    wanted = sum(segment.is_sentence for segment in segments)
    if wanted != len(translations):
        raise DataError(f"{len(translations)} translations for {wanted} sentences: give one a sentence")
    remaining = iter(translations)
    parts: list[str] = []
    before: Segment | None = None
    for segment in segments:
        part = next(remaining) if segment.is_sentence else segment.text
        if before is not None and before.is_sentence and segment.is_sentence and _needs_space(before.text, parts, part):
            parts.append(" ")
        parts.append(part)
        before = segment
    return "".join(parts)


def split_long(sentence: str, max_pieces: int, count: Callable[[str], int]) -> list[str]:
    """`sentence` in parts of at most `max_pieces` pieces, as `count` counts them; the parts joined are the sentence.

    It is cut near the places that make the parts equal: between clauses where there are any near by, else at a
    comma, a space, or anywhere. A single character that has more pieces than that is left whole.
    """
    if max_pieces < 1:
        raise LengthError(f"max_pieces is {max_pieces}, expected at least 1")
    num_pieces = count(sentence)
    if num_pieces <= max_pieces or len(sentence) < 2:
        return [sentence]
    num_parts = -(-num_pieces // max_pieces)
    cut = _cut_near(sentence, len(sentence) * (num_parts // 2) // num_parts, len(sentence) // (2 * num_parts))
    return split_long(sentence[:cut], max_pieces, count) + split_long(sentence[cut:], max_pieces, count)


def _cut_near(sentence: str, middle: int, reach: int) -> int:
    """The best place to cut within `reach` of `middle`; never an end of the sentence."""
    middle = min(max(middle, 1), len(sentence) - 1)
    start, end = max(middle - reach, 0), min(middle + reach, len(sentence))
    near = sentence[start:end]
    for pattern in _CUTS:
        places = [start + match.end() for match in pattern.finditer(near)]
        inner = [place for place in places if 0 < place < len(sentence)]
        if inner:
            return min(inner, key=lambda place: abs(place - middle))
    nearest = sorted(range(max(middle - 16, 1), min(middle + 17, len(sentence))), key=lambda place: abs(place - middle))
    whole = (place for place in nearest if not _is_joined(sentence[place - 1], sentence[place]))
    return next(whole, middle)


def _is_joined(left: str, right: str) -> bool:
    """Whether two characters make one sign: an accent, a variation, or an emoji of several."""
    joiner = "\u200d"
    return left == joiner or right == joiner or unicodedata.category(right) in ("Mn", "Mc", "Me", "Sk")


def _list_mark(line: str, language: str) -> str:
    """The dash, the bullet or the number that a line of a list begins with, which models lose."""
    match = (_MARKED_BUT_DOT if _HAS_ORDINALS.fullmatch(language) else _MARKED).match(line)
    return match[0] if match else ""


def _sentences(line: str, language: str) -> list[str]:
    """The sentences of a line, each with the blanks that follow it."""
    if not _INNER_MARK.search(line):
        return [line]
    groups: list[list[str]] = []
    for part in _boundaries(line, language):
        if groups and _goes_on(groups[-1], part, language):
            groups[-1].append(part)
        else:
            groups.append([part])
    return ["".join(group) for group in groups]


def _boundaries(line: str, language: str) -> Iterator[str]:
    """The line cut where sentencex sees a sentence end, window by window.

    The last sentence of a window may go on beyond it: the next window begins with it, or, where it is long, with its
    end; what is before that is held back and put in front of what follows.
    """
    start, held = 0, ""
    while start < len(line):
        window = line[start : start + _WINDOW]
        parts = _segment(window, language)
        if start + len(window) < len(line):
            last = parts.pop()
            open_length = min(len(last), _WINDOW // 2)
            if not parts:
                held += last[: len(last) - open_length]
            else:
                parts[0], held = held + parts[0], last[: len(last) - open_length]
            start += len(window) - open_length
        else:
            parts[0], held = held + parts[0], ""
            start = len(line)
        yield from parts


def _segment(text: str, language: str) -> list[str]:
    """The parts of `text` that sentencex finds; all of it as one where what it finds is not the text."""
    import sentencex  # type: ignore[import-untyped]  # here, as much text needs none of it

    plain = _WIDE_SPACE.sub(" ", text)
    without_quotes = plain.translate(_QUOTES)
    if sum(map(str.__ne__, plain, without_quotes)) > _MANY_QUOTES:
        plain = without_quotes
    try:
        found: list[str] = sentencex.segment(language, plain)
    except BaseException as error:
        # Half of a surrogate pair; or a panic of the library, which is no Exception and has no importable name.
        if not isinstance(error, UnicodeEncodeError) and type(error).__name__ != "PanicException":
            raise
        return [text]
    if "".join(found) != plain:
        return [text]
    parts, start = [], 0
    for part in found:
        parts.append(text[start : start + len(part)])
        start += len(part)
    return parts


def _goes_on(group: Sequence[str], right: str, language: str) -> bool:
    """Whether the sentence `group` goes on with `right`, though it looked as if it ended."""
    left = group[-1].rstrip()
    if not _has_word(right) or (len(group) == 1 and (not _has_word(left) or _LIST_MARK.fullmatch(left.lstrip()))):
        return True
    if language == "ja":
        return left.endswith(("」", "』")) and right.startswith(("と", "って"))
    word = _LAST_WORD.search(left, max(len(left) - 14, 0))
    if word is not None and {word[1], word[1].lower()} & _KNOWN.get(language, frozenset()):
        return True
    # In English sentencex tells initials from a sentence that ends in a letter; elsewhere a name is more likely.
    return language != "en" and _ends_in_initial(left)


def _ends_in_initial(text: str) -> bool:
    """`J.`, `(J.`, `J.-P.`, but not `U.S.A.`"""
    return text.endswith(".") and text[-2:-1].isupper() and not (text[-3:-2].isalnum() or text[-3:-2] == ".")


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _with_whole_skeleton(segments: Sequence[Segment]) -> list[Segment]:
    """Neighbouring parts of the skeleton as one."""
    whole: list[Segment] = []
    for is_sentence, group in itertools.groupby(segments, key=lambda segment: segment.is_sentence):
        parts = list(group)
        whole.extend(parts if is_sentence else [Segment("".join(part.text for part in parts), False)])
    return whole


def _needs_space(source: str, parts: Sequence[str], part: str) -> bool:
    """Whether a space is due between the translation of `source`, the last of `parts`, and the next one."""
    left = parts[-1]
    if not left or not part or left[-1].isspace() or part[0].isspace():
        return False
    is_new = SPACELESS.match(source[-1]) is not None
    return is_new and not SPACELESS.match(left[-1]) and not SPACELESS.match(part[0])


def _primary(language: str) -> str:
    """`fr` of `fr`, `fr-CA` or `FR_ca`; English where nothing is known."""
    return re.split(r"[-_]", language.strip().lower())[0] or "en"
