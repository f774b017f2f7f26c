"""How a frozen dataclass is filled: from a mapping, a TOML or JSON file, `--set a.b=value`; and its help.

Every value is checked against the field's type, every unknown key is an error that names the nearest known one.
"""

import copy
import dataclasses
import difflib
import json
import math
import sys
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dragoman.errors import ConfigError

T = TypeVar("T")


def option(default: Any, help: str, told: bool = True) -> Any:
    """A dataclass field with its default, written once, and the sentence that `--help` and the docs show."""
    if isinstance(default, (list, dict)):
        raise TypeError("an option's default must not be mutable")
    return dataclasses.field(default=default, metadata={"help": help, "told": told})


def fact(default: Any, help: str) -> Any:
    """A field that is saved and checked like an option, but that data decide and not a person: help leaves it out."""
    return option(default, help, told=False)


def fill(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Build the dataclass `cls` from a mapping; nested dataclasses from nested mappings."""
    assert dataclasses.is_dataclass(cls)
    hints = typing.get_type_hints(cls)
    known = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown key {_path(where, key)!r}{nearest(key, known)}")
    arguments = {key: _convert(known[key], value, _path(where, key)) for key, value in values.items()}
    return cls(**arguments)


def read(path: Path) -> dict[str, Any]:
    """The contents of a .toml or .json settings file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read settings from {path}: {error}") from error
    try:
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path} is not valid {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds a {type(values).__name__}, expected a table of settings")
    return values


def override(values: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """`values` with each `a.b=value` applied; the value is read as TOML, and as plain text where that fails."""
    result = copy.deepcopy(dict(values))
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{assignment!r} is not a setting: write section.key=value, say train.seed=7")
        *sections, name = key.strip().split(".")
        table = result
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{key!r} goes through {section!r}, which is a value and not a section")
        try:
            table[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            table[name] = text
    return result


def to_mapping(settings: Any) -> dict[str, Any]:
    """A plain mapping (JSON can hold it) that `fill` turns into an equal dataclass."""
    return typing.cast(dict[str, Any], json.loads(json.dumps(dataclasses.asdict(settings))))


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """What differs between two dataclasses of one type, a line a key: `train.seed: 1 -> 2`."""
    lines = []
    for field in dataclasses.fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before == after:
            continue
        path = _path(where, field.name)
        if dataclasses.is_dataclass(before) and type(before) is type(after):
            lines.extend(differences(before, after, path))
        else:
            lines.append(f"{path}: {before!r} -> {after!r}")
    return lines


def describe(cls: type, where: str = "") -> list[tuple[str, str, str]]:
    """(key, default, help) of every option of `cls`, sections flattened, in the order they are declared."""
    rows = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        path = _path(where, field.name)
        if dataclasses.is_dataclass(hints[field.name]):
            rows.extend(describe(hints[field.name], path))
        elif field.metadata.get("told", True):
            default = "" if field.default is dataclasses.MISSING else json.dumps(field.default)
            rows.append((path, default, field.metadata.get("help", "")))
    return rows


def at_least(least: float, name: str, value: float) -> None:
    """Refuse a setting below its least value."""
    if not least <= value < math.inf:  # nor is NaN at least anything
        raise ConfigError(f"{name} is {value}, expected at least {least}")


def share(name: str, value: float) -> None:
    """Refuse a setting that is not a share."""
    if not 0 <= value < 1:
        raise ConfigError(f"{name} is {value}, expected a share from 0 up to, not including, 1")


def nearest(word: str, known: typing.Iterable[str]) -> str:
    """A hint for a message: the closest known word, or the list of them."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f": did you mean {close[0]!r}?" if close else f": known are {', '.join(known)}"


def _path(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _convert(kind: Any, value: Any, where: str) -> Any:
    """`value` as the type `kind`, without guessing: a string is never read as a number or a truth value."""
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} is {value!r}, expected a table of settings")
        return fill(typing.cast(type[Any], kind), value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(a for a in arguments if a is not type(None)), value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(f"{where} is {value!r}{nearest(str(value), map(str, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{where} is {value!r}, expected a list")
        return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > sys.float_info.max:
            raise ConfigError(f"{where} is a whole number of {len(str(value))} digits, expected a smaller one")
        return float(value)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ConfigError(f"{where} is {value!r}, expected {_english(kind)}")
    return value


def _english(kind: type) -> str:
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(kind, kind.__name__)
