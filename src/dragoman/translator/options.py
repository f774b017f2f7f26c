"""What `translate` may be told, and the checks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from dragoman.engine.engine import Sampling
from dragoman.errors import ConfigError
from dragoman.translator.glossary import Glossary


class TranslateOptions(TypedDict, total=False):
    """The keyword arguments of `Translator.translate`; `Settings` has their defaults."""

    source: str | None
    target: str | None
    beam: int | None
    length_penalty: float | None
    alternatives: int
    sampling: Sampling | None
    glossary: Glossary | None
    align: bool
    guards: bool
    strict: bool
    split_sentences: bool


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a text is translated.

    source, target     languages; the model's first direction that fits if they are not given
    beam, length_penalty    of the search; the model's own if not given
    alternatives       how many other translations to give besides the best
    sampling           draw translations, and do not search the best
    glossary           terms that must be translated as it says
    align              say which words belong together
    guards             notice what went wrong, try again another way, warn of what stays; a glossary needs them
    strict             refuse what would only be warned of before translating: a sentence too long for the model
    split_sentences    off: each text is one sentence
    """

    source: str | None = None
    target: str | None = None
    beam: int | None = None
    length_penalty: float | None = None
    alternatives: int = 0
    sampling: Sampling | None = None
    glossary: Glossary | None = None
    align: bool = False
    guards: bool = True
    strict: bool = False
    split_sentences: bool = True

    def __post_init__(self) -> None:
        if self.alternatives < 0:
            raise ConfigError(f"alternatives is {self.alternatives}, expected at least 0")
        if self.beam is not None and self.beam < 1:
            raise ConfigError(f"beam is {self.beam}, expected at least 1")

    @property
    def checks(self) -> bool:
        """Whether translations are looked over."""
        return self.guards or self.glossary is not None
