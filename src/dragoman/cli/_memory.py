"""`--memory`: pairs to translate by."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dragoman.cli._model import find_model
from dragoman.text.languages import matching_direction

if TYPE_CHECKING:
    from dragoman.recipe import CorpusConfig

_Command = TypeVar("_Command", bound=Callable[..., Any])


def memory_option(command: _Command) -> _Command:
    option = click.option(
        "--memory",
        metavar="CORPUS",
        help="Pairs to translate by: TSV, TMX or JSON lines, or a,b. Torch recalls them at every step; with --engine "
        "ctranslate2 they rank what the beam found, which is far faster.",
    )
    return option(command)


def memory_of(argument: str | None, source: str | None, target: str | None) -> CorpusConfig | None:
    """The corpus that --memory names. Its names tell its languages, unless the translation's are others."""
    from dragoman.text.corpus import corpus_languages, corpus_of

    if not argument:
        return None
    corpus = corpus_of(argument)
    if source and target:
        wanted = source.replace("-", "_"), target.replace("-", "_")
        if matching_direction([wanted, wanted[::-1]], *corpus_languages(corpus)) is None:
            return replace(corpus, languages="-".join(wanted))
    return corpus


def memory_beside(options: dict[str, Any]) -> CorpusConfig | None:
    """The corpus that `translate --memory` names; its languages are those of the translation, if nothing else tells."""
    if not options["memory"]:
        return None
    from dragoman.bundle import Bundle

    known = Bundle.open(find_model(options)).languages
    direction = matching_direction(known, options["source_language"], options["target_language"])
    return memory_of(options["memory"], *(direction or (None, None)))


def warn_of_known(sources: Collection[str], memory: CorpusConfig) -> None:
    """Say how many of a test set's sources are in a memory too: a score that looks them up is none."""
    from dragoman.text.corpus import read_pairs

    known = {side for pair in read_pairs(memory) for side in (pair.source, pair.target)}
    count = sum(source in known for source in sources)
    if count:
        click.echo(f"dragoman: {count:,} of the test set's {len(sources):,} sources are in the memory too", err=True)
