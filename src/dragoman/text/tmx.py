"""Translation memories (TMX), read as a stream: a unit is given out as soon as it is complete, and then forgotten.

expat is used directly: it knows the line of every unit, reads UTF-16 as well, and lets entities be refused where they
are declared, before a few of them can be expanded into gigabytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from dragoman.errors import DataError
from dragoman.text.lines import name_of, open_bytes, place

_CHUNK_BYTES = 1 << 16
_MARKUP = frozenset(("bpt", "ept", "it", "ph", "ut"))  # their contents are codes of a document format, not text


@dataclass(slots=True)
class Unit:
    """A translation unit: its segments by language, in the order of the file; the line that it starts on."""

    number: int
    segments: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Reading:
    """What the parser has seen so far."""

    source_language: str = ""
    complete: list[Unit] = field(default_factory=list)
    unit: Unit | None = None
    language: str = ""
    text: list[str] | None = None
    markup_depth: int = 0


def read_units(path: str) -> Iterator[Unit]:
    """Every unit of the file."""
    for _, unit in _read(path):
        yield unit


def languages_of_tmx(path: str) -> tuple[str, str] | None:
    """The header's source language and the other language of the first unit with two; None where that does not tell."""
    for source, unit in _read(path):
        languages = list(unit.segments)
        if len(languages) < 2:
            continue
        if len(languages) > 2:
            return None
        source = next((language for language in languages if speaks(language, source)), languages[0])
        target = next(language for language in languages if language != source)
        return _plain(source), _plain(target)
    return None


def segment_in(unit: Unit, language: str) -> str:
    """The unit's text in a language, or nothing. `fr` is spoken in fr, FR and fr-CA, the exact one first."""
    if language in unit.segments:
        return unit.segments[language]
    return next((text for own, text in unit.segments.items() if speaks(own, language)), "")


def speaks(tag: str, language: str) -> bool:
    """Whether `tag` (fr-CA, FR_ca) is the language (fr) or a kind of it."""
    tag, language = _plain(tag, region=True), _plain(language, region=True)
    return tag == language or tag.startswith(f"{language}-")


def _plain(tag: str, region: bool = False) -> str:
    tag = tag.lower().replace("_", "-")
    return tag if region else tag.partition("-")[0]


def _read(path: str) -> Iterator[tuple[str, Unit]]:
    """Pairs of the header's source language and a unit."""
    reading = _Reading()
    parser = _parser(reading, path)
    with open_bytes(path) as file:
        end = False
        while not end:
            chunk = file.read(_CHUNK_BYTES)
            end = not chunk
            try:
                parser.Parse(chunk, end)
            except expat.ExpatError as error:
                problem = expat.errors.messages.get(error.code, "broken")
                raise DataError(f"{place(path, error.lineno)}: not a TMX file, or a damaged one: {problem}") from None
            except DataError:
                raise
            except (LookupError, ValueError) as error:  # an encoding that expat does not know
                raise DataError(f"{name_of(path)}: {error}: convert it to UTF-8") from None
            for unit in reading.complete:
                yield reading.source_language, unit
            reading.complete.clear()


def _parser(reading: _Reading, path: str) -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "header":
            reading.source_language = attributes.get("srclang", "")
        elif name == "tu":
            reading.unit = Unit(parser.CurrentLineNumber)
        elif name == "tuv":
            reading.language = attributes.get("xml:lang", attributes.get("lang", ""))
        elif name == "seg":
            reading.text, reading.markup_depth = [], 0
        elif name in _MARKUP:
            reading.markup_depth += 1

    def end(name: str) -> None:
        if name == "seg" and reading.unit is not None and reading.text is not None:
            # Segments are often broken and indented to please the eye: white space is one space, as in any XML text.
            reading.unit.segments.setdefault(reading.language, " ".join("".join(reading.text).split()))
            reading.text = None
        elif name == "tu" and reading.unit is not None:
            reading.complete.append(reading.unit)
            reading.unit = None
        elif name in _MARKUP:
            reading.markup_depth -= 1

    def characters(text: str) -> None:
        if reading.text is not None and not reading.markup_depth:
            reading.text.append(text)

    def entity(name: str, *_: object) -> None:
        raise DataError(f"{name_of(path)} declares the entity {name!r}, which a TMX file has no use for: remove it")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = entity
    return parser
