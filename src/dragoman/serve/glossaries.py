"""Glossaries that clients make, in a folder that all workers share.

A glossary is a file: a line with what there is to know about it, as JSON after a #, then `source term<TAB>target term`
a line, which is what `dragoman translate --glossary` reads. Files are named here; what a client says is only ever
compared with their names. A glossary never changes, so its compiled form can be kept.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import os
import re
import time
import unicodedata
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman.serve.disk import available, check_folder
from dragoman.serve.refusal import Refusal
from dragoman.text.sentences import SPACELESS
from dragoman.text.whole_words import LETTER
from dragoman.translator import Glossary, Term

MOST_GLOSSARIES, MOST_BYTES = 1000, 256 << 20
"""Of all owners together."""
MOST_OF_ONE, MOST_BYTES_OF_ONE = 100, 32 << 20
"""Of one owner, so that a key leaves room for the others; without keys nobody can be told from anybody."""
MOST_TERMS = 5000
MOST_TERM_CHARACTERS = 256
MOST_NAME_CHARACTERS = 1024
_COMPILED = 32
_UNFINISHED_SECONDS = 3600.0
_WORD_BEGINS = re.compile(rf"(?<!{LETTER})\S|{SPACELESS.pattern}")
_LETTER = re.compile(LETTER)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class GlossaryInfo:
    """What there is to know about a glossary. `owner` is who may see it: all clients of one key, or all without one."""

    id: str
    name: str
    source: str
    target: str
    created: str
    num_terms: int
    owner: str


class ClientGlossary(Glossary):
    """A glossary that a stranger made: however its terms were chosen, they are found in bounded time.

    Where a word begins, the text is looked up once for each length that a term has, the longest first.
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        super().__init__(())
        self._terms = {fold(term.source): term for term in terms}
        self._lengths = sorted({len(source) for source in self._terms}, reverse=True)

    def find(self, sentence: str) -> tuple[Term, ...]:
        folded = fold(sentence)
        found: dict[Term, None] = {}
        end = 0
        for match in _WORD_BEGINS.finditer(folded):
            begin = match.start()
            if begin < end:
                continue
            for length in self._lengths:
                term = self._terms.get(folded[begin : begin + length])
                last, following = folded[begin + length - 1 : begin + length], folded[begin + length :][:1]
                if term is not None and (SPACELESS.match(last) or not _LETTER.match(following)):
                    found[term] = None
                    end = begin + length
                    break
        return tuple(found)


class GlossaryFolder:
    """The glossaries in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._compiled: OrderedDict[str, Glossary] = OrderedDict()

    def prepare(self) -> None:
        """Before a server starts: there is a folder, without what killed servers did not finish in it."""
        check_folder(self._folder, "choose another --glossary-dir")
        for file in self._folder.glob("*.unfinished"):
            with contextlib.suppress(OSError):  # another machine was quicker
                if time.time() - file.stat().st_mtime > _UNFINISHED_SECONDS:
                    file.unlink()

    def create(self, name: str, source: str, target: str, terms: tuple[Term, ...], owner: str) -> GlossaryInfo:
        """Keep a new glossary; `source` and `target` are languages of a model here."""
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
        info = GlossaryInfo(str(uuid.uuid4()), name, source, target, created, len(terms), owner)
        lines = [f"# {json.dumps(asdict(info))}", *(f"{term.source}\t{term.target}" for term in terms)]
        content = ("\n".join(lines) + "\n").encode("utf-8")
        unfinished = self._folder / f"{info.id}.unfinished"
        with available("the glossary could not be kept"):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._check_room(owner, len(content))
            try:
                unfinished.write_bytes(content)
                os.replace(unfinished, self._folder / f"{info.id}.tsv")
            except OSError:
                unfinished.unlink(missing_ok=True)
                raise
        return info

    def _check_room(self, owner: str, num_bytes: int) -> None:
        """Refuse one glossary more where there are too many, or too large ones, of all or of this owner."""
        sizes: dict[Path, int] = {}
        for file in (*self._files(), *self._folder.glob("*.unfinished")):
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                sizes[file] = file.stat().st_size
        if len(sizes) >= MOST_GLOSSARIES or sum(sizes.values()) + num_bytes > MOST_BYTES:
            raise Refusal(456, f"there are {len(sizes)} glossaries already: delete one first")
        if not owner:
            return
        own = [sizes.get(self._folder / f"{info.id}.tsv", 0) for info in self.list(owner)]
        if len(own) >= MOST_OF_ONE or sum(own) + num_bytes > MOST_BYTES_OF_ONE:
            raise Refusal(456, f"{len(own)} glossaries of {sum(own)} bytes are yours already: delete one first")

    def list(self, owner: str) -> list[GlossaryInfo]:
        """The glossaries of an owner, the oldest first."""
        found = (_read_info(file) for file in self._files())
        return sorted((info for info in found if info and info.owner == owner), key=lambda info: info.created)

    def find(self, id: str, owner: str) -> tuple[GlossaryInfo, Path]:
        """A glossary of an owner, and its file; refuses (404) what is not there."""
        for file in self._files():
            if file.stem == id:
                info = _read_info(file)
                if info is not None and info.owner == owner:
                    return info, file
        raise Refusal(404, "Glossary not found")

    def entries(self, id: str, owner: str) -> str:
        """A glossary's terms, as TSV."""
        return _read_entries(self.find(id, owner)[1])

    def delete(self, id: str, owner: str) -> None:
        """Remove a glossary."""
        with available("the glossary could not be deleted"):
            self.find(id, owner)[1].unlink(missing_ok=True)
        self._compiled.pop(id, None)

    def compiled(self, id: str, owner: str) -> tuple[GlossaryInfo, Glossary]:
        """A glossary to translate with; the same object for the same glossary, so that requests can share a batch."""
        info, file = self.find(id, owner)
        glossary = self._compiled.get(id)
        if glossary is None:
            glossary = ClientGlossary(parse_entries(_read_entries(file), "tsv"))
            self._compiled[id] = glossary
            while len(self._compiled) > _COMPILED:
                self._compiled.popitem(last=False)
        return info, glossary

    def _files(self) -> Iterator[Path]:
        return self._folder.glob("*.tsv")


