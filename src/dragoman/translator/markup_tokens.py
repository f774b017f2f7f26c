"""Markup as tokens that joined are the text, whatever the text is; in time that grows with its length alone.

What looks like a tag but never ends is text, as a lone `<` is. A comment or a script that never ends goes on to the end
of the text, as browsers see it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["text", "open", "close", "void", "keep"]

_VOID = "area base br col embed hr img input link meta param source track wbr"
VOID_TAGS = frozenset(_VOID.split())
# What they hold is no markup.
_RAW = "script style textarea xmp iframe noembed noframes plaintext"
_RAW_TAGS = frozenset(_RAW.split())
_HTML_MARK = re.compile(r"<(?:/?[A-Za-z]|[!?])")
_XML_MARK = re.compile(r"<(?:/?[^\W\d]|[!?])")
_BRACKET = re.compile(r"[<>]")
_NAME = re.compile(r"</?([^\s/<>]++)")
_PLAIN_TAG = re.compile(r"</?[^\s/<>]++[^<>=]*+>")
# What matters inside a tag: a quoted value, where < and > mean nothing, and < and >.
_EVENT = re.compile(r"=\s*+[\"']|[<>]")
_ATTRIBUTE = re.compile(r"([^\s\"'<>/=]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'=<>`]++)))?+")


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a text: `raw` is how it stands there, `name` a tag's, in lower case for HTML."""

    kind: TokenKind
    raw: str
    name: str = ""


def tokenize(text: str, *, xml: bool = False) -> list[Token]:
    """The tokens of HTML, or of XML."""
    tokens: list[Token] = []
    mark = _XML_MARK if xml else _HTML_MARK
    dead: set[int] = set()
    start = position = 0
    while (found := mark.search(text, position)) is not None:
        begin = found.start()
        end = _declaration_end(text, begin, xml) if text[begin + 1] in "!?" else _tag_end(text, begin, dead)
        if end < 0:
            position = begin + 1
            continue
        if start < begin:
            tokens.append(Token("text", text[start:begin]))
        token = _token(text[begin:end], xml)
        tokens.append(token)
        start = position = end
        if token.kind == "open" and not xml and token.name in _RAW_TAGS:
            start = position = _raw_end(text, end, token.name)
            if end < start:
                tokens.append(Token("keep", text[end:start]))
    if start < len(text):
        tokens.append(Token("text", text[start:]))
    return tokens


def attributes(raw: str) -> dict[str, str]:
    """The attributes of a tag, their names in lower case, their values as they are written."""
    head = _NAME.match(raw)
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(raw, head.end() if head else 0):
        found.setdefault(match[1].lower(), match[2] or match[3] or match[4] or "")
    return found


def _token(raw: str, xml: bool) -> Token:
    if raw[1] in "!?":
        return Token("keep", raw)
    head = _NAME.match(raw)
    assert head is not None
    name = head[1] if xml else head[1].lower()
    if raw[1] == "/":
        return Token("close", raw, name)
    is_void = raw.endswith("/>") or (not xml and name in VOID_TAGS)
    return Token("void" if is_void else "open", raw, name)


def _declaration_end(text: str, begin: int, xml: bool) -> int:
    """The end of a comment, a doctype, an instruction or a CDATA section, or -1."""
    for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>" if xml else ">")):
        if text.startswith(opening, begin):
            end = text.find(closing, begin + len(opening))
            return len(text) if end < 0 else end + len(closing)
    return _tag_end_plain(text, begin)


def _tag_end_plain(text: str, begin: int) -> int:
    """The next `>` if no `<` comes before it: a doctype has quotes, but nothing in them that ends it."""
    match = _BRACKET.search(text, begin + 1)
    return match.end() if match is not None and match[0] == ">" else -1


def _tag_end(text: str, begin: int, dead: set[int]) -> int:
    """The end of the tag that begins here, or -1.

    `dead` are the places of quotes from where no end was found: who comes by there again need not look again, so that
    all attempts together are linear in the text.
    """
    plain = _PLAIN_TAG.match(text, begin)
    if plain is not None:
        return plain.end()
    passed: list[int] = []
    position = begin + 1
    while (event := _EVENT.search(text, position)) is not None:
        if event[0] == ">":
            return event.end()
        if event[0] == "<" or event.start() in dead:
            break
        passed.append(event.start())
        closing = text.find(event[0][-1], event.end())
        position = closing + 1 if closing >= 0 else event.end()
    dead.update(passed)
    return -1


def _raw_end(text: str, start: int, name: str) -> int:
    """Where the content of a script or the like ends."""
    match = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, start)
    return len(text) if match is None or name == "plaintext" else match.start()
