"""Findings about a model, written into its folder: scorecard.json, and the model card that is made from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.bundle.card import model_card
from dragoman.bundle.folder import CARD, SCORECARD, Bundle, json_bytes
from dragoman.cache import atomic_file
from dragoman.errors import BundleError

_SAME = ("metric", "on", "signature")


def record(
    bundle: Bundle, *, scores: Sequence[Mapping[str, Any]] = (), behaviour: Mapping[str, Sequence[Any]] | None = None
) -> None:
    """Put scores, as `model_card` knows them, and behaviour by direction beside what is known already.

    A score replaces the one of the same metric and signature on the same set, a direction's behaviour the one before.
    """
    card = dict(bundle.scorecard)
    if scores:
        new = {tuple(score.get(name) for name in _SAME) for score in scores}
        kept = [score for score in card.get("scores", []) if tuple(score.get(name) for name in _SAME) not in new]
        card["scores"] = [*kept, *map(dict, scores)]
    if behaviour:
        card["behaviour"] = {**card.get("behaviour", {}), **behaviour}
    text = model_card(
        directions=bundle.directions,
        model_config=bundle.model_config,
        num_parameters=bundle.num_parameters,
        scorecard=card,
    )
    try:
        for name, data in ((SCORECARD, json_bytes(card)), (CARD, text.encode())):
            with atomic_file(bundle.path / name) as file:
                file.write_bytes(data)
    except OSError as error:
        raise BundleError(f"cannot write the scores to {bundle.path}: {error.strerror or error}") from error
