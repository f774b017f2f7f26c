"""The weights of a training run that are kept beside a model. No torch here."""

import re
from pathlib import Path

FOLDERS = ("checkpoints", "run/weights")
_NAME = re.compile(r"step-(\d+)\.safetensors")


def kept_checkpoints(folder: Path) -> dict[int, Path]:
    """The files of weights that are kept, by step, first steps first."""
    found = {}
    for name in reversed(FOLDERS):
        for path in (folder / name).glob("step-*.safetensors"):
            if match := _NAME.fullmatch(path.name):
                found[int(match[1])] = path
    return dict(sorted(found.items()))
