"""A transformers `MarianMTModel` folder, OPUS-MT's for one, becomes a model folder of ours."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.bundle import Bundle, model_card
from dragoman.config import ModelConfig
from dragoman.errors import BundleError, ConfigError
from dragoman.interop.checkpoint_file import read_checkpoint
from dragoman.interop.marian_config import MarianConfig, read_marian_config
from dragoman.interop.marian_weights import from_marian
from dragoman.text.sentencepiece_tokenizer import (
    SETTINGS,
    SOURCE,
    TARGET,
    TARGET_VOCABULARY,
    VOCABULARY,
    SentencePieceTokenizer,
    marian_tag,
    read_vocabulary,
)

_LOG = logging.getLogger("dragoman.interop")
_LEAST_COVERED = 0.5
_OPUS_NAME = re.compile(r"opus-mt-(?:tc-\w+-)?([A-Za-z_]+)-([A-Za-z_]+)$")
_LARGEST_JSON = 64 << 20


def import_marian(
    folder: Path, output: Path, *, allow_pickle: bool = False, directions: Sequence[str] = (), name: str = ""
) -> Bundle:
    """Write the model in `folder` to `output`, a new folder. `directions` are source-target pairs, say fr-en, for a
    model that does not name its languages or knows more than are wanted; `name` is what the model is called.
    """
    if not folder.is_dir():
        raise BundleError(f"there is no folder {folder}: give that of a transformers Marian model")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise BundleError(f"{output} is there already: give a new or empty folder with --output")
    name = name or folder.resolve().name
    config = read_marian_config(
        _json(folder / "config.json"), _json(folder / "generation_config.json", needed=False), folder / "config.json"
    )
    tokenizer, directions = _tokenizer(folder, config.model, directions, name)
    theirs = read_checkpoint(folder, allow_pickle)
    weights = from_marian(
        theirs, config.model, scale_embedding=config.scale_embedding, banned=config.banned, where=str(folder)
    )
    scorecard = {"imported_from": name, "licence": _licence(folder), "limits": _limits(config, name)}
    return Bundle.write(
        output,
        model_config=config.model,
        search=config.search,
        tokenizer=tokenizer,
        weights=weights,
        directions=directions,
        card=model_card(
            directions=directions,
            model_config=config.model,
            num_parameters=sum(array.size for array in weights.values()),
            scorecard=scorecard,
        ),
        scorecard=scorecard,
    )


def _tokenizer(
    folder: Path, config: ModelConfig, directions: Sequence[str], name: str
) -> tuple[SentencePieceTokenizer, list[str]]:
    """The pieces, which must be those of the config, and the directions that they serve."""
    theirs = _json(folder / SETTINGS, needed=False)
    separate = bool(theirs.get("separate_vocabs")) or (folder / TARGET_VOCABULARY).is_file()
    files = {
        one: _read(folder / one) for one in (SOURCE, TARGET, VOCABULARY, *([TARGET_VOCABULARY] if separate else []))
    }
    vocabulary = read_vocabulary(files[VOCABULARY], str(folder / VOCABULARY))
    target_vocabulary = read_vocabulary(
        files.get(TARGET_VOCABULARY, files[VOCABULARY]), str(folder / TARGET_VOCABULARY)
    )
    for file, known, expected in (
        (VOCABULARY, vocabulary, config.num_source_pieces),
        (TARGET_VOCABULARY if separate else VOCABULARY, target_vocabulary, config.vocab_size),
    ):
        if len(known) != expected:
            raise BundleError(
                f"{folder / file} has {len(known)} pieces, config.json says {expected}: "
                f"these two files are not of one model"
            )
    special = {
        "pad_token": _name_of(config.padding_id, vocabulary),
        "begin_token": _name_of(config.begin_id, target_vocabulary),
        "eos_token": _name_of(config.end_id, vocabulary),
        "unk_token": _text(theirs.get("unk_token"), "<unk>"),
    }
    for role, id in (("pad_token", config.padding_id), ("eos_token", config.end_id)):
        told = _text(theirs.get(role), special[role])
        if any(known.get(told) != id for known in (vocabulary, target_vocabulary)):
            raise BundleError(
                f"{folder} calls its {role} {told!r}, which is not the piece {id} of its vocabulary, as config.json "
                f"says: these files are not of one model"
            )
    directions, languages = _languages(vocabulary, directions, theirs, name)
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": theirs.get("source_lang"),
        "target_lang": theirs.get("target_lang"),
        "separate_vocabs": separate,
        **special,
        "languages": languages,
    }
    files[SETTINGS] = (json.dumps(settings, ensure_ascii=False, indent=1) + "\n").encode()
    tokenizer = SentencePieceTokenizer(files, str(folder))
    _check_coverage(tokenizer, folder)
    return tokenizer, directions


def _languages(
    vocabulary: Mapping[str, int], directions: Sequence[str], theirs: Mapping[str, Any], name: str
) -> tuple[list[str], list[str]]:
    """The directions, and the languages that a source must ask for; none where the model writes one language only."""
    tags = [piece[2:-2] for piece in vocabulary if piece.startswith(">>") and piece.endswith("<<") and len(piece) > 4]
    if not directions:
        match = _OPUS_NAME.search(name)
        source = _text(theirs.get("source_lang"), match[1] if match else "")
        target = _text(theirs.get("target_lang"), match[2] if match else "")
        if not source or not (target or tags):
            raise ConfigError(f"{name} does not say which languages it translates: give --languages, say fr-en")
        directions = [f"{source}-{one}" for one in (tags or [target])]
    for direction in directions:
        if not re.fullmatch(r"[\w]+-[\w-]+", direction):
            raise ConfigError(f"languages is {direction!r}, expected source-target, say fr-en")
    targets = list(dict.fromkeys(direction.partition("-")[2] for direction in directions))
    tagged = [target for target in targets if target in tags]
    if tagged and len(tagged) < len(targets):
        lacking = next(target for target in targets if target not in tags)
        raise ConfigError(f"{name} has no tag {marian_tag(lacking)}, but one for {tagged[0]}: leave out {lacking}")
    return list(directions), tagged


def _check_coverage(tokenizer: SentencePieceTokenizer, folder: Path) -> None:
    """SentencePiece models of another model have other pieces, and would make everything unknown."""
    for side in (tokenizer, tokenizer.target_side):
        assert isinstance(side, SentencePieceTokenizer)
        if (share := side.coverage()) < _LEAST_COVERED:
            raise BundleError(
                f"only {100 * share:.0f} % of the pieces of {folder}/{side.side}.spm are in the vocabulary: "
                f"these files are not of one model"
            )


def _limits(config: MarianConfig, name: str) -> str:
    power = f"{config.search.length_penalty:g}"
    return (
        f"Imported from {name}; the weights are as they were. Its beam search normalised scores by length^{power}, "
        f"here it is ((5 + length) / 6)^{power}."
    )


def _licence(folder: Path) -> str:
    """What the model card's header says, if there is one."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace")[:4096] if card.is_file() else ""
    match = re.search(r"^license: *[\"']?([\w.\- ]+)", text, flags=re.MULTILINE)
    return match[1].strip() if match else ""


def _name_of(id: int, vocabulary: Mapping[str, int]) -> str:
    return next((piece for piece, known in vocabulary.items() if known == id), "")


def _text(value: Any, default: str) -> str:
    """A special token is a text, or an object that holds it as its content."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) and value else default


def _json(path: Path, needed: bool = True) -> dict[str, Any]:
    if not needed and not path.is_file():
        return {}
    try:
        contents = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path} is not JSON ({error}): copy the model again") from error
    if not isinstance(contents, dict):
        raise BundleError(f"{path} holds a {type(contents).__name__}, expected a JSON object")
    return contents


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise BundleError(f"{path.parent} lacks {path.name}, so it is not a whole Marian model: download it again")
    if (size := path.stat().st_size) > _LARGEST_JSON:
        raise BundleError(f"{path} has {size:,} bytes, expected at most {_LARGEST_JSON:,}: it is something else")
    return path.read_bytes()
