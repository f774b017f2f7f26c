"""What `evaluate` and `compare` share: options that name a test set, a model made ready, progress, files, a console."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dragoman.errors import ConfigError
from dragoman.text.languages import UNKNOWN, matching_direction

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.bundle import Bundle
    from dragoman.evaluate.evaluation import System
    from dragoman.evaluate.scores import ScoreOptions
    from dragoman.evaluate.testset import TestSet
    from dragoman.recipe import CorpusConfig
    from dragoman.translator import Translation, Translator

TOKENIZE = "13a"  # what BLEU takes for words if nobody says otherwise
_PLAIN_COLUMNS = 10_000  # a file or a pipe wraps nothing
_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--test", "test_file", metavar="CORPUS", help="Pairs to test on: TSV, TMX or JSON lines, or a,b."),
    click.option("--source", "source_file", metavar="FILE", help="The source side, a sentence a line."),
    click.option("--target", "target_file", metavar="FILE", help="The references, aligned with --source."),
    click.option("--from", "source_language", metavar="LANGUAGE", help="The source language, say fr."),
    click.option("--to", "target_language", metavar="LANGUAGE", help="The target language, say en."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Use only the first N pairs."),
    click.option("--swap", is_flag=True, help="Take the pairs the other way round: the right side is the source."),
    click.option("--lowercase", is_flag=True, help="Ignore case in BLEU and chrF."),
    click.option(
        "--tokenize", default=TOKENIZE, show_default=True, metavar="NAME", help="sacreBLEU's tokens for BLEU."
    ),
    click.option(
        "--beam", type=click.IntRange(min=1), metavar="N", help="Hypotheses kept open; the model's own if not."
    ),
    click.option("--engine", metavar="NAME", help="Who runs the model: auto, ctranslate2 or torch."),
    click.option("--compute-type", metavar="NAME", help="The engine's numbers: int8 or float32."),
)


def scoring_options(command: _Command) -> _Command:
    """The options of `_OPTIONS`, in that order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_test(
    test_file: str | None,
    source_file: str | None,
    target_file: str | None,
    source_language: str | None,
    target_language: str | None,
    limit: int | None,
    swap: bool,
) -> TestSet:
    """The test set that the options name."""
    from dragoman.evaluate.testset import read_test_set
    from dragoman.recipe import CorpusConfig
    from dragoman.text.corpus import corpus_of

    languages = named_languages(source_language, target_language)
    named = "" if languages == UNKNOWN else "-".join(languages[::-1] if swap else languages)
    if bool(source_file) != bool(target_file):
        given, missing = ("--source", "--target") if source_file else ("--target", "--source")
        raise ConfigError(f"{given} is one of two aligned files: give the other one with {missing}")
    if bool(test_file) == bool(source_file):
        raise ConfigError("expected one test set: give --test pairs.tsv, or --source FILE and --target FILE")
    if test_file:
        corpus = corpus_of(test_file, named)
    else:
        corpus = CorpusConfig(path=source_file or "", target_path=target_file or "", languages=named)
    test = read_test_set(corpus, limit or 0)
    return test.swapped() if swap else test


def named_languages(source: str | None, target: str | None) -> tuple[str, str]:
    """The languages that --from and --to name."""
    if bool(source) != bool(target):
        given, missing = ("--from", "--to") if source else ("--to", "--from")
        raise ConfigError(f"{given} names one language of two: give the other one with {missing}")
    return (source.replace("-", "_"), target.replace("-", "_")) if source and target else UNKNOWN


def score_options(lowercase: bool, tokenize: str) -> ScoreOptions:
    """How to score; refused at once, and not after an hour of translating, if it cannot be."""
    from dragoman.evaluate.scores import ScoreOptions
    from dragoman.text.metrics import scorer

    scorer("bleu", tokenize=tokenize)
    return ScoreOptions(lowercase=lowercase, tokenize=tokenize)


@dataclass(frozen=True)
class Model:
    """A translator with its settings bound, and what to call it."""

    translator: Translator
    system: System
    direction: tuple[str, str]
    bundle: Bundle
    beam: int | None
    align: bool = False

    def translate(self, texts: list[str], /) -> list[Translation]:
        source, target = self.direction
        return self.translator.translate(texts, source=source, target=target, beam=self.beam, align=self.align)


def open_model(
    path_or_name: str,
    *,
    languages: tuple[str, str] | None,
    engine: str | None,
    compute_type: str | None,
    beam: int | None,
    ensemble: Sequence[str] = (),
    memory: CorpusConfig | None = None,
) -> Model:
    """Load a model, by its folder or name, to translate a test set of these languages; without one, in its first."""
    from dragoman.bundle import Bundle, find
    from dragoman.evaluate.evaluation import System
    from dragoman.translator import load

    bundle = Bundle.open(find(path_or_name))
    name = bundle.path.resolve().name
    others = [Bundle.open(find(other)) for other in ensemble]
    direction = choose_direction(bundle.languages, languages, name) if languages else bundle.languages[0]
    chosen: dict[str, Any] = {"engine": engine, "compute_type": compute_type}
    given = {name: value for name, value in chosen.items() if value}
    translator = load(path_or_name, ensemble=ensemble, memory=memory, **given)
    recalled = [PurePath(memory.path).name] if memory else []
    system = System(
        name=" + ".join([name, *(other.path.resolve().name for other in others), *recalled]),
        engine=translator.engine_name,
        compute_type=translator.compute_type,
        beam=beam or bundle.search.beam,
        length_penalty=bundle.search.length_penalty,
        weights_hash=" + ".join(one.weights_hash() for one in (bundle, *others)),
    )
    return Model(translator, system, direction, bundle, beam)


def choose_direction(known: Sequence[tuple[str, str]], wanted: tuple[str, str], name: str) -> tuple[str, str]:
    """The model's direction for a test set: its only one if the set does not tell."""
    if wanted == UNKNOWN and len(known) > 1:
        raise ConfigError(
            f"the test set does not tell its languages, and {name} translates {', '.join(map('-'.join, known))}: "
            f"say which with --from and --to"
        )
    if wanted == UNKNOWN:
        return known[0]
    if found := matching_direction(known, *wanted):
        return found
    if matching_direction(known, *wanted[::-1]):
        raise ConfigError(f"the test set is {'-'.join(wanted)}, {name} goes the other way: turn it round with --swap")
    raise ConfigError(
        f"the test set is {'-'.join(wanted)}, the model {name} translates {', '.join(map('-'.join, known))}: "
        f"take another model, or say which languages these are with --from and --to"
    )


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Tells standard error how many lines are done: a bar on a terminal, a plain line a window elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done: click.echo(f"{what}: {done:,} of {total:,} lines", err=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def stdout_console() -> Console:
    """Tables as wide as the terminal; plain text of any width where there is none."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else _PLAIN_COLUMNS)
