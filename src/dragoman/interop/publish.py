"""A model folder, published on a hub with its card: what `load` needs, how it scored, and how training went."""

import re
from pathlib import Path

from dragoman.bundle import Bundle, model_card
from dragoman.bundle.folder import CARD, CONFIG, SCORECARD, TRAINING, WEIGHTS
from dragoman.bundle.hub import advice, endpoint, first_line
from dragoman.errors import BundleError, ConfigError, require
from dragoman.text.known_words import WORDS

# Licences that the hub knows by name; any other is given as text.
_LICENCES = frozenset(
    ("apache-2.0", "mit", "cc0-1.0", "cc-by-2.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "gpl-3.0")
)


def publish(bundle: Bundle, name: str, *, private: bool = False) -> str:
    """Upload in one commit; returns the model's address."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name):
        raise ConfigError(f"{name!r} is not a name on a hub: write owner/name")
    library = require("huggingface_hub", "hub", "publishing a model")
    bundle.verify()
    files: dict[str, bytes | Path] = {CARD: hub_card(bundle).encode()}
    wanted = (CONFIG, *bundle.tokenizer.files(), WORDS, WEIGHTS, SCORECARD, TRAINING)
    files |= {one: bundle.path / one for one in wanted if (bundle.path / one).is_file()}
    operations = [
        library.CommitOperationAdd(path_in_repo=one, path_or_fileobj=data if isinstance(data, bytes) else str(data))
        for one, data in files.items()
    ]
    try:
        api = library.HfApi(endpoint=endpoint())
        address = api.create_repo(name, private=private or None, exist_ok=True)
        api.create_commit(name, operations, commit_message="A model of dragoman")
    except Exception as error:  # what goes wrong on the way has no common class from version to version
        raise BundleError(f"the hub did not take the model {name} ({first_line(error)}): {advice(error)}") from error
    return str(address)


def hub_card(bundle: Bundle) -> str:
    """The model card with the header that a hub sorts models by."""
    file = bundle.path / CARD
    card = file.read_text(encoding="utf-8") if file.is_file() else _fresh_card(bundle)
    card = re.sub(r"\A---\n.*?\n---\n+", "", card, flags=re.DOTALL)
    languages = dict.fromkeys(language for direction in bundle.languages for language in direction)
    licence = str(bundle.scorecard.get("licence", ""))
    header = ["---", "language:", *(f"- {_quoted(language)}" for language in languages)]
    if licence.lower() in _LICENCES:
        header.append(f"license: {licence.lower()}")
    elif licence:
        header += ["license: other", f"license_name: {_quoted(licence)}"]
    header += ["library_name: dragoman", "pipeline_tag: translation", "tags:", "- translation", "- dragoman", "---"]
    return "\n".join(header) + "\n\n" + card


def _fresh_card(bundle: Bundle) -> str:
    return model_card(
        directions=bundle.directions,
        model_config=bundle.model_config,
        num_parameters=bundle.num_parameters,
        scorecard=bundle.scorecard,
    )


def _quoted(text: str) -> str:
    """YAML reads `no` as false: in quotes it is Norwegian."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
