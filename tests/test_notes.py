"""docs/notes.md says what the model in the box says, and the runner that keeps it so notices when it does not."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def load_runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh_notes", DOCS / "refresh_notes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


notes = load_runner()
FENCE = "```"


def page(*blocks: str) -> str:
    """Markdown with a line of prose above each block."""
    return "".join(f"Some words.\n\n{FENCE}pycon\n{block}{FENCE}\n\n" for block in blocks)


def test_the_notes_say_what_the_model_says() -> None:
    text = (DOCS / "notes.md").read_text(encoding="utf-8")
    assert notes.refreshed(text) == text


def test_the_notes_point_at_files_and_views_that_are_there() -> None:
    text = (DOCS / "notes.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((.+?)\)", text)
    assert linked
    assert [link for link in linked if not (DOCS / link).is_file()] == []
    desk = (DOCS.parent / "src" / "dragoman" / "web" / "js" / "desk.js").read_text(encoding="utf-8")
    titles = set(re.findall(r'^  \["\w+", "(.+?)", create', desk, flags=re.MULTILINE))
    named = {view for line in re.findall(r"Page: (.+)", text) for view in re.findall(r"\*\*(.+?)\*\*", line)}
    assert named == titles


# The runner


def test_a_page_that_is_right_stays_as_it_is() -> None:
    text = page(">>> 3 * 7\n21\n>>> x = 5\n", ">>> for one in range(2):\n...     print(one, x)\n0 5\n1 5\n")
    assert notes.refreshed(text) == text


def test_a_wrong_output_is_put_right_and_nothing_else_is_touched() -> None:
    wrong = page(">>> print('a\\nb')\na\nc\nd\n>>> 2\n2\n", ">>> 11 + 2\n", ">>> y = 3\nleft over\n>>> y\n3\n")
    right = page(">>> print('a\\nb')\na\nb\n>>> 2\n2\n", ">>> 11 + 2\n13\n", ">>> y = 3\n>>> y\n3\n")
    assert notes.refreshed(wrong) == right


def test_an_empty_line_of_output_does_not_end_it() -> None:
    right = page(">>> print('a\\n\\nb')\na\n<BLANKLINE>\nb\n")
    assert notes.refreshed(page(">>> print('a\\n\\nb')\n")) == right
    assert notes.refreshed(right) == right


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("il 0.31\n", "il 0.30\n"),
        ("il 0.31  rue 0.12\n", "il 0.32  rue 0.11\n"),
        (" 9.99\n", "10.00\n"),
        ("-0.00\n", " 0.00\n"),
        ("[0.5, 1.25]\n", "[0.6, 1.24]\n"),
    ],
)
def test_a_rounding_that_falls_the_other_way_is_forgiven(want: str, got: str) -> None:
    assert notes.Checker().check_output(want, got, 0)
    text = page(f">>> print({got.rstrip()!r})\n{want}")
    assert notes.refreshed(text) == text


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("il 0.31\n", "il 0.33\n"),  # two units
        ("il 0.31\n", "il 0.310\n"),  # other digits
        ("il 0.31\n", "il -0.31\n"),
        ("il 0.31\n", "elle 0.31\n"),
        ("il 0.31  rue 0.12\n", "il 0.31\n"),
        ("il 0.31  rue 0.12\n", "il 0.31  rue 0.22\n"),
        ("0.31 0.12\n", "0.31\n"),
        ("head 2\n", "head 3\n"),  # whole numbers count things
        ("(16, 256)\n", "(16, 255)\n"),
        ("0.31\n", "0.31\n0.31\n"),
        ("0.31\n", ""),
    ],
)
def test_a_wrong_number_is_noticed(want: str, got: str) -> None:
    assert not notes.Checker().check_output(want, got, 0)
    wrong, right = (page(f">>> print({got!r}, end='')\n{text}") for text in (want, got))
    assert notes.refreshed(wrong) == right


def test_an_exception_is_told_with_its_line() -> None:
    text = page(">>> x = 0\n", ">>> x\n0\n>>> 7 / x\n7\n", ">>> never\n")
    line = text.splitlines().index(">>> 7 / x") + 1
    with pytest.raises(notes.BlockError) as caught:
        notes.refreshed(text, "page.md")
    assert str(caught.value) == f"page.md, line {line}: 7 / x\nZeroDivisionError: division by zero"


def test_blocks_of_other_kinds_are_left_alone() -> None:
    text = f"{FENCE}python\n>>> 1\n2\n{FENCE}\n\n{FENCE}\n>>> 1\n2\n{FENCE}\n"
    assert notes.refreshed(text) == text


# The command


def test_the_command_rewrites_and_then_has_nothing_to_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.md"
    file.write_text(page(">>> 'é' * 3\n5\n"), encoding="utf-8")
    assert notes.main([str(file), "--check"]) == 1
    told = capsys.readouterr().out
    assert "\n-5\n" in told
    assert "\n+'ééé'\n" in told
    assert file.read_text(encoding="utf-8") == page(">>> 'é' * 3\n5\n")
    assert notes.main([str(file)]) == 0
    assert file.read_text(encoding="utf-8") == page(">>> 'é' * 3\n'ééé'\n")
    assert notes.main([str(file), "--check"]) == 0
    assert capsys.readouterr().out == ""


def test_the_command_tells_an_exception_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.md"
    text = page(">>> 5\n3\n>>> [][0]\n")
    file.write_text(text, encoding="utf-8")
    assert notes.main([str(file)]) == 1
    assert capsys.readouterr().err == f"{file}, line 6: [][0]\nIndexError: list index out of range\n"
    assert file.read_text(encoding="utf-8") == text
