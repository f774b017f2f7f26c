"""The exception tree. A user's mistake is a `DragomanError`; its text says what came, what was expected, what to do.

DragomanError
├── ConfigError      a setting that cannot be: unknown key, wrong type, sizes that do not fit
├── DataError        text that cannot be read or aligned; names the file and the line
├── BundleError      a model folder that is missing, damaged, or from a newer version
├── LengthError      more pieces than the model takes
├── TrainingError    a run that cannot start, go on or be resumed
└── MissingExtraError  a part that was not installed, and the pip command that installs it
"""

import importlib
from types import ModuleType


class DragomanError(Exception):
    """Anything that a person can mend; the command line prints it as one line and exits with 2."""


class ConfigError(DragomanError, ValueError):
    """A setting that cannot be."""


class DataError(DragomanError, ValueError):
    """Text that cannot be read or aligned."""


class BundleError(DragomanError):
    """A model folder that cannot be used."""


class LengthError(DragomanError, ValueError):
    """More pieces than the model takes."""


class TrainingError(DragomanError):
    """A training run that cannot start, go on or be resumed."""


class MissingExtraError(DragomanError, ImportError):
    """A part of dragoman that was not installed."""


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra brings it: `require("torch", "train", "training")`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{purpose} needs {error.name}: pip install -c constraints.txt '.[{extra}]' in dragoman's folder"
        ) from error
