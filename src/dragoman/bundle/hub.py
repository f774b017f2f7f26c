"""Models on a hub, by a name like owner/model: `huggingface_hub`, if installed, fetches them into its own cache."""

import importlib.util
import os
import re
from pathlib import Path

from dragoman.errors import BundleError, require

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_WANTED = ["*.json", "*.spm", "model.safetensors", "README.md"]
_PATIENCE_SECONDS = 10.0


def is_hub_name(name: str) -> bool:
    """Whether this can only be a model on a hub: owner/model, where there is no folder of the owner's name."""
    return _NAME.fullmatch(name) is not None and not Path(name).parent.exists()


def has_hub() -> bool:
    return importlib.util.find_spec("huggingface_hub") is not None


def endpoint() -> str | None:
    """Where the hub is, if that was said."""
    return os.environ.get("HF_ENDPOINT") or None


def download(name: str, allow_pickle: bool = False) -> Path:
    """The folder of a model on a hub; only files that a model needs are fetched, and no pickle unless allowed."""
    library = require("huggingface_hub", "hub", f"fetching the model {name} from a hub")
    wanted = [*_WANTED, *(["pytorch_model.bin"] if allow_pickle else [])]
    try:
        folder = library.snapshot_download(
            name, endpoint=endpoint(), allow_patterns=wanted, etag_timeout=_PATIENCE_SECONDS
        )
    except Exception as error:  # what goes wrong on the way has no common class from version to version
        raise BundleError(f"the hub did not give the model {name} ({first_line(error)}): {advice(error)}") from error
    return Path(folder)


def first_line(error: Exception) -> str:
    """What an error of the library says first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200].rstrip(".") if lines else type(error).__name__


def advice(error: Exception) -> str:
    """What to do about an error of the library."""
    cause: BaseException | None = error
    while cause is not None:
        if getattr(getattr(cause, "response", None), "status_code", None) in (401, 403, 404):
            return "is the name right, and are you logged in (`hf auth login`) if it is private?"
        cause = cause.__cause__
    return "is there a network? A folder on this machine needs none"
