"""`dragoman import`: a model of another toolkit becomes a model folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.bundle import Bundle
from dragoman.cli import dragoman
from dragoman.cli.import_ import command
from dragoman.errors import BundleError
from interop.marian_models import write_marian


def test_a_folder_becomes_a_model_folder(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    result = CliRunner().invoke(dragoman, ["import", str(tmp_path / "marian"), "--output", str(tmp_path / "ours")])
    assert result.output.startswith(f"{tmp_path / 'ours'} translates fr-en: 2 encoder and 3 decoder layers, width 22")
    assert Bundle.open(tmp_path / "ours").directions == ("fr-en",)


def test_languages_and_pickles_are_for_the_person_to_say(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian", pickled=True)
    arguments = [str(tmp_path / "marian"), "--output", str(tmp_path / "ours"), "--languages", "it-en"]
    refused = CliRunner().invoke(command, arguments).exception
    assert isinstance(refused, BundleError)
    assert "give --allow-pickle" in str(refused)
    assert CliRunner().invoke(command, [*arguments, "--allow-pickle"]).exit_code == 0
    assert Bundle.open(tmp_path / "ours").directions == ("it-en",)


def test_a_name_on_a_hub_without_a_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    error = CliRunner().invoke(command, ["owner/opus-mt-fr-en", "--output", str(tmp_path / "ours")]).exception
    assert isinstance(error, BundleError)
    assert "the hub did not give the model owner/opus-mt-fr-en" in str(error)
    assert not (tmp_path / "ours").exists()


def test_it_takes_no_torch_to_import_a_model_and_translate_with_it(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    code = """
import sys
sys.modules["torch"] = None
from click.testing import CliRunner
from dragoman.cli import dragoman
for arguments in (["import", sys.argv[1], "--output", sys.argv[2]], ["translate", "--model", sys.argv[2], "Bace di."]):
    result = CliRunner().invoke(dragoman, arguments)
    assert result.exit_code == 0, result.exception
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "marian"), str(tmp_path / "ours")]
    environment = os.environ | {"DRAGOMAN_CACHE": str(tmp_path / "cache")}
    result = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
