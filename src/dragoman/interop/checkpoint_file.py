"""Weights from a file of another toolkit, read with suspicion: arrays come out, or an error, and nothing is run."""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from dragoman.errors import BundleError, require

_LOG = logging.getLogger("dragoman.interop")
SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}

Arrays = dict[str, NDArray[np.float32]]


def read_checkpoint(folder: Path, allow_pickle: bool = False) -> Arrays:
    """The weights of a transformers folder, in float32; pickle only if it is allowed, and then weights alone."""
    if (folder / SAFETENSORS).is_file():
        return read_safetensors(folder / SAFETENSORS)
    if (folder / f"{SAFETENSORS}.index.json").is_file():
        raise BundleError(f"{folder} has its weights in several files: save it as one {SAFETENSORS}")
    if not (folder / PICKLE).is_file():
        raise BundleError(f"{folder} has neither {SAFETENSORS} nor {PICKLE}: download the model again")
    if not allow_pickle:
        raise BundleError(
            f"{folder} has its weights in {PICKLE}, a pickle, and pickles can run programs: if you trust where it "
            f"comes from, give --allow-pickle; it is then read as weights only"
        )
    _LOG.warning("reading the pickle %s, as weights only: import models as %s where you can", PICKLE, SAFETENSORS)
    return read_pickle(folder / PICKLE)


def read_safetensors(path: Path) -> Arrays:
    """Every array of a .safetensors file; the library checks the header's size and that nothing lies outside."""
    try:
        tensors = safetensors.deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except (OSError, safetensors.SafetensorError) as error:
        raise BundleError(f"{path} is not a whole safetensors file ({error}): copy the model again") from error
    return {name: _array(tensor, name, path) for name, tensor in tensors}


def read_pickle(path: Path) -> Arrays:
    """Every array of what `torch.save` wrote; anything but tensors in it is refused before it could run."""
    torch = require("torch", "train", f"reading {path.name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pickles that it may not read: then it raises an error
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle fails in any way it likes
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise BundleError(
            f"{path} holds something else than weights, or is damaged, and is not read: {reason}"
        ) from error
    if not isinstance(state, dict):
        raise BundleError(f"{path} holds a {type(state).__name__}, expected weights by name")
    arrays = {}
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            raise BundleError(f"{path} holds {str(name)[:80]!r}, which is not a weight")
        arrays[name] = tensor.float().numpy()
    return _finite(arrays, path)


def _array(tensor: dict[str, Any], name: str, path: Path) -> NDArray[np.float32]:
    dtype, data, shape = tensor["dtype"], tensor["data"], tensor["shape"]
    if dtype == "BF16":  # the upper half of a float32
        array = (np.frombuffer(data, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
    elif dtype in _DTYPES:
        array = np.frombuffer(data, dtype=_DTYPES[dtype]).astype(np.float32)
    else:
        raise BundleError(f"{path} has the weight {name[:80]!r} in {dtype}, expected floating-point numbers")
    return _finite({name: array.reshape(shape)}, path)[name]


def _finite(arrays: Arrays, path: Path) -> Arrays:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise BundleError(f"{path} has the weight {name[:80]!r} with values that are no numbers")
    return arrays
