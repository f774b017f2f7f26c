"""Which engine: CTranslate2, and torch for what that lacks."""

from __future__ import annotations

import importlib.util
import logging
import threading
from collections.abc import Sequence
from typing import Literal, get_args

from dragoman.bundle import Bundle
from dragoman.engine.convert import ComputeType
from dragoman.engine.ctranslate2_engine import CTranslate2Engine
from dragoman.engine.engine import Attention, DecodeOptions, Demand, Engine, Ids, Output, Pending
from dragoman.engine.torch_engine import TorchEngine
from dragoman.errors import ConfigError, MissingExtraError
from dragoman.settings import nearest

EngineName = Literal["auto", "ctranslate2", "torch"]
_LOG = logging.getLogger("dragoman.engine")


def open_engine(
    bundle: Bundle, name: EngineName = "auto", compute_type: ComputeType = "int8", workers: int = 0
) -> Engine:
    """The engine of that name for a bundle; `workers` 0 is one a core. Torch always computes in float32."""
    if name not in get_args(EngineName):
        raise ConfigError(f"unknown engine {name!r}{nearest(name, get_args(EngineName))}")
    if name == "torch":
        return TorchEngine.open(bundle)
    if name == "ctranslate2":
        return CTranslate2Engine.open(bundle, compute_type, workers)
    fast = open_fast_engine(bundle, compute_type, workers)
    return fast if isinstance(fast, TorchEngine) else AutoEngine(bundle, fast)


def open_fast_engine(bundle: Bundle, compute_type: ComputeType, workers: int, divide: bool = True) -> Engine:
    """CTranslate2, or torch for a model that it cannot run; `divide` is CTranslate2's."""
    if bundle.model_config.architecture == "recurrent":
        _LOG.warning("CTranslate2 has no recurrent models: the torch engine runs this one")
        return TorchEngine.open(bundle)
    return CTranslate2Engine.open(bundle, compute_type, workers, divide)


def has_torch() -> bool:
    """Whether torch is installed; it is not loaded to find out."""
    return importlib.util.find_spec("torch") is not None


class AutoEngine:
    """A fast engine, and the reference for what it lacks, opened when that is first asked for."""

    def __init__(self, bundle: Bundle, fast: Engine) -> None:
        self._bundle = bundle
        self._fast = fast
        self._reference: Engine | None = None
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        return self._fast.name

    @property
    def compute_type(self) -> str:
        return self._fast.compute_type

    def lacks(self, options: DecodeOptions, demands: Sequence[Demand] | None = None) -> str:
        return "" if has_torch() else self._fast.lacks(options, demands)

    def submit(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> Pending:
        return self._choose(options, demands).submit(sources, options, demands)

    def translate_ids(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Output]]:
        return self.submit(sources, options, demands).results()

    def score_ids(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        return self._fast.score_ids(sources, targets)

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Attention]:
        return self._fast.attend(sources, targets)

    def _choose(self, options: DecodeOptions, demands: Sequence[Demand] | None) -> Engine:
        lacking = self._fast.lacks(options, demands)
        if not lacking:
            return self._fast
        if not has_torch():
            raise MissingExtraError(
                f"CTranslate2 lacks {lacking}, and torch is not installed: "
                f"pip install -c constraints.txt '.[train]' in dragoman's folder"
            )
        with self._opening:
            if self._reference is None:
                _LOG.info("CTranslate2 lacks %s: the torch engine does that", lacking)
                self._reference = TorchEngine.open(self._bundle)
            return self._reference
