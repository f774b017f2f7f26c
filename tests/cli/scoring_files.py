"""Small files to score, and models that are not there: a name is opened, its translations are looked up."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from click.testing import CliRunner, Result

from dragoman.bundle import Bundle
from dragoman.cli._scoring import Model
from dragoman.errors import BundleError
from dragoman.evaluate.evaluation import System
from dragoman.translator import Link, SentenceTranslation, Translation, Translator

SOURCES = ("Le chat dort.", "Il pleut.", "Je ne sais pas où est la gare.", "Où es-tu ?", "Viens ici, Tom !")
TARGETS = ("The cat sleeps.", "It rains.", "I do not know where the station is.", "Where are you?", "Come here, Tom!")
OUTPUT = ("The cat is sleeping.", "It rains.", "", "Where are you, you?", "Come here, Tom!")


def write_lines(path: Path, lines: tuple[str, ...]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def write_pairs(folder: Path) -> str:
    pairs = tuple(f"{source}\t{target}" for source, target in zip(SOURCES, TARGETS, strict=True))
    return write_lines(folder / "pairs.tsv", pairs)


def run(command: Any, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def refusal(command: Any, *arguments: str) -> str:
    """The text of the error that a command ends with."""
    return str(run(command, *arguments).exception)


@dataclass
class FakeModels:
    """Stands for `open_model`; remembers what it was asked."""

    outputs: dict[str, tuple[str, ...]]
    opened: list[dict[str, Any]] = field(default_factory=list)
    translated: list[str] = field(default_factory=list)

    def __call__(self, path_or_name: str, **settings: Any) -> Model:
        if path_or_name not in self.outputs:
            raise BundleError(f"there is no model at {path_or_name}")
        self.opened.append({"name": path_or_name, **settings})
        answers = dict(zip(SOURCES, self.outputs[path_or_name], strict=True))

        def translate(texts: list[str], *, align: bool, **_: Any) -> list[Translation]:
            self.translated.append(path_or_name)
            links = (Link(0, 0, 0.9),) if align else ()
            return [
                Translation(answers[text], -1.0, 0.7, (SentenceTranslation(text, answers[text], -1.0, 0.7, links),))
                for text in texts
            ]

        system = System(name=path_or_name, engine="fake", beam=settings["beam"] or 4)
        translator = cast(Translator, SimpleNamespace(translate=translate))
        return Model(translator, system, ("fr", "en"), cast(Bundle, None), settings["beam"])
