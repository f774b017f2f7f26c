"""From a file's name and bytes to a document: which reader, and which characters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from dragoman.errors import DataError
from dragoman.translator.translation import Translation

EXTENSIONS = (".txt", ".html", ".htm", ".srt", ".vtt", ".docx", ".odt")
CONTENT_TYPES = {
    ".txt": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".srt": "application/x-subrip",
    ".vtt": "text/vtt",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".odt": "application/vnd.oasis.opendocument.text",
}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(rb"<meta\b[^>]{0,199}?charset\s*+=\s*+[\"']?+\s*+([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_CHARSET_BYTES = 4096
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252"}  # as every browser takes them
_CP1252_LACKS = frozenset(b"\x81\x8d\x8f\x90\x9d")
_ASCII = bytes(range(0x20, 0x7F))


class Document(Protocol):
    """A file that was read."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What is to be translated."""

    @property
    def needs_alignment(self) -> bool:
        """Whether translations must say which words belong together."""

    def render(self, translations: Sequence[Translation | str]) -> bytes:
        """The file with translations of its texts, one each, in order."""


class Page(Protocol):
    """A document that is one string."""

    @property
    def texts(self) -> tuple[str, ...]: ...
    @property
    def needs_alignment(self) -> bool: ...
    def render(self, translations: Sequence[Translation | str]) -> str: ...


@dataclass(frozen=True)
class _Plain:
    """Text, line by line; the translator keeps the lines."""

    text: str
    needs_alignment: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.text.strip() else ()

    def render(self, translations: Sequence[Translation | str]) -> str:
        return next((one if isinstance(one, str) else one.text for one in translations), self.text)


@dataclass(frozen=True)
class _TextFile:
    """A page, and how its characters are written."""

    page: Page
    mark: bytes
    encoding: str
    errors: str = "strict"

    @property
    def texts(self) -> tuple[str, ...]:
        return self.page.texts

    @property
    def needs_alignment(self) -> bool:
        return self.page.needs_alignment

    def render(self, translations: Sequence[Translation | str]) -> bytes:
        return self.mark + self.page.render(translations).encode(self.encoding, errors=self.errors)


def extension_of(name: str) -> str:
    """The extension of a file's name that says how to read it; refuses those that nothing can be done with."""
    extension = PurePath(name.replace("\\", "/")).suffix.lower()
    if extension not in EXTENSIONS:
        raise DataError(f"{extension or 'a name without extension'} is not supported: send {', '.join(EXTENSIONS)}")
    return extension


def read(name: str, data: bytes) -> Document:
    """The texts of a file, and what is around them. Of the name only the extension is looked at."""
    extension = extension_of(name)
    if extension == ".docx":
        from dragoman.documents.docx import read_docx

        return read_docx(data)
    if extension == ".odt":
        from dragoman.documents.odt import read_odt

        return read_odt(data)
    if extension in (".html", ".htm"):
        from dragoman.translator.markup import parse

        return _read_text(data, parse, _charset(data), "xmlcharrefreplace")
    if extension in (".srt", ".vtt"):
        from dragoman.documents.subtitles import read_subtitles

        return _read_text(data, read_subtitles)
    return _read_text(data, _Plain)


def _read_text(data: bytes, make: Callable[[str], Page], encoding: str = "utf-8", errors: str = "strict") -> _TextFile:
    mark = b""
    for one, marked in _MARKS:
        if data.startswith(one):
            mark, encoding = one, marked
    if encoding == "cp1252" and not _CP1252_LACKS.isdisjoint(data):
        encoding = "iso8859-1"
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start} of the file is not {encoding.upper()}: save it as UTF-8") from error
    return _TextFile(make(text), mark, encoding, errors)


def _charset(data: bytes) -> str:
    """What an HTML file says that its characters are written in; UTF-8 if it says nothing that is known."""
    declared = _CHARSET.search(data, 0, _CHARSET_BYTES)
    try:
        name = codecs.lookup(declared[1].decode() if declared else "utf-8").name
        name = _MEANT.get(name, name)
        # It said so in ASCII; and some of Python's codecs are no character sets at all.
        return name if "escape" not in name and _ASCII.decode(name) == _ASCII.decode("ascii") else "utf-8"
    except (LookupError, ValueError):
        return "utf-8"
