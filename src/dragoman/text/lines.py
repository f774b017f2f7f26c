r"""Files as lines: plain, gzip, xz or zstandard, told apart by their first bytes; `-` is standard input.

Only `\n` ends a line. U+2028, U+0085, `\v` and `\f` may stand inside a sentence, and would shift every line after them
if they were taken for its end, as `str.splitlines` takes them. One `\r` before the `\n` and a byte order mark at the
start of a file are dropped.
"""

import codecs
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, cast

from dragoman.errors import DataError, require

STANDARD_INPUT = "-"
COMPRESSIONS = (".gz", ".xz", ".zst")
MAX_LINE_BYTES = 1 << 24  # memory stays flat even on a file that has no line ends
_BUFFER_BYTES = 1 << 17


@contextmanager
def open_bytes(path: str, decompress: bool = True) -> Iterator[io.BufferedReader]:
    """The contents of a file; whatever goes wrong with it inside the `with` becomes a one-line `DataError`."""
    try:
        if path == STANDARD_INPUT:
            with _standard_input() as file:
                yield _decompressed(file) if decompress else file
        else:
            with open(path, "rb") as file:
                yield _decompressed(file) if decompress else file
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory, expected a file: name the files in it") from None
    except EOFError:
        raise DataError(
            f"{name_of(path)} ends in the middle of its compressed data: copy or download it again"
        ) from None
    except (OSError, zlib.error, lzma.LZMAError, _DamagedError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{name_of(path)} cannot be read: {reason}") from error


@contextmanager
def _standard_input() -> Iterator[io.BufferedReader]:
    given = sys.stdin.buffer
    if isinstance(given, io.BufferedReader):
        yield given  # as it is: a buffer around it would wait until it is full, and hold back what somebody types
        return
    file = io.BufferedReader(cast(Any, given))
    try:
        yield file
    finally:
        file.detach()  # or its end would close standard input itself


def raw_lines(path: str) -> Iterator[bytes]:
    """Every line's bytes, without its end."""
    with open_bytes(path) as file:
        line = file.readline(MAX_LINE_BYTES)
        if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(f"{name_of(path)} is UTF-16, expected UTF-8: convert it, say with iconv -f UTF-16 -t UTF-8")
        line = line.removeprefix(codecs.BOM_UTF8)
        number = 1
        while line:
            if line.endswith(b"\n"):
                yield line[:-2] if line.endswith(b"\r\n") else line[:-1]
            elif len(line) >= MAX_LINE_BYTES:
                raise DataError(f"{place(path, number)}: a line of more than {MAX_LINE_BYTES >> 20} MiB: is this text?")
            else:
                yield line.removesuffix(b"\r")
            line = file.readline(MAX_LINE_BYTES)
            number += 1


def lines_of(path: str) -> Iterator[str]:
    """Every line of a UTF-8 text; bytes that are no text are a `DataError` that names file and line."""
    for number, raw in enumerate(raw_lines(path), start=1):
        try:
            text = decode(raw)
        except DataError as error:
            raise DataError(f"{place(path, number)}: {error}") from None
        yield text


def decode(raw: bytes) -> str:
    """A line's text; a `DataError`, which does not know its place yet, where the bytes are none."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte 0x{raw[error.start]:02x} at byte {error.start + 1} of the line is not UTF-8: "
            f"is this text, and in UTF-8? convert it, say with iconv -f LATIN1 -t UTF-8"
        ) from None
    if "\0" in text:
        raise DataError("a NUL character, expected UTF-8 text: is this a binary file, or UTF-16?")
    return text


def place(path: str, number: int) -> str:
    """`file:line`, as editors understand it."""
    return f"{name_of(path)}:{number}"


def name_of(path: str) -> str:
    """How a message calls a file."""
    return "standard input" if path == STANDARD_INPUT else path


def bare_name(path: str) -> str:
    """A file's name without what says how it is compressed."""
    name = PurePath(path).name
    for ending in COMPRESSIONS:
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


class _DamagedError(Exception):
    """Data that its decompressor refuses."""


def _decompressed(file: io.BufferedReader) -> io.BufferedReader:
    start = file.peek(6)[:6]
    if start.startswith(b"\x1f\x8b"):
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=file)), _BUFFER_BYTES)
    if start.startswith(b"\xfd7zXZ\0"):
        return io.BufferedReader(cast(Any, lzma.LZMAFile(file)), _BUFFER_BYTES)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return io.BufferedReader(_ZstandardReader(file), _BUFFER_BYTES)
    return file


class _ZstandardReader(io.RawIOBase):
    """Frames of zstandard, one after another. The library's own reader takes a file cut short for a whole one."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._library = require("zstandard", "train", "reading .zst files")
        self._file = file
        self._frame = self._library.ZstdDecompressor().decompressobj()
        self._inside = False
        self._ready = io.BytesIO()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._ready.readinto(buffer)
        while not count and self._more():
            count = self._ready.readinto(buffer)
        return count

    def _more(self) -> bool:
        """Decompress another part; False at the end of the file."""
        rest: bytes = self._frame.unused_data if self._frame.eof else b""
        compressed = rest or self._file.read(1 << 14)
        if not compressed:
            if self._inside:
                raise EOFError
            return False
        if self._frame.eof:
            self._frame = self._library.ZstdDecompressor().decompressobj()
        try:
            self._ready = io.BytesIO(self._frame.decompress(compressed))
        except self._library.ZstdError as error:
            raise _DamagedError(str(error)) from error
        self._inside = not self._frame.eof
        return True
