"""The front door: quick to open, complete, and the commands that README shows run."""

import ast
import dataclasses
import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman import errors

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "numpy", "ctranslate2", "tokenizers", "transformers", "sacrebleu", "matplotlib", "starlette"}
README_RUNS = ("dragoman", "python")
"""First words of README's commands that are run here; `make test` would run this test again."""
PYTHON_RUNS = ("README.md", "docs/architecture.md")
"""Whose Python is run here."""


def loaded_after(code: str) -> set[str]:
    """The names of the packages that a fresh interpreter has loaded when `code` is done."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True, timeout=60
    )
    return set(result.stderr.split())


# Quick


def test_importing_dragoman_loads_nothing_heavy() -> None:
    assert loaded_after("import dragoman") & (HEAVY | {"click", "rich"}) == set()


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from dragoman.cli import main
sys.argv = ["dragoman", "--help"]
try:
    main()
except SystemExit:
    pass
"""
    assert loaded_after(code) & (HEAVY | {"rich"}) == set()


def test_asking_for_a_config_loads_no_torch() -> None:
    assert loaded_after("import dragoman; dragoman.ModelConfig()") & HEAVY == set()


# Complete


def test_all_is_sorted_and_names_nothing_twice() -> None:
    assert dragoman.__all__ == sorted(set(dragoman.__all__))


def test_all_is_complete() -> None:
    at_once = {
        name
        for name, value in vars(dragoman).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("dragoman")
    }
    assert set(dragoman.__all__) == {*at_once, *dragoman._HOMES, "__version__"}


@pytest.mark.parametrize("name", dragoman.__all__)
def test_every_name_of_all_is_there_and_is_explained(name: str) -> None:
    value = getattr(dragoman, name)
    assert name == "__version__" or inspect.getdoc(value)
    if name in dragoman._HOMES:
        assert value.__module__.startswith("dragoman.")
        assert value is getattr(sys.modules[dragoman._HOMES[name]], name)


def test_type_checkers_find_every_lazy_name_in_the_same_home() -> None:
    tree = ast.parse(Path(dragoman.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    told = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert told == dragoman._HOMES


def test_dir_lists_what_is_public() -> None:
    assert dir(dragoman) == dragoman.__all__


def test_an_unknown_name_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'Tranformer'"):
        dragoman.Tranformer  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dragoman.__version__ == project["version"]


# Errors


def test_the_tree_in_the_docstring_is_the_tree_of_exceptions() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    defined = [
        name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__
    ]
    assert sorted(defined) == sorted(["DragomanError", *drawn])
    assert all(issubclass(getattr(errors, name), errors.DragomanError) for name in drawn)


def test_a_module_that_is_there_is_required_without_a_word() -> None:
    assert errors.require("json", "train", "counting") is sys.modules["json"]


def test_a_module_that_is_missing_names_the_extra_that_brings_it() -> None:
    install = r"pip install -c constraints\.txt '\.\[train\]' in dragoman's folder"
    with pytest.raises(errors.MissingExtraError, match=f"^counting needs abacus: {install}$"):
        errors.require("abacus.beads", "train", "counting")


def test_a_module_that_lacks_something_itself_says_so_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "abacus_of_wood.py").write_text("import wood_that_is_missing\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="wood_that_is_missing") as caught:
        errors.require("abacus_of_wood", "train", "counting")
    assert not isinstance(caught.value, errors.DragomanError)


# README and the drawing of the house


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of README, its lines, and whether a comment above it says that it is not run."""

    language: str
    lines: tuple[str, ...]
    is_run: bool


def blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks, in order."""
    above, inside = "", None
    for line in markdown.splitlines():
        if inside is None and line.startswith("```"):
            inside, lines = line[3:].strip(), []
        elif inside is not None and line.startswith("```"):
            yield Block(inside, tuple(lines), not re.match(r"<!-- not run: .+ -->$", above))
            above, inside = "", None
        elif inside is not None:
            lines.append(line)
        elif line.strip():
            above = line.strip()


def commands(markdown: str) -> Iterator[str]:
    """What stands after `$ ` in the console blocks that are run; a line that ends in \\ goes on in the next."""
    for block in blocks(markdown):
        if block.language not in ("console", "sh") or not block.is_run:
            continue
        lines = iter(block.lines)
        for line in lines:
            if not line.startswith("$ "):
                continue
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            if command.split()[0] in README_RUNS:
                yield command


def test_the_reader_of_readme_finds_the_commands_and_only_these() -> None:
    fence = "```"
    markdown = f"""
{fence}console
$ dragoman paper
dragoman output, not a command
$ make test
$ dragoman train \\
    --set a=3
{fence}

<!-- not run: takes an hour -->
{fence}console
$ dragoman train all
{fence}
Then:
{fence}python
$ dragoman wrong language
{fence}
{fence}sh
$ python -m dragoman --help
{fence}
"""
    assert list(commands(markdown)) == ["dragoman paper", "dragoman train --set a=3", "python -m dragoman --help"]


def test_the_commands_that_readme_shows_run(tmp_path: Path) -> None:
    """One after the other in one folder, as a reader would type them."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    for command in commands((ROOT / "README.md").read_text(encoding="utf-8")):
        result = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip
        assert result.returncode == 0, f"$ {command}\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("name", PYTHON_RUNS)
def test_the_python_that_is_shown_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [block for block in blocks((ROOT / name).read_text(encoding="utf-8")) if block.language == "python"]
    assert shown
    for block in shown:
        if block.is_run:
            exec(compile("\n".join(block.lines), name, "exec"), {"__name__": "shown"})
