"""TEXT, as it stands on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import DataError


def joined(words: Sequence[str], name: str = "TEXT") -> str:
    """The words as one text; refuses bytes that are not UTF-8, which nothing downstream could write again."""
    text = " ".join(words)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{name} is not UTF-8: convert it, say with iconv -f LATIN1 -t UTF-8") from error
    return text
