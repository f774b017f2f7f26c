"""`dragoman serve`: a translation server. Its options are made of the server's `Settings`."""

from __future__ import annotations

import importlib
import signal
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import click

from dragoman.errors import ConfigError

_ROOM = "dragoman.serve"
"""The stairs keep command line and server apart: the server is found by its name, as commands are."""


def _options_of(settings: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A click option for each field of a settings class, in their order."""
    hints = typing.get_type_hints(settings)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for field in reversed(fields(settings)):
            function = _option(field.name, hints[field.name], field.default, field.metadata["help"])(function)
        return function

    return decorate


def _option(name: str, kind: Any, default: Any, help_text: str) -> Callable[..., Any]:
    assert default is not MISSING
    flag, metavar = f"--{name.replace('_', '-')}", {int: "N", float: "X"}.get(kind, name.split("_")[-1].upper())
    if kind is bool:
        return click.option(f"{flag}/--no{flag[1:]}", name, default=default, help=help_text)
    if typing.get_origin(kind) is typing.Literal:
        choice = click.Choice(typing.get_args(kind))
        return click.option(flag, name, type=choice, default=default, show_default=True, help=help_text)
    if typing.get_origin(kind) is tuple:
        return click.option(flag, name, multiple=True, metavar=metavar, help=help_text)
    if isinstance(kind, types.UnionType):
        return click.option(flag, name, metavar="FOLDER" if name.endswith("_dir") else "FILE", help=help_text)
    return click.option(flag, name, type=kind, default=default, show_default=True, metavar=metavar, help=help_text)


@click.command(name="serve", short_help="Serve translations over HTTP.")
@_options_of(importlib.import_module(f"{_ROOM}.settings").Settings)
@click.option("--hash-key", is_flag=True, help="Read a key, or make one, print its line for --api-keys, and end.")
def command(hash_key: bool, **options: Any) -> None:
    """Serve translations over HTTP, to clients of LibreTranslate and of DeepL.

    \b
    dragoman serve                                 the models in the box, on http://127.0.0.1:5000
    dragoman serve --model models/mine --port 80 --host 0.0.0.0
    dragoman serve --hash-key >> keys.txt; dragoman serve --api-keys keys.txt --rate 60

    SIGTERM finishes what was accepted, and ends; SIGHUP opens models, keys and the log anew. Of --rate, --quota,
    --char-limit, --batch-limit and --alternatives-limit, 0 is none.
    """
    if hash_key:
        _hash_key()
        return
    settings = importlib.import_module(f"{_ROOM}.settings").Settings(**options)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nothing is open yet that could be opened anew
    run = importlib.import_module(f"{_ROOM}.run").run
    sys.exit(run(settings, lambda line: click.echo(line)))


def _asks() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty()


def _hash_key() -> None:
    """The key comes from standard input, so that no list of processes and no shell history has it."""
    keys = importlib.import_module(f"{_ROOM}.keys")
    if _asks():
        key = click.prompt("key (empty to have one made)", default="", hide_input=True, show_default=False, err=True)
    else:
        key = sys.stdin.readline().rstrip("\r\n")
        if not key:
            raise ConfigError("standard input has no key, expected one line")
    if not key:
        key = keys.make_key()
        click.echo(f"the key, which is shown only now: {key}", err=True)
    click.echo(keys.hash_key(key))
