"""dragoman: translators of your own. Train them, see into them, ship them.

The names of `__all__` are loaded when they are first used, so `import dragoman` is instant and needs no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.config import ModelConfig
    from dragoman.model.transformer import Transformer

__version__ = "0.1.0"

_HOMES = {
    "ModelConfig": "dragoman.config",
    "Transformer": "dragoman.model.transformer",
}

__all__ = [
    "DragomanError",
    "ModelConfig",
    "Transformer",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
