"""A base install, without torch, translates: only what the package declares for it may be needed."""

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import dragoman
from tiny_bundle import write_tiny_bundle


def base_distributions(name: str) -> set[str]:
    """What a distribution needs without any extra, and what that needs."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        for requirement in importlib.metadata.requires(current) or ():
            needed = re.split(r"[ ;<>=!~\[(]", requirement)[0]
            if "extra ==" in requirement or needed in found:
                continue
            try:
                importlib.metadata.distribution(needed)
            except importlib.metadata.PackageNotFoundError:
                continue  # for another system or version of Python
            found.add(needed)
            waiting.append(needed)
    return found


@pytest.fixture(scope="module")
def base_install(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the package and its base dependencies, linked from where they are installed."""
    folder = tmp_path_factory.mktemp("base") / "site-packages"
    folder.mkdir()
    (folder / "dragoman").symlink_to(Path(dragoman.__file__).parent)
    for name in base_distributions("dragoman"):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            link = folder / top
            if not link.exists():
                link.symlink_to(Path(str(distribution.locate_file(top))))
    return folder


def run(base_install: Path, cache: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code where only the base install can be imported."""
    library = sysconfig.get_path("stdlib")
    paths = [str(base_install), library, str(Path(library) / "lib-dynload")]
    start = f"import sys; sys.path[:] = {paths!r}\n"
    environment = {**os.environ, "DRAGOMAN_CACHE": str(cache)}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-I", "-S", "-c", start + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


def test_there_is_no_torch(base_install: Path, tmp_path: Path) -> None:
    result = run(base_install, tmp_path, "import numpy, tokenizers, ctranslate2, torch")
    assert "No module named 'torch'" in result.stderr


def test_it_translates(base_install: Path, tmp_path: Path) -> None:
    folder = write_tiny_bundle(tmp_path / "model").path
    code = "from dragoman.cli import main\nmain()"
    words = ("translate", "--model", str(folder), "--align", "Baceba dila. Lame ni, gula poru!")
    result = run(base_install, tmp_path / "cache", code, *words)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.strip()


def test_what_needs_torch_is_told(base_install: Path, tmp_path: Path) -> None:
    folder = write_tiny_bundle(tmp_path / "model").path
    code = "from dragoman.cli import main\nmain()"
    engine = run(base_install, tmp_path / "cache", code, "translate", "--model", str(folder), "--engine", "torch", "a")
    assert (
        engine.stderr
        == "dragoman: the torch engine needs torch: pip install -c constraints.txt '.[train]' in dragoman's folder\n"
    )
    assert engine.returncode == 2


def test_it_keeps_to_a_glossary(base_install: Path, tmp_path: Path) -> None:
    folder = write_tiny_bundle(tmp_path / "model").path
    code = "from dragoman.cli import main\nmain()"
    (tmp_path / "terms.tsv").write_text("dila\tzorro\n", encoding="utf-8")
    words = ("translate", "--model", str(folder), "--glossary", str(tmp_path / "terms.tsv"), "Baceba dila.")
    glossary = run(base_install, tmp_path / "cache", code, *words)
    assert glossary.returncode == 0
    assert "zorro" in glossary.stdout
