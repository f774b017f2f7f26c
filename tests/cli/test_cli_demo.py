"""The demo: every sentence with its translation, one alignment, and what to type next."""

import os
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.bundle import box
from dragoman.cli import COMMANDS
from dragoman.cli.demo import NEXT_STEPS, SENTENCES, command, program_name


def test_every_sentence_is_shown_with_a_translation_and_one_with_its_alignment() -> None:
    result = CliRunner().invoke(command)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    for examples in SENTENCES.values():
        for kind, text in examples:
            place = lines.index(f"  {text}  ({kind})")
            assert re.match(r"  \S", lines[place + 1]), "its translation"
    assert any("·" in line for line in lines), "an alignment"
    for arguments, what in NEXT_STEPS:
        assert any(arguments in line and what in line for line in lines)


def test_an_empty_box_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path)
    assert "in the box, which has none" in str(CliRunner().invoke(command).exception)


def test_what_to_type_next_are_commands_that_exist() -> None:
    assert {arguments.split()[0] for arguments, _ in NEXT_STEPS} <= set(COMMANDS)


def test_the_program_is_called_as_it_can_be_called_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "dragoman"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "demo"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.defpath)
    assert program_name() == os.path.join("bin", "dragoman")
    monkeypatch.setenv("PATH", str(program.parent))
    assert program_name() == "dragoman"
    monkeypatch.setattr(sys, "argv", ["/somewhere/dragoman/__main__.py"])
    assert program_name() == "python -m dragoman"
