"""The command line: a file a command, imported only when it is called, so that `--help` is instant.

`dragoman NAME` runs the click command called `command` in `dragoman/cli/NAME.py`; `import`, a word of Python's own,
is in `import_.py`.
"""

import importlib
import keyword
import os
import sys
from typing import Any

import click

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.settings import nearest

COMMANDS = {
    "demo": "Show what the models in the box can do.",
    "translate": "Translate text, lines or files.",
    "train": "Train a translator on parallel text.",
    "doctor": "Look parallel text over before hours are spent on it.",
    "evaluate": "Say how well a model translates, in numbers that others can match.",
    "compare": "Say whether one model or output is better than another, or whether that is chance.",
    "explain": "See what a translation was made of.",
    "models": "List the translators in the box.",
    "average": "Make one model of several, the mean of their weights.",
    "info": "Print what a model folder holds.",
    "import": "Make a model folder of a Marian or OPUS-MT model.",
    "export": "Write a model for transformers, CTranslate2 or ONNX.",
    "push": "Publish a model on a hub.",
    "serve": "Serve translations over HTTP, to clients of LibreTranslate and DeepL.",
    "paper": "Check the model against the paper, figure by figure.",
}


class Commands(click.Group):
    """Finds a command's module when it is called; help lists them from the table above."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        module = importlib.import_module(f"dragoman.cli.{name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever read our output has enough. Python would complain once more while closing it, so close it here.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="dragoman")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def dragoman(debug: bool) -> None:
    """Train, see into and ship translators of your own."""


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit status 2."""
    _open_streams()
    debug = "--debug" in sys.argv
    try:
        sys.exit(dragoman.main(standalone_mode=False) or 0)
    except DragomanError as error:
        if debug:
            raise
        _complain(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        if debug:
            raise
        _complain(f"{error.format_message()} (see {_help_of(error)})")
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except UnicodeEncodeError as error:
        if debug:
            raise
        letter = error.object[error.start]
        _complain(f"{letter!a} cannot be written in {error.encoding}: set PYTHONIOENCODING=utf-8")
    except OSError as error:
        if debug:
            raise
        _complain(f"{error.filename or 'the system'}: {error.strerror or error}")


def _open_streams() -> None:
    """Whoever starts us may leave out some of the three streams: there is nothing to read there, and no reader."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # for as long as we live


def _help_of(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'dragoman'} --help"


def _complain(message: str) -> None:
    click.echo(f"dragoman: {' '.join(message.split())}", err=True)
    sys.exit(2)
