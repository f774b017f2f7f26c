"""Word and OpenDocument files, written by hand, and what a reader of XML sees in them."""

import io
import re
import zipfile
from xml.etree import ElementTree

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml."
_TYPES = {
    "word/document.xml": "document.main", "word/header1.xml": "header", "word/footer1.xml": "footer",
    "word/footnotes.xml": "footnotes", "word/endnotes.xml": "endnotes",
}  # fmt: skip
_ODT = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)


def pack(files: dict[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def docx(body: str, **others: str) -> bytes:
    """A Word document; `others` are the contents of header1, footer1, footnotes and endnotes."""
    contents = {"word/document.xml": f"<w:body>{body}</w:body>"} | {
        f"word/{name}.xml": text for name, text in others.items()
    }
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{_TYPE}{_TYPES[name]}+xml"/>' for name in contents)
    return pack(
        {
            "[Content_Types].xml": f"<Types>{overrides}</Types>",
            "word/media/image1.png": bytes(range(251)),
            "word/styles.xml": "<styles>Bonjour le monde</styles>",
        }
        | {name: f'<?xml version="1.0"?>\n<w:x xmlns:w="{WORD}">{text}</w:x>' for name, text in contents.items()}
    )


def run(text: str, format: str = "") -> str:
    properties = f"<w:rPr>{format}</w:rPr>" if format else ""
    return f'<w:r w:rsidR="00A1">{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def odt(body: str, styles: str = "") -> bytes:
    content = f"<office:document-content {_ODT}><office:body>{body}</office:body></office:document-content>"
    return pack(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f'<?xml version="1.0"?>\n{content}',
            "styles.xml": f"<office:document-styles {_ODT}>{styles}</office:document-styles>",
            "Pictures/1.png": bytes(range(251)),
        }
    )


def word_runs(data: bytes, name: str = "word/document.xml") -> list[list[tuple[str, str]]]:
    """For each paragraph its runs: (format, text), neighbours of one format as one; checked to be well formed."""
    tree = ElementTree.fromstring(unpack(data)[name])
    paragraphs = []
    for paragraph in tree.iter(f"{{{WORD}}}p"):
        runs: list[tuple[str, str]] = []
        for element in paragraph.iter(f"{{{WORD}}}r"):
            properties = element.find(f"{{{WORD}}}rPr")
            format = "" if properties is None else ",".join(re.sub(r"\{.*\}", "", child.tag) for child in properties)
            text = "".join(child.text or "" for child in element.iter(f"{{{WORD}}}t"))
            if runs and runs[-1][0] == format:
                runs[-1] = (format, runs[-1][1] + text)
            else:
                runs.append((format, text))
        paragraphs.append(runs)
    return paragraphs
