"""The console blocks of docs/notes.md, run in order in one namespace, and their outputs brought up to date.

python docs/refresh_notes.py             run the blocks, rewrite the outputs that have changed
python docs/refresh_notes.py --check     run the blocks, print what would change, exit with 1 if anything would

Code and words must agree exactly, and so must whole numbers. A number with a decimal point may be off by one in the
last digit that it shows, since CPUs add in different orders and a rounding may fall either way; such an output is left
as it stands. Spaces before such a number are its padding. A block that raises stops the run, and its line is told.

A folder `fr-en` where the command is given goes before the model in the box, here as everywhere: that is how to read
the notes with the numbers of another model.
"""

from __future__ import annotations

import argparse
import difflib
import doctest
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

NOTES = Path(__file__).with_name("notes.md")

_BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r" *(-?\d+\.\d+)")


class BlockError(Exception):
    """A line of a block that raised, and where it stands."""


class Checker(doctest.OutputChecker):
    """Text and whole numbers exactly, other numbers to one unit of their last digit."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = _NUMBER.findall(want), _NUMBER.findall(got)
        # The same text around the numbers means that there are as many of them.
        return _NUMBER.sub("#", want) == _NUMBER.sub("#", got) and all(map(nearly, wanted, found))


def nearly(left: str, right: str) -> bool:
    """Whether two numbers show as many decimals and differ by one unit of the last at most."""
    one, other = Decimal(left), Decimal(right)
    unit = one.as_tuple().exponent
    return unit == other.as_tuple().exponent and abs(one - other) <= Decimal((0, (1,), int(unit)))


class Runner(doctest.DocTestRunner):
    """Runs blocks and keeps what was printed where it was not what the block says."""

    def __init__(self) -> None:
        super().__init__(checker=Checker(), verbose=False)
        self.changed: dict[int, str] = {}
        """What was printed instead, by the example's line in its block; of the last block."""

    def run_block(self, test: doctest.DocTest) -> None:
        self.changed = {}
        self.run(test, out=lambda text: None, clear_globs=False)

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.changed[example.lineno] = got

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        line = (test.lineno or 0) + example.lineno + 1
        told = traceback.format_exception_only(exc_info[1])[-1].strip()
        raise BlockError(f"{test.filename}, line {line}: {example.source.strip()}\n{told}") from exc_info[1]


def blocks(markdown: str, name: str, namespace: dict[str, Any]) -> Iterator[doctest.DocTest]:
    """The blocks in order; `lineno` is the line of a block's first one, counted from 0."""
    parser = doctest.DocTestParser()
    for match in _BLOCK.finditer(markdown):
        line = markdown.count("\n", 0, match.start(1))
        test = parser.get_doctest(match[1], namespace, name, name, line)
        test.globs = namespace  # get_doctest copies it, but a block goes on where the last one ended
        yield test


def with_outputs(test: doctest.DocTest, changed: dict[int, str]) -> str:
    """A block's text, with these outputs in place of those that it has."""
    lines = (test.docstring or "").splitlines(keepends=True)
    for example in reversed(test.examples):
        if example.lineno in changed:
            start = example.lineno + example.source.count("\n")
            printed = changed[example.lineno].splitlines(keepends=True)
            # An empty line would end the output for whoever reads it next.
            printed = [line if line.strip() else "<BLANKLINE>\n" for line in printed]
            lines[start : start + example.want.count("\n")] = printed
    return "".join(lines)


def refreshed(markdown: str, name: str = NOTES.name) -> str:
    """The text with the outputs that its blocks have now: the same text if they say what they said."""
    runner, namespace = Runner(), {"__name__": "__main__"}
    parts, end = [], 0
    for match, test in zip(_BLOCK.finditer(markdown), blocks(markdown, name, namespace), strict=True):
        runner.run_block(test)
        parts += [markdown[end : match.start(1)], with_outputs(test, runner.changed)]
        end = match.end(1)
    return "".join([*parts, markdown[end:]])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; -> its exit code."""
    parser = argparse.ArgumentParser(description="Run the blocks of docs/notes.md and refresh their outputs.")
    parser.add_argument("file", nargs="?", type=Path, default=NOTES, help="another file with such blocks")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something would change")
    options = parser.parse_args(arguments)
    before = options.file.read_text(encoding="utf-8")
    try:
        after = refreshed(before, str(options.file))
    except BlockError as error:
        print(error, file=sys.stderr)
        return 1
    if options.check:
        lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
        sys.stdout.writelines(difflib.unified_diff(*lines, "as written", "as run"))
        return int(before != after)
    options.file.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
