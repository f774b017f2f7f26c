"""One model of several: the mean of their weights.

Models that were trained on from the same one lie close enough together for it, and the mean often translates better
than any of them (Wortsman et al. call it a soup); models with different beginnings do not, and it is noise.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dragoman.bundle.card import model_card
from dragoman.bundle.folder import Bundle
from dragoman.bundle.weights import Weights
from dragoman.errors import BundleError, ConfigError

_OF_THE_FIRST = ("licence", "limits")


def average(bundles: Sequence[Bundle], folder: Path, command: str = "") -> Bundle:
    """Write the mean of some models of one shape and with the same pieces to a new folder.

    How to search, words, licence and limits come from the first; the card has the data of all of them, and the commands
    that made them, and then `command`, that of the mean. Scores are to be measured anew.
    """
    if len(bundles) < 2:
        raise ConfigError("there is nothing to average: name two models or more")
    if folder.exists():
        raise BundleError(f"{folder} is there already: give a new folder with --output")
    first, *others = bundles
    for other in others:
        _check_kinship(first, other)
    all_weights = [bundle.weights() for bundle in bundles]
    weights: Weights = {
        name: np.stack([one[name] for one in all_weights]).mean(axis=0, dtype=np.float32) for name in all_weights[0]
    }
    cards = [bundle.scorecard for bundle in bundles]
    scorecard = {name: cards[0][name] for name in _OF_THE_FIRST if name in cards[0]}
    data = [corpus for card in cards for corpus in card.get("data", [])]
    if data:
        scorecard["data"] = [corpus for place, corpus in enumerate(data) if corpus not in data[:place]]
    if commands := [*(card["command"] for card in cards if "command" in card), *([command] if command else ())]:
        scorecard["command"] = "\n".join(commands)
    if all("minutes" in card for card in cards):
        scorecard["minutes"] = sum(float(card["minutes"]) for card in cards)
    card = model_card(
        directions=first.directions,
        model_config=first.model_config,
        num_parameters=first.num_parameters,
        scorecard=scorecard,
    )
    return Bundle.write(
        folder,
        model_config=first.model_config,
        search=first.search,
        tokenizer=first.tokenizer,
        weights=weights,
        directions=first.directions,
        known_words=first.known_words,
        card=card,
        scorecard=scorecard,
    )


def _check_kinship(first: Bundle, other: Bundle) -> None:
    """Dropout is nothing that weights have."""
    still = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    if replace(other.model_config, **still) != replace(first.model_config, **still):  # type: ignore[arg-type]
        raise ConfigError(f"{other.path.name} has another shape than {first.path.name}: their weights have no mean")
    if other.tokenizer.fingerprint() != first.tokenizer.fingerprint():
        raise ConfigError(
            f"{other.path.name} has other pieces than {first.path.name}: average models that were trained on "
            f"from one model, with --init"
        )
    if other.directions != first.directions:
        raise ConfigError(
            f"{other.path.name} translates {', '.join(other.directions)}, {first.path.name} "
            f"{', '.join(first.directions)}: average models of the same directions"
        )
