"""The house stands as drawn: imports go down the stairs, files stay small, and a room opens without a sound."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman

HOUSE = Path(dragoman.__file__).parent
DRAWING = Path(__file__).parents[1] / "docs" / "architecture.md"

# The stairs. A room may import rooms of a lower number. Move a wall when you have a reason, and move this table and
# docs/architecture.md with it.
STAIRS = {
    "cli": 6,
    "serve": 6,
    "explain": 5,
    "evaluate": 5,
    "interop": 5,
    "documents": 5,
    "translator": 4,
    "train": 3,
    "search": 3,
    "engine": 3,
    "bundle": 3,
    "text": 2,
    "model": 2,
    "recipe": 1,
    "config": 1,
    "settings": 1,
    "cache": 1,
    "errors": 0,
}
# Rooms of one stair do not see each other, but for these.
LANDINGS = {
    "train": {"search", "engine", "bundle"},
    "engine": {"search", "bundle"},
    "recipe": {"config", "settings"},
    "config": {"settings"},
}
# The doors stand beside the stairs. The front door names anything, but loads it when it is asked for.
DOORS = {"__init__": {"errors"}, "__main__": {"cli"}}
# No Python in there.
PANTRIES = {"web", "models"}
# Rooms that open on a machine without torch: to translate and to serve takes none.
WITHOUT_TORCH = {
    "errors",
    "settings",
    "config",
    "recipe",
    "cache",
    "text",
    "bundle",
    "translator",
    "documents",
    "serve",
    "cli",
}
MOST_LINES = 300

FILES = sorted(HOUSE.rglob("*.py"))
MODULES = [".".join(("dragoman", *path.relative_to(HOUSE).with_suffix("").parts)) for path in FILES]
MODULES = [name.removesuffix(".__init__") for name in MODULES]


def room_of(path: Path) -> str:
    """model/mask.py -> model, config.py -> config."""
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imported_rooms(code: str, package: str = "dragoman") -> Iterator[str]:
    """The rooms that code in `package` imports, in functions too, except for type checkers alone."""
    for node in running_nodes(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{source}.{alias.name}" if source == "dragoman" else source for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "dragoman":
                yield behind_the_front_door(rest.partition(".")[0])


def behind_the_front_door(name: str) -> str:
    """`from dragoman import ModelConfig` is an import of config: the front door is no way round the stairs."""
    if name in ("__version__", "DragomanError"):
        return "errors"
    home = dragoman._HOMES.get(name, f"dragoman.{name or '__init__'}")
    return home.split(".")[1]


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, but not what stands in `if TYPE_CHECKING`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in child.orelse:
                yield from running_nodes(other)
        else:
            yield from running_nodes(child)


def may_import(room: str, other: str) -> bool:
    if room in DOORS:
        return other in DOORS[room]
    if room not in STAIRS or other not in STAIRS:
        return False
    return room == other or STAIRS[other] < STAIRS[room] or other in LANDINGS.get(room, set())


# The stairs


def test_every_room_is_in_the_table() -> None:
    rooms = {room_of(path) for path in FILES}
    assert rooms - set(STAIRS) - set(DOORS) == set()
    folders = {path.name for path in HOUSE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - set(STAIRS) - PANTRIES == set()


def test_a_room_is_a_folder_or_a_file_and_not_both() -> None:
    assert [room for room in STAIRS if (HOUSE / room).exists() and (HOUSE / f"{room}.py").exists()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_go_down_only(path: Path) -> None:
    room, package = room_of(path), ".".join(("dragoman", *path.relative_to(HOUSE).parts[:-1]))
    imported = set(imported_rooms(path.read_text(encoding="utf-8"), package))
    upward = sorted(other for other in imported if not may_import(room, other))
    assert upward == [], f"{path.relative_to(HOUSE)} imports {', '.join(upward)}: see the table at the top of this test"


def test_the_drawing_shows_these_stairs() -> None:
    steps = re.findall(r"^(\d)  ((?:\w+(?:, | \| )?)+)", DRAWING.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {room: int(stair) for stair, rooms in steps for room in re.findall(r"\w+", rooms)} == STAIRS


def test_the_rooms_that_never_meet() -> None:
    for room, other in (("text", "model"), ("cli", "serve"), ("explain", "evaluate"), ("search", "train")):
        assert not may_import(room, other)
    assert not may_import("model", "text")
    assert not may_import("serve", "cli")
    assert not any(may_import(room, upstairs) for room in STAIRS for upstairs in ("cli", "serve") if room != upstairs)
    assert may_import("__main__", "cli")
    assert may_import("cli", "train")
    assert not may_import("train", "attic")


@pytest.mark.parametrize(
    ("code", "rooms"),
    [
        ("from dragoman.model.mask import causal_mask", {"model"}),
        ("import dragoman.text.lines as lines", {"text"}),
        ("from dragoman import text", {"text"}),
        ("from dragoman import ModelConfig, Transformer", {"config", "model"}),
        ("from dragoman import __version__", {"errors"}),
        ("import dragoman", {"__init__"}),
        ("def f():\n    from dragoman.train.loss import Loss", {"train"}),
        ("from . import decoder", {"model"}),
        ("from .mask import causal_mask", {"model"}),
        ("from ..text.lines import read", {"text"}),
        ("from .. import config", {"config"}),
        ("if TYPE_CHECKING:\n    from dragoman.train.loss import Loss", set()),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from dragoman.train.loss import Loss", {"train"}),
        ("import torch\nfrom dragomanlike.model import thing", set()),
    ],
)
def test_the_reader_of_imports_sees_every_kind(code: str, rooms: set[str]) -> None:
    assert set(imported_rooms(code, package="dragoman.model")) == rooms


# The rooms


def test_no_file_is_too_long_to_hold() -> None:
    lengths = {str(path.relative_to(HOUSE)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_a_file_that_says_something_says_first_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree)


def run_fresh(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints, on both channels."""
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip
    return result.stdout


def test_every_module_can_be_the_first_to_be_imported_and_prints_nothing() -> None:
    # One interpreter for all of them, that forgets the house (but not torch, which takes seconds) between two.
    code = """
import importlib, sys
for name in sys.argv[1:]:
    for known in [module for module in sys.modules if module.partition(".")[0] == "dragoman"]:
        del sys.modules[known]
    importlib.import_module(name)
"""
    assert run_fresh(code, *MODULES) == ""


def test_the_rooms_that_need_no_torch_load_none() -> None:
    code = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if "torch" in sys.modules:
        sys.exit(f"{name} loads torch")
"""
    rooms = [name for name, path in zip(MODULES, FILES, strict=True) if room_of(path) in WITHOUT_TORCH]
    assert run_fresh(code, *rooms) == ""
