"""Which parts of a page are texts to translate, and what they are made of."""

from __future__ import annotations

import html as references
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count

from dragoman.translator.inline import Piece, text_of
from dragoman.translator.markup_tokens import Token, attributes, tokenize
from dragoman.translator.markup_tree import element_ends, is_outline
from dragoman.translator.placement import PLACEHOLDER

# The end of a text. What is not here flows with it, unknown tags too, as in browsers.
_BLOCKS = """
    address article aside audio base blockquote body button canvas caption center col colgroup dd details dialog dir
    div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe
    legend li link main menu meta nav noembed noframes noscript object ol optgroup option p param picture pre script
    search section select source style summary table tbody td template textarea tfoot th thead title tr track ul video
    xmp
"""
_BLOCK_TAGS = frozenset(_BLOCKS.split())
# What they hold is not for translation. Of those within a text the model sees a placeholder.
_KEPT = """
    audio canvas code iframe kbd math noembed noframes object plaintext pre samp script style svg textarea tt var video
    xmp
"""
_KEPT_TAGS = frozenset(_KEPT.split())
_UNSEEN_TAGS = frozenset(("svg",))
_REFERENCE = re.compile(r"&(?:#\d{1,8};?|#[xX][0-9a-fA-F]{1,8};?|[A-Za-z][A-Za-z0-9]{1,31};?)|[ \t\n\r\f]+")
_XML_REFERENCE = re.compile(r"&(?:#\d{1,8};|#[xX][0-9a-fA-F]{1,8};|[^\W\d][\w.:-]{0,63};)|[ \t\n\r\f]+")
_XML_NAMES = frozenset(("&amp;", "&lt;", "&gt;", "&quot;", "&apos;"))
_WORDS = re.compile(r"[\w'’-]+(?: [\w'’-]+){0,4}")
_NOTE_MARK = re.compile(r"[\[(]?[\d*†‡§]{1,3}[\])]?")
_SENTENCE_END = ".!?…:;"
_LOOK_AHEAD_TOKENS = 8


@dataclass(frozen=True)
class Rules:
    """What is markup for whom; see `markup.parse`."""

    xml: bool = False
    ignored: frozenset[str] = frozenset()
    splitting: frozenset[str] = frozenset()
    non_splitting: frozenset[str] = frozenset()
    outline: bool = True


def read_units(text: str, rules: Rules) -> Iterator[str | tuple[Piece, ...]]:
    """What stays, and in between units to translate, in order."""
    reader = _Reader(tokenize(text, xml=rules.xml), rules)
    reader.read()
    return iter(reader.parts)


