"""Characters that do not belong: what no sentence holds, text that was decoded with the wrong table, and strays."""

import re
import unicodedata
from collections import Counter
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dragoman.text.corpus import Pair
from dragoman.text.diagnosis import MAX_EXAMPLES, Finding, Severity, Tally, counted, example_of

_LEAST_CHARACTERS = 100_000  # in less text than that, every other character is rare
_MANY = 0.01
_RARE_SHARE = 2e-7
_FOREIGN_SHARE = 1e-3  # of a side's letters: a script below that is a guest in the language
# Zero-width space and non-joiners of words, soft hyphen, byte order mark, line separators, directional overrides.
_INVISIBLE = frozenset("\u00ad\u200b\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\ufeff\ufffc\ufffd")

# The characters that the bytes 0x80-0xbf, which only continue a character in UTF-8, become in Windows-1252 or Latin-1.
_CONTINUATION = "".join(bytes([b]).decode("cp1252", "replace").replace("\ufffd", chr(b)) for b in range(0x80, 0xC0))
_BYTES = {character: 0x80 + offset for offset, character in enumerate(_CONTINUATION)}
# Some of them may well follow a capital letter in sound text: CAFÉ », IRMÃ…
_TELLING = "".join(character for character in _CONTINUATION if character not in "\u00a0»›…’”–—")
_MAYBE_MOJIBAKE = re.compile(f"[\u00c2-\u00f4][{re.escape(_TELLING)}]")
_SURELY_MOJIBAKE = re.compile("Ã[¡¢£¤¥§¨©ª«¬®¯°±²³´µ¶¸¹º¼½¿‰€]|Â[«»°·¿¡]|â€[™œ˜¦“”\u009c\u009d]")


class CharacterProbe:
    """Counts every character of both sides, and the pairs in which some should not be."""

    def __init__(self) -> None:
        self._counts = [np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)]
        self._first: list[dict[int, tuple[str, Pair]]] = [{}, {}]
        self._junk = Tally()
        self._mojibake = Tally()

    def look(self, path: str, pairs: list[Pair]) -> None:
        """The next pairs of the file."""
        for side, texts in enumerate(([pair.source for pair in pairs], [pair.target for pair in pairs])):
            codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
            counts = np.bincount(codes, minlength=len(self._counts[side])).astype(np.int64)
            counts[: len(self._counts[side])] += self._counts[side]
            self._counts[side] = counts
            first = self._first[side]
            for code in np.flatnonzero(counts).tolist():
                if code not in first:
                    first[code] = (path, next(p for p, text in zip(pairs, texts, strict=True) if chr(code) in text))
        for pair in pairs:
            junk = junk_of(pair.source) + junk_of(pair.target)
            if junk:
                self._junk.add(path, pair, describe(junk))
            repaired = repair(pair.source) or repair(pair.target)
            if repaired:
                self._mojibake.add(path, pair, f"perhaps it was {repaired}")

    def findings(self, where: str, num_pairs: int) -> list[Finding]:
        """What there is to say in the end."""
        junk, mojibake, found = self._junk, self._mojibake, []
        if junk.count:
            what = counted(junk.count, "pairs", "with control, invisible or broken characters")
            advice = "Remove these characters, or the pairs: they teach nothing, and the model may repeat them."
            found.append(junk.finding("junk-characters", "warning", where, num_pairs, what, advice))
        if mojibake.count:
            what = counted(mojibake.count, "pairs", "whose UTF-8 was once read as something else (Ã© for é)")
            advice = "Undo the wrong conversion (encode as Windows-1252, decode as UTF-8), or drop the pairs."
            severity: Severity = "problem" if mojibake.count >= _MANY * num_pairs else "warning"
            found.append(mojibake.finding("mojibake", severity, where, num_pairs, what, advice))
        return found + self._strays(where, num_pairs)

    def _strays(self, where: str, num_pairs: int) -> list[Finding]:
        strays = [(side, code) for side in (0, 1) for code in strays_of(self._counts[side])]
        if not strays:
            return []
        examples = []
        for side, code in strays[:MAX_EXAMPLES]:
            path, pair = self._first[side][code]
            examples.append(example_of(path, pair, describe(chr(code))))
        occurrences = sum(int(self._counts[side][code]) for side, code in strays)
        listed = " ".join(chr(code) for _, code in strays[:40] if chr(code).isprintable())
        what = counted(
            len(strays), "characters", f"rare enough to be junk, in {counted(occurrences, 'places')}: {listed}"
        )
        advice = "Look whether they belong there; a model learns nothing of what it sees once or twice."
        share = min(1.0, occurrences / num_pairs)
        return [Finding("rare-characters", "note", where, what, len(strays), share, advice, tuple(examples))]


def junk_of(text: str) -> str:
    """The characters of a text that no sentence should hold, each once."""
    if text.isprintable() and "\ufffd" not in text and "\ufffc" not in text:
        return ""
    return "".join(dict.fromkeys(filter(_is_junk, text)))


@cache
def _is_junk(character: str) -> bool:
    return character in _INVISIBLE or (character != "\t" and unicodedata.category(character) in ("Cc", "Co", "Cn"))


def repair(text: str) -> str:
    """What a text was before its UTF-8 was read as Windows-1252 or Latin-1; empty where it seems never to have been."""
    if text.isascii() or not _MAYBE_MOJIBAKE.search(text):
        return ""
    try:
        return bytes(_BYTES.get(c) or c.encode("latin-1")[0] for c in text).decode("utf-8")
    except UnicodeError:
        return _SURELY_MOJIBAKE.sub(_repair_match, text) if _SURELY_MOJIBAKE.search(text) else ""


def _repair_match(match: re.Match[str]) -> str:
    try:
        return bytes(_BYTES.get(c) or ord(c) for c in match[0]).decode("utf-8")
    except UnicodeError:
        return match[0]


def describe(characters: str) -> str:
    """`U+00AD SOFT HYPHEN`, for each character."""
    return ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, 'CONTROL OR UNASSIGNED')}" for c in characters[:5])


def strays_of(counts: NDArray[np.int64]) -> list[int]:
    """The rare ones among counted code points: letters of a script that the text is not written in, then odd signs.

    A rare letter of the text's own script is no stray: most Chinese characters are rare.
    """
    total = int(counts.sum())
    if total < _LEAST_CHARACTERS:
        return []
    codes = np.flatnonzero(counts).tolist()
    scripts: Counter[str] = Counter()
    for code in codes:
        scripts[_script(code)] += int(counts[code])
    letters = total - scripts[""]
    limit = max(2, int(total * _RARE_SHARE))
    rare = [code for code in codes if counts[code] <= limit and not _is_ordinary(chr(code))]
    foreign = [code for code in rare if _script(code) and scripts[_script(code)] < _FOREIGN_SHARE * letters]
    return foreign + [code for code in rare if not _script(code)]


def _is_ordinary(character: str) -> bool:
    """Signs that any text may hold once, and junk, which is counted elsewhere."""
    category = unicodedata.category(character)
    return character.isascii() or category[0] in "PZC" or category == "Sc" or _is_junk(character)


def _script(code: int) -> str:
    """The script of a letter, as far as the first word of its name tells; empty for signs."""
    if not unicodedata.category(chr(code)).startswith(("L", "M")):
        return ""
    return unicodedata.name(chr(code), "?").partition(" ")[0].partition("-")[0]
