"""Which model a command takes, if it is not told."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def find_model(options: dict[str, Any]) -> Path:
    """The model that is named, or the one in the box for the languages; French to English if nothing is said."""
    from dragoman.bundle import find, find_direction

    if options["model"]:
        return find(options["model"])
    return find_direction(options["source_language"] or None, options["target_language"] or None)
