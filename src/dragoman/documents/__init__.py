"""Files to translate: plain text, HTML, subtitles, Word and OpenDocument.

    document = read("letter.docx", data)
    document.render(translations of document.texts) -> bytes

    reading                 `read`: the right reader for a name
    subtitles               captions: SubRip and WebVTT
    docx, docx_paragraph    Word
    odt                     OpenDocument
    office                  what Word and OpenDocument have in common: XML whose paragraphs are translated
    archive                 zip archives from strangers

Reading and rendering touch no disk; what a file cannot be is refused with a `DataError`. What is not text in a document
stays as it is. Word and OpenDocument are zip archives of XML: they are changed in place, on the level of their XML's
text, since a library that reads them into objects writes only what it knows.
"""

from dragoman.documents.reading import CONTENT_TYPES, EXTENSIONS, Document, extension_of, read

__all__ = ["CONTENT_TYPES", "EXTENSIONS", "Document", "extension_of", "read"]
