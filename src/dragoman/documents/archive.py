"""Zip archives and the XML in them, from strangers: read in memory, bounded in every way, and never expanded.

Nothing is written to disk, and names of entries name nothing but themselves. XML is checked by expat, and refused with
a document type or deep nesting; the readers then work on its text, so that what they do not know stays as it is.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat

from dragoman.errors import DataError

MOST_ENTRIES = 2000
MOST_BYTES = 64 << 20
MOST_XML_BYTES = 8 << 20
MOST_TIMES = 200
"""How many times its size an entry may become; text does not shrink that much."""
_SMALL_BYTES = 1 << 20
MOST_DEPTH = 256
_ENCODING = re.compile(rb"""<\?xml[^>]{0,99}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_ENCODINGS = frozenset(("utf-8", "us-ascii", "ascii", "iso-8859-1", "windows-1252"))
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Archive:
    """The entries of a zip archive, in order, with their contents."""

    entries: tuple[tuple[zipfile.ZipInfo, bytes], ...]
    comment: bytes = b""

    def get(self, name: str) -> bytes | None:
        return next((content for info, content in self.entries if info.filename == name), None)

    def with_contents(self, contents: Mapping[str, bytes]) -> bytes:
        """The archive with other contents for some entries; all else is as it was, in the same order."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.comment = self.comment
            for info, content in self.entries:
                copy = zipfile.ZipInfo(info.filename, info.date_time)
                copy.compress_type, copy.external_attr = info.compress_type, info.external_attr
                copy.create_system, copy.comment = info.create_system, info.comment
                archive.writestr(copy, contents.get(info.filename, content))
        return buffer.getvalue()


def open_archive(data: bytes) -> Archive:
    """Read an archive whole; refuse what is too large, too many, or made to deceive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _check(infos)
            return Archive(tuple((info, _read(archive, info)) for info in infos), archive.comment)
    except DataError:
        raise
    # Python's zipfile has no exception of its own for most of what can be wrong with a file.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
        raise DataError("the file is damaged or encrypted, expected a document as a word processor saves it") from error


def _check(infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MOST_ENTRIES:
        raise DataError(f"the document has {len(infos)} parts, at most {MOST_ENTRIES} are taken")
    total = sum(info.file_size for info in infos)
    if total > MOST_BYTES:
        raise DataError(f"the document unpacks to {total} bytes, at most {MOST_BYTES} are taken")
    names = {info.filename for info in infos}
    if len(names) < len(infos):
        raise DataError("the document has two parts of one name, which no word processor writes")
    for info in infos:
        if info.filename.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", info.filename) or "\0" in info.filename:
            raise DataError("the document has a part whose name leads out of it, which no word processor writes")
        is_text = info.filename.lower().endswith((".xml", ".rels"))  # a white picture packs better than any text
        if is_text and info.file_size > max(_SMALL_BYTES, MOST_TIMES * info.compress_size):
            raise DataError(f"a part of the document unpacks to more than {MOST_TIMES} times its size: it is no text")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError("the document is packed in a way that no word processor uses: save it again")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """An entry; never more than it says that it has."""
    with archive.open(info) as file:
        content = file.read(info.file_size + 1)
    if len(content) != info.file_size:
        raise DataError("a part of the document is not as long as it says: save it again")
    return content


@dataclass(frozen=True)
class XmlText:
    """The text of an XML file, and how to write it again."""

    text: str
    encoding: str

    def encode(self, text: str) -> bytes:
        return text.encode(self.encoding, errors="xmlcharrefreplace")


def read_xml(content: bytes) -> XmlText:
    """The text of XML that is well formed, not too large, not too deep, and has no document type."""
    if len(content) > MOST_XML_BYTES:
        raise DataError(f"the document has {len(content)} bytes of text and marks, at most {MOST_XML_BYTES} are taken")
    encoding = _encoding(content)
    parser = expat.ParserCreate()
    depth = 0

    def start(name: str, attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise DataError(f"the document is nested more than {MOST_DEPTH} deep: it cannot be read")

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*declaration: object) -> None:
        raise DataError("the document declares a document type or entities, which no word processor writes")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
        return XmlText(content.decode(encoding), encoding)
    except (expat.ExpatError, UnicodeDecodeError) as error:
        raise DataError(f"the document is damaged ({error}): open it in a word processor and save it again") from error


def escape(text: str) -> str:
    """Text as XML writes it; characters that XML cannot have are left out."""
    return _NOT_XML.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _encoding(content: bytes) -> str:
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return encoding
    declared = _ENCODING.match(content)
    encoding = declared[1].decode().lower() if declared else "utf-8"
    if encoding not in _ENCODINGS:
        raise DataError(f"the document is written in {encoding}, expected UTF-8: save it again")
    return encoding
