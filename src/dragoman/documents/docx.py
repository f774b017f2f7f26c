"""Word documents: body, tables, text boxes, headers, footers and notes; all else stays.

Word cuts text into runs, each with a format, and often in the middle of a word for reasons of its own. Of a paragraph,
the format that most of its text has is that of the paragraph; runs of another one are treated like tags, which land on
the words they were on. A paragraph that is translated is written in new runs, one that is not stays byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.parsers import expat

from dragoman.documents.archive import Archive, escape, open_archive, read_xml
from dragoman.documents.docx_paragraph import FORMAT, IN_RUN, ParagraphReader
from dragoman.documents.office import OfficeDocument, Paragraph, Part, is_changed
from dragoman.errors import DataError
from dragoman.translator.inline import Piece

_TYPES = re.compile(
    r"\.wordprocessingml\.(?:document\.main|header|footer|footnotes|endnotes)\+xml$|\.document\.macroEnabled\.main\+xml$"
)


def read_docx(data: bytes) -> OfficeDocument:
    """The paragraphs of a Word document."""
    archive = open_archive(data)
    parts: dict[str, Part] = {}
    for name in _text_parts(archive):
        content = archive.get(name)
        if content is not None:
            parts[name] = ParagraphReader(Part.of(read_xml(content))).read()
    if not parts:
        raise DataError("the file has no Word text in it, expected a Word document (.docx)")
    return OfficeDocument(archive, parts, write)


def _text_parts(archive: Archive) -> list[str]:
    """The names of the parts that have text, as the table of contents gives them."""
    content = archive.get("[Content_Types].xml")
    if content is None:
        raise DataError("the file has no [Content_Types].xml, expected a Word document (.docx)")
    read_xml(content)
    names: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "Override" and _TYPES.search(attributes.get("ContentType", "")):
            names.append(attributes.get("PartName", "").lstrip("/"))

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.Parse(content, True)
    there = {info.filename for info, _ in archive.entries}
    # Each once, however often it is listed: reading a part is work.
    return [name for name in dict.fromkeys(names) if name in there]


def write(pieces: Sequence[Piece], paragraph: Paragraph) -> str:
    """A translated paragraph in runs, as Word writes it."""
    if not is_changed(pieces):
        return paragraph.raw
    prefix, base = paragraph.style
    formats = [base]
    written: list[str] = []
    text: list[str] = []

    def flush() -> None:
        joined = escape("".join(text))
        text.clear()
        if joined:
            run = f'<{prefix}t xml:space="preserve">{joined}</{prefix}t>'
            written.append(f"<{prefix}r>{formats[-1]}{run}</{prefix}r>")

    for piece in pieces:
        if piece.kind in ("text", "new"):
            text.append(piece.text)
            continue
        flush()
        if piece.name != FORMAT:
            in_run = piece.name == IN_RUN
            written.append(f"<{prefix}r>{formats[-1]}{piece.raw}</{prefix}r>" if in_run else piece.raw)
        elif piece.kind == "open":
            formats.append(piece.raw)
        else:
            formats.pop()
    flush()
    return "".join(written)