def fold(text: str) -> str:
    """Text as terms are compared: whatever its case and white space, and however its accents are written."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def parse_entries(entries: str, format: str) -> tuple[Term, ...]:
    """The terms of TSV, or of CSV (whose third and fourth columns are languages, and not looked at)."""
    if format == "tsv":
        rows: Iterable[list[str]] = (line.split("\t") for line in entries.splitlines())
    elif format == "csv":
        rows = csv.reader(io.StringIO(entries, newline=""))
    else:
        raise Refusal(400, f"entries_format {format} is not supported, expected tsv or csv")
    terms: dict[str, Term] = {}
    try:
        for number, row in enumerate(rows, start=1):
            if any(column.strip() for column in row):
                term = _term(row, number, 4 if format == "csv" else 2)
                if term.source in terms:
                    raise Refusal(400, f"entry {number} of the glossary has the same source term as one before it")
                terms[term.source] = term
            if len(terms) > MOST_TERMS:
                raise Refusal(413, f"the glossary has more than {MOST_TERMS} entries")
    except csv.Error as error:
        raise Refusal(400, f"the glossary is no CSV: {error}") from error
    if not terms:
        raise Refusal(400, "the glossary has no entries, expected source<TAB>target a line")
    return tuple(terms.values())


def _term(row: list[str], number: int, most_columns: int) -> Term:
    columns = [column.strip() for column in row]
    if not 2 <= len(columns) <= most_columns or not columns[0] or not columns[1]:
        raise Refusal(400, f"entry {number} of the glossary is no pair of terms, expected source and target")
    for column in columns[:2]:
        if _CONTROLS.search(column) or len(column) > MOST_TERM_CHARACTERS:
            reason = "a control character" if _CONTROLS.search(column) else f"over {MOST_TERM_CHARACTERS} characters"
            raise Refusal(400, f"entry {number} of the glossary has {reason}")
    return Term(columns[0], columns[1])


def _read_info(file: Path) -> GlossaryInfo | None:
    """What a file says of itself; None where it is no glossary, or was deleted meanwhile."""
    try:
        with file.open(encoding="utf-8") as lines:
            values = json.loads(lines.readline(65_536).removeprefix("# "))
        info = GlossaryInfo(**values)
    except (OSError, ValueError, TypeError):
        return None
    return info if info.id == file.stem else None


def _read_entries(file: Path) -> str:
    with available("the glossary could not be read"):
        try:
            return file.read_text(encoding="utf-8").partition("\n")[2]
        except FileNotFoundError as error:  # deleted meanwhile
            raise Refusal(404, "Glossary not found") from error
