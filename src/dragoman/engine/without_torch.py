"""CTranslate2 without torch.

CTranslate2 imports torch where it finds it (its model specifications always do, old versions on their first import),
only to accept torch tensors. We hand it numpy arrays, and torch would make the first translation wait for seconds.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_UNWANTED = ("torch", "transformers")


class _Refusal:
    """An import finder that hides packages from one thread; others may import them meanwhile."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in _UNWANTED and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


@contextmanager
def _hidden() -> Iterator[None]:
    """Packages that are loaded already stay: hiding them would gain nothing."""
    refusal = _Refusal()
    sys.meta_path.insert(0, refusal)
    try:
        yield
    finally:
        sys.meta_path.remove(refusal)


def import_ctranslate2() -> Any:
    """The package that runs models."""
    with _hidden():
        import ctranslate2  # type: ignore[import-untyped]
    return ctranslate2


def import_specs() -> Any:
    """The classes that describe a model to be converted."""
    with _hidden():
        import ctranslate2.specs  # type: ignore[import-untyped]
    return ctranslate2.specs
