"""The models in the box: bundles that came with the package, by name and by direction."""

from collections.abc import Iterable
from pathlib import Path

from dragoman.bundle.folder import CONFIG, Bundle
from dragoman.bundle.hub import download, has_hub, is_hub_name
from dragoman.errors import BundleError
from dragoman.text.languages import matching_direction

BOX = Path(__file__).resolve().parent.parent / "models"
FIRST = ("fr", "en")
"""The direction that is meant where none is named."""


def in_the_box() -> list[str]:
    """The names of the models that came with the package; first the one that is named after `FIRST`."""
    if not BOX.is_dir():
        return []
    names = (folder.name for folder in BOX.iterdir() if (folder / CONFIG).is_file())
    return sorted(names, key=lambda name: (name != "-".join(FIRST), name))


def find(path_or_name: Path | str) -> Path:
    """The folder of a model: a path, the name of one in the box, or owner/model on a hub, which is then fetched."""
    path = Path(path_or_name)
    if (path / CONFIG).is_file():
        return path
    if str(path_or_name) in in_the_box():
        return BOX / str(path_or_name)
    if path.exists():
        return path  # opening it says what it lacks
    if is_hub_name(str(path_or_name)):
        if has_hub():
            return download(str(path_or_name))
        raise BundleError(
            f"there is no model at {path}; if it is one on a hub, fetching it takes the extra hub: "
            f"pip install -c constraints.txt '.[hub]' in dragoman's folder"
        )
    raise BundleError(f"there is no model at {path}, and none of that name in the box, which has {_list(in_the_box())}")


def find_direction(source: str | None, target: str | None) -> Path:
    """The model in the box that translates from `source` to `target`; one side alone is enough if it tells, and without
    any it is `FIRST`. Of several the one that does least else, as it was trained for that.
    """
    if source is None and target is None:
        source, target = FIRST
    bundles = [Bundle.open(BOX / name) for name in in_the_box()]
    found = (matching_direction(bundle.languages, source, target) for bundle in bundles)
    if direction := next(filter(None, found), None):
        fitting = [bundle for bundle in bundles if direction in bundle.languages]
        return min(fitting, key=lambda bundle: len(bundle.languages)).path
    wanted = " ".join(f"{word} {language}" for word, language in (("from", source), ("to", target)) if language)
    directions = dict.fromkeys(direction for bundle in bundles for direction in bundle.directions)
    raise BundleError(f"no model translates {wanted} in the box, which has {_list(directions)}: give --model FOLDER")


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
