"""Options that would be ignored: a mistake that somebody wants to know of."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import ConfigError


def refuse_idle(given: Mapping[str, object], why: str) -> None:
    """Refuse the first option of these that is given."""
    for name, value in given.items():
        if value:
            raise ConfigError(f"{name} {why}")
