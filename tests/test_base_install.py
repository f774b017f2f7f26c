"""What `pip install dragoman` gives: a virtual environment of its own, without torch, that translates."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from tiny_bundle import tiny_texts, write_tiny_bundle

REPOSITORY = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with dragoman's base install."""
    folder = tmp_path_factory.mktemp("base") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = ["-m", "pip", "install", "--quiet", "--constraint", str(REPOSITORY / "constraints.txt"), str(REPOSITORY)]
    subprocess.run([str(folder / "bin" / "python"), *install], check=True, timeout=500)
    return folder / "bin"


def run(base: Path, cache: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{base}:{os.environ['PATH']}", "DRAGOMAN_CACHE": str(cache), "HOME": str(cache)}
    return subprocess.run(
        [str(base / command[0]), *command[1:]], env=environment, capture_output=True, text=True, check=False
    )


def test_the_base_install_has_no_torch(base: Path, tmp_path: Path) -> None:
    assert "No module named 'torch'" in run(base, tmp_path, "python", "-c", "import torch").stderr


def test_the_base_install_translates_as_the_whole_one_does(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    bundle = write_tiny_bundle(tmp_path / "model")
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{text}\n" for text in tiny_texts()), encoding="utf-8")
    told = run(
        base, tmp_path, "dragoman", "translate", "--model", str(bundle.path), "--input", str(source), "--no-guards"
    )
    assert told.returncode == 0, told.stderr
    here = dragoman.load(bundle.path).translate(tiny_texts(), guards=False)
    assert told.stdout.split("\n")[:-1] == [translation.text for translation in here]


@pytest.mark.parametrize(
    ("command", "purpose"),
    [(("train", "pairs.tsv", "--output", "m"), "training"), (("paper",), "checking the model against the paper")],
)
def test_what_needs_torch_says_how_to_install_it(
    base: Path, tmp_path: Path, command: tuple[str, ...], purpose: str
) -> None:
    refused = run(base, tmp_path, "dragoman", *command)
    assert refused.returncode == 2
    assert (
        refused.stderr
        == f"dragoman: {purpose} needs torch: pip install -c constraints.txt '.[train]' in dragoman's folder\n"
    )