class _Reader:
    """Walks over tokens once, and gathers pieces until a text ends."""

    def __init__(self, tokens: Sequence[Token], rules: Rules) -> None:
        self.parts: list[str | tuple[Piece, ...]] = []
        self._tokens = tokens
        self._rules = rules
        self._ends = element_ends(tokens, xml=rules.xml)
        self._outline = is_outline(tokens, self._ends) if rules.xml and rules.outline else []
        # How many blocks there are before each token.
        self._num_blocks = list(accumulate(map(self._is_block, range(len(tokens))), initial=0))
        self._pieces: list[Piece] = []
        self._last_char = " "
        # Where elements end that say whether they are translated, and what was so before them.
        self._scopes: list[tuple[int, bool]] = []
        self._is_on = True

    def read(self) -> None:
        at = 0
        while at < len(self._tokens):
            while self._scopes and self._scopes[-1][0] <= at:
                self._flush()
                self._is_on = self._scopes.pop()[1]
            at = self._take(at)
        self._flush()

    def _take(self, at: int) -> int:
        """Take a token, or an element that stays, and say which comes next."""
        token = self._tokens[at]
        if token.kind == "open":
            wish = self._wish(token)
            if self._is_on and (self._keep_inline(at) if wish is False else self._keep_note_mark(at)):
                return self._ends[at].stop
            if wish is not None and wish != self._is_on:
                self._flush()
                self._scopes.append((self._ends[at].stop, self._is_on))
                self._is_on = wish
        if not self._is_on:
            self.parts.append(token.raw)
        elif token.kind == "text":
            self._add_text(token.raw)
        elif token.name == "br" and not self._rules.xml:
            self._add_break(at)
        elif self._is_block(at):
            self._flush()
            self.parts.append(token.raw)
        elif token.kind in ("open", "close"):
            if token.kind == "open" and token.name == "a" and self._follows_link():
                self._flush()
            self._pieces.append(Piece(token.kind, token.raw, name=token.name))
        else:
            self._pieces.append(Piece("atom", token.raw))
        return at + 1

    def _wish(self, token: Token) -> bool | None:
        """Whether an element says that it is to be translated; None if it does not say."""
        if token.name in self._rules.ignored or (not self._rules.xml and token.name in _KEPT_TAGS):
            return False
        if "translate" in token.raw.lower():
            found = attributes(token.raw)
            if "notranslate" in found.get("class", "").lower().split():
                return False
            return {"no": False, "yes": True, "": True}.get(found.get("translate", "?").lower())
        return None

    def _is_block(self, at: int) -> bool:
        token = self._tokens[at]
        if token.name in self._rules.splitting:
            return True
        if token.kind == "text" or token.name in self._rules.non_splitting:
            return False
        if self._rules.xml:
            return bool(self._outline) and self._outline[at]
        is_doctype = token.kind == "keep" and token.raw[:2] == "<!" and not token.raw.startswith("<!--")
        return is_doctype or token.name in _BLOCK_TAGS

    def _follows_link(self) -> bool:
        """Two links without a space between them are set apart by style: `<a>Home</a><a>About</a>`."""
        return bool(self._pieces) and self._pieces[-1].kind == "close" and self._pieces[-1].name == "a"

    def _keep_inline(self, at: int) -> bool:
        """Add an element within a text that stays as it is; False if it is none."""
        end = self._ends[at]
        if not end.is_closed or self._is_block(at):
            return False
        if self._num_blocks[at + 1] < self._num_blocks[end.stop - 1]:
            return False
        inner = self._tokens[at + 1 : end.stop - 1]
        raw = "".join(token.raw for token in self._tokens[at : end.stop])
        text = " ".join(references.unescape("".join(one.raw for one in inner if one.kind == "text")).split())
        if not text or self._tokens[at].name in _UNSEEN_TAGS:
            self._pieces.append(Piece("atom", raw))
        else:
            # The number is filled in when the unit is whole, and its text is known.
            self._pieces.append(Piece("opaque", raw, text if _WORDS.fullmatch(text) else "{}"))
            self._last_char = "}"
        return True

    def _keep_note_mark(self, at: int) -> bool:
        """Add what stands at a word without being of it, `<sup>1</sup>` or `<a>[1]</a>`; False if there is none."""
        end = self._ends[at]
        if self._last_char == " " or not end.is_closed or end.stop - at > _LOOK_AHEAD_TOKENS:
            return False
        inner = self._tokens[at + 1 : end.stop - 1]
        text = "".join(token.raw for token in inner if token.kind == "text").strip()
        is_raised = "sup" in (self._tokens[at].name, *(token.name for token in inner))
        if not (is_raised or text[:1] == "[") or not _NOTE_MARK.fullmatch(text):
            return False
        self._pieces.append(Piece("atom", "".join(token.raw for token in self._tokens[at : end.stop])))
        return True

    def _add_text(self, raw: str) -> None:
        pattern = _XML_REFERENCE if self._rules.xml else _REFERENCE
        start = 0
        for match in pattern.finditer(raw):
            self._add_plain(raw[start : match.start()])
            start = match.end()
            if match[0][0] == "&":
                self._add_reference(match[0])
            else:
                self._add_space(match[0])
        self._add_plain(raw[start:])

    def _add_space(self, raw: str) -> None:
        """White space is one space, also across tags."""
        if self._last_char != " ":
            self._pieces.append(Piece("text", raw, " "))
            self._last_char = " "
        elif self._pieces and self._pieces[-1].kind == "atom":
            # An image between two spaces keeps both.
            atom = self._pieces.pop()
            self._pieces.append(Piece("atom", atom.raw + raw, atom.text))
        else:
            self._pieces.append(Piece("text", raw))

    def _add_plain(self, text: str) -> None:
        if text:
            self._pieces.append(Piece("text", text, text))
            self._last_char = text[-1]

    def _add_reference(self, raw: str) -> None:
        if self._rules.xml and raw[1] != "#" and raw not in _XML_NAMES:
            self._pieces.append(Piece("atom", raw))  # only its document knows what it means
            return
        text = references.unescape(raw)
        if not text or text == raw:
            self._add_plain(raw)
            return
        self._pieces.append(Piece("text", raw, text))
        self._last_char = text[-1]

    def _add_break(self, at: int) -> None:
        """A line break ends a text, unless the sentence plainly goes on after it."""
        before = text_of(self._pieces[-_LOOK_AHEAD_TOKENS:]).rstrip()[-1:]
        following = self._tokens[at + 1 : at + 1 + _LOOK_AHEAD_TOKENS]
        after = ""
        for token in following:
            if token.name == "br" or after:
                break
            after = references.unescape(token.raw[:99]).lstrip()[:1] if token.kind == "text" else ""
        is_apart = self._last_char != " " or (bool(self._pieces) and self._pieces[-1].text == " ")
        if is_apart and before and before not in _SENTENCE_END and after.islower():
            raw = self._tokens[at].raw
            if self._last_char == " ":
                raw = self._pieces.pop().raw + raw
            self._pieces.append(Piece("atom", raw, " "))
            self._last_char = " "
        else:
            self._flush()
            self.parts.append(self._tokens[at].raw)

    def _flush(self) -> None:
        """The end of a text."""
        pieces, self._pieces, self._last_char = self._pieces, [], " "
        if not pieces:
            return
        if not any(map(str.isalnum, text_of([piece for piece in pieces if piece.kind == "text"]))):
            self.parts.append("".join(piece.raw for piece in pieces))
            return
        blanks: list[str] = []
        while pieces[-1].kind == "text" and not pieces[-1].text.strip(" "):
            blanks.append(pieces.pop().raw)
        self.parts += [tuple(_numbered(pieces)), *reversed(blanks)]


def _numbered(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces, their placeholders numbered by numbers that the text does not have."""
    there = set(PLACEHOLDER.findall(text_of(pieces)))
    names = (name for name in map("{{{}}}".format, count(1)) if name not in there)
    for piece in pieces:
        is_placeholder = piece.kind == "opaque" and piece.text == "{}"
        yield Piece("opaque", piece.raw, next(names)) if is_placeholder else piece
