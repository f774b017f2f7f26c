"""A bundle, converted for CTranslate2 with numpy alone: once, into the cache, and only if it still does the same.

The converted folder is keyed by everything that it is made from: the weights' hash, the model's shape, what is
computed in, and the version of this converter. `probe.json` in it says how far quantisation moved the model.
"""

import hashlib
import json
import logging
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Literal, get_args

from dragoman.bundle import Bundle
from dragoman.cache import cache_folder, make_folder
from dragoman.config import ModelConfig
from dragoman.engine.probe import MAX_DIFFERENCE, compare, probe_sources
from dragoman.engine.spec import make_spec
from dragoman.engine.without_torch import import_ctranslate2
from dragoman.errors import BundleError, ConfigError
from dragoman.settings import nearest, to_mapping

ComputeType = Literal["int8", "float32"]
CONVERTER_VERSION = 1
_LOG = logging.getLogger("dragoman.engine")


def convert(bundle: Bundle, compute_type: ComputeType = "int8") -> Path:
    """The folder of the converted model; made if it is not in the cache yet."""
    if compute_type not in get_args(ComputeType):
        raise ConfigError(f"unknown compute type {compute_type!r}{nearest(compute_type, get_args(ComputeType))}")
    if bundle.model_config.architecture == "recurrent":
        raise ConfigError("CTranslate2 has no recurrent models: use the torch engine, or leave the choice to `auto`")

    def fill(folder: Path) -> None:
        _LOG.info("converting %s to CTranslate2 %s", bundle.path, compute_type)
        bundle.verify()
        _save(bundle, compute_type, folder)
        if compute_type != "float32":
            _check(bundle, compute_type, folder)

    return make_folder(cache_folder("ctranslate2") / _key(bundle, compute_type), fill)


def vocabulary(config: ModelConfig) -> list[str]:
    """What our ids are called in a converted model, on either side."""
    return [str(id) for id in range(max(config.vocab_size, config.num_source_pieces))]


def _key(bundle: Bundle, compute_type: ComputeType) -> str:
    made_from = [bundle.weights_hash(), to_mapping(bundle.model_config), compute_type, CONVERTER_VERSION]
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:32]


def _save(bundle: Bundle, compute_type: ComputeType, folder: Path) -> None:
    config = bundle.model_config
    names, source_names = (vocabulary(config)[:count] for count in (config.vocab_size, config.num_source_pieces))
    spec = make_spec(config, bundle.weights(), names, compute_type == "int8", source_names)
    spec.save(str(folder))


def _check(bundle: Bundle, compute_type: ComputeType, folder: Path) -> None:
    """Compare with float32 on a probe set, write down the outcome, and refuse a model that quantisation spoiled."""
    exact_folder = folder / "float32"
    exact_folder.mkdir()
    _save(bundle, "float32", exact_folder)
    library = import_ctranslate2()
    exact = library.Translator(str(exact_folder), compute_type="float32", intra_threads=1)
    quantised = library.Translator(str(folder), compute_type=compute_type, intra_threads=1)
    parity = compare(
        exact, quantised, probe_sources(bundle), vocabulary(bundle.model_config)[bundle.model_config.end_id]
    )
    shutil.rmtree(exact_folder)
    (folder / "probe.json").write_text(json.dumps(asdict(parity), indent=1) + "\n", encoding="utf-8")
    _LOG.info(
        "%s against float32: %.1f %% of pieces the same, scores differ by %.4f a piece",
        compute_type,
        100 * parity.token_agreement,
        parity.score_difference,
    )
    if not parity.score_difference <= MAX_DIFFERENCE:
        raise BundleError(
            f"{compute_type} changes this model's scores by {parity.score_difference:.2f} a piece, at most "
            f"{MAX_DIFFERENCE} is good: use --compute-type float32, or the torch engine"
        )
