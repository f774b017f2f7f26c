"""The command line: helps, finds the nearest command, and says what is wrong in one line."""

import json
import subprocess
import sys
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from dragoman import __version__
from dragoman.cli import COMMANDS, dragoman, main
from dragoman.errors import DataError


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs `dragoman ARGUMENTS` in this process: -> exit status, standard output, standard error."""
    # click reads the program's name off whoever was started: the installed script, which is in no package.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dragoman", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            main()
        output, errors = capsys.readouterr()
        return int(exit_info.value.code or 0), output, errors

    return run


@pytest.fixture
def stumble(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that meets a user's mistake."""

    @click.command
    @click.option("--pairs", type=int)
    def command(pairs: int | None) -> None:
        raise DataError("corpus.tsv, line 3: 5 columns,\n  expected 2")

    monkeypatch.setitem(COMMANDS, "stumble", "Falls.")
    monkeypatch.setitem(sys.modules, "dragoman.cli.stumble", SimpleNamespace(command=command))


# Help


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command_with_its_sentence(run, flag: str) -> None:
    status, output, errors = run(flag)
    assert (status, errors) == (0, "")
    flat = " ".join(output.split())
    for name, sentence in COMMANDS.items():
        assert f"{name} {sentence}" in flat


def test_without_a_command_it_shows_the_same_help(run) -> None:
    _, help_text, _ = run("--help")
    _, output, errors = run()
    assert help_text.strip() in output + errors


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name: str) -> None:
    result = CliRunner().invoke(dragoman, [name, "--help"], prog_name="dragoman")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: dragoman {name}")


def test_the_version_is_the_packages(run) -> None:
    assert run("--version") == (0, f"dragoman, version {__version__}\n", "")


def test_python_m_dragoman_is_the_same_command_line() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "dragoman", "papre"], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 2
    assert result.stderr == "dragoman: no command 'papre': did you mean 'paper'? (see dragoman --help)\n"


# Mistakes


def test_an_unknown_command_suggests_the_nearest(run) -> None:
    assert run("papre") == (2, "", "dragoman: no command 'papre': did you mean 'paper'? (see dragoman --help)\n")


def test_an_unknown_command_like_no_other_lists_all(run) -> None:
    status, _, errors = run("qqqq")
    assert status == 2
    assert errors == f"dragoman: no command 'qqqq': known are {', '.join(sorted(COMMANDS))} (see dragoman --help)\n"


def test_an_unknown_option_names_the_commands_help(run) -> None:
    status, output, errors = run("paper", "--jsn")
    assert (status, output) == (2, "")
    assert errors.startswith("dragoman: No such option '--jsn'")
    assert errors.endswith("(see dragoman paper --help)\n")
    assert errors.count("\n") == 1


@pytest.mark.usefixtures("stumble")
def test_a_users_mistake_is_one_line_and_exit_status_2(run) -> None:
    assert run("stumble") == (2, "", "dragoman: corpus.tsv, line 3: 5 columns, expected 2\n")


@pytest.mark.usefixtures("stumble")
def test_a_value_of_the_wrong_type_is_one_line_and_exit_status_2(run) -> None:
    status, _, errors = run("stumble", "--pairs", "many")
    assert status == 2
    assert errors.startswith("dragoman: Invalid value for '--pairs': 'many' is not a valid integer")
    assert errors.count("\n") == 1


@pytest.mark.usefixtures("stumble")
def test_with_debug_the_traceback_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["dragoman", "--debug", "stumble"])
    with pytest.raises(DataError, match=r"^corpus\.tsv, line 3"):
        main()


def test_an_interrupted_command_says_so_and_exits_as_a_shell_expects(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dragoman, "main", interrupted)
    assert run("paper") == (130, "", "stopped\n")


def test_a_part_that_is_not_installed_names_the_extra(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python does when a module cannot be found
    install = "pip install -c constraints.txt '.[train]' in dragoman's folder"
    message = f"dragoman: checking the model against the paper needs torch: {install}\n"
    assert run("paper") == (2, "", message)


def test_a_reader_that_has_enough_hears_no_complaint() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)
    assert errors == b""


# Streams


@pytest.mark.parametrize(
    ("redirected", "status", "output"),
    [("<&-", 2, "standard input is empty"), (">&-", 0, ""), ("2>&-", 0, "fr-en"), ("<&- >&- 2>&-", 0, "")],
)
def test_a_stream_that_is_not_there_is_no_reason_to_fall(redirected: str, status: int, output: str) -> None:
    command = "translate" if redirected == "<&-" else "models"
    shell = f'exec "$0" -m dragoman {command} {redirected}'
    found = subprocess.run(["sh", "-c", shell, sys.executable], capture_output=True, text=True, timeout=60)
    assert (found.returncode, "Traceback" in found.stderr) == (status, False)
    assert output in found.stdout + found.stderr


def test_a_letter_that_the_terminal_has_not_is_told(run, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command
    def command() -> None:
        "œ".encode("latin-1")

    monkeypatch.setitem(COMMANDS, "stumble", "Falls.")
    monkeypatch.setitem(sys.modules, "dragoman.cli.stumble", SimpleNamespace(command=command))
    expected = "dragoman: '\\u0153' cannot be written in latin-1: set PYTHONIOENCODING=utf-8\n"
    assert run("stumble") == (2, "", expected)


# dragoman paper


def test_paper_prints_a_table_where_every_figure_passes() -> None:
    result = CliRunner().invoke(dragoman, ["paper"])
    assert result.exit_code == 0
    for words in ("check", "wanted", "got", "44,101,632", "0.88, 0.12", "pass"):
        assert words in result.output
    assert "FAIL" not in result.output


def test_paper_as_json_is_a_list_of_check_wanted_got_pass() -> None:
    result = CliRunner().invoke(dragoman, ["paper", "--json"])
    assert result.exit_code == 0
    rows = json.loads(result.output)
    assert len(rows) > 20
    for row in rows:
        assert list(row) == ["check", "wanted", "got", "pass"]
        assert all(isinstance(row[key], str) for key in ("check", "wanted", "got"))
        assert row["pass"] is True


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_paper_exits_with_1_when_a_figure_is_missed(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.evaluate.paper import Check

    rows = [Check("heads of a dragoman", "1", "1"), Check("tongues of a dragoman", "7", "5")]
    monkeypatch.setattr("dragoman.evaluate.paper.run_checks", lambda: rows)
    result = CliRunner().invoke(dragoman, ["paper", *options])
    assert result.exit_code == 1
    if options:
        assert [row["pass"] for row in json.loads(result.output)] == [True, False]
    else:
        assert "FAIL" in result.output
        assert "1 of 2 figures agree" in result.output
