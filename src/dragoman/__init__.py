"""dragoman: translators of your own. Train them, see into them, ship them.

    translator = dragoman.load("models/mine")
    translator.translate("Je suis étudiant.").text

The names of `__all__` are loaded when they are first used, so `import dragoman` is instant and needs no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.config import ModelConfig
    from dragoman.model.transformer import Transformer
    from dragoman.recipe import Recipe
    from dragoman.train.request import Request
    from dragoman.train.run import train_model
    from dragoman.translator import Translation, Translator, load

__version__ = "0.1.0"

_HOMES = {
    "ModelConfig": "dragoman.config",
    "Recipe": "dragoman.recipe",
    "Request": "dragoman.train.request",
    "Transformer": "dragoman.model.transformer",
    "Translation": "dragoman.translator",
    "Translator": "dragoman.translator",
    "load": "dragoman.translator",
    "train_model": "dragoman.train.run",
}

__all__ = [
    "DragomanError",
    "ModelConfig",
    "Recipe",
    "Request",
    "Transformer",
    "Translation",
    "Translator",
    "__version__",
    "load",
    "train_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
