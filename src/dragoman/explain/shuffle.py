"""Self-attention does not know the order of its inputs: shuffled pieces give the same vectors, shuffled.

    sa(p(X)) = p(sa(X))

Positions, added to the pieces, are what breaks this. Here both are measured on the model's encoder.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.model.build import TranslationModel
from dragoman.model.transformer import Transformer


@dataclass(frozen=True)
class Agreement:
    """How near encoding the shuffled pieces comes to shuffling the encoded ones."""

    largest_difference: float
    mean_cosine: float


@dataclass(frozen=True)
class Rows:
    """The cosine of each piece's two vectors, in the shuffled order."""

    without_positions: tuple[float, ...]
    with_positions: tuple[float, ...]


@dataclass(frozen=True)
class Shuffled:
    """The order that the pieces were put in (the end stays last), and how near the two came."""

    order: tuple[int, ...]
    without_positions: Agreement
    with_positions: Agreement
    rows: Rows


def shuffle_pieces(model: TranslationModel, source_ids: Sequence[int], seed: int) -> Shuffled:
    """Encode the pieces as they are and in another order, both with positions and without."""
    if not isinstance(model, Transformer):
        raise ConfigError("only a Transformer's encoder can do without order: this model reads piece by piece")
    order = shuffled_order(len(source_ids), seed)
    mixed = [source_ids[place] for place in order]
    with torch.inference_mode():
        found = [
            (_encode(model, source_ids, positions)[list(order)], _encode(model, mixed, positions))
            for positions in (False, True)
        ]
    without, with_ = (_agreement(*pair) for pair in found)
    cosines = (tuple(torch.cosine_similarity(*pair, dim=-1).tolist()) for pair in found)
    return Shuffled(order, without, with_, Rows(*cosines))


def shuffled_order(length: int, seed: int) -> tuple[int, ...]:
    """The places of all pieces but the last in an order of the seed's, never as they were if there is another."""
    places = list(range(length - 1))
    draw = random.Random(seed)
    while places == sorted(places) and len(places) > 1:
        draw.shuffle(places)
    return (*places, length - 1)


def _encode(model: Transformer, ids: Sequence[int], positions: bool) -> Tensor:
    embedding, encoder = model.source_embedding, model.encoder
    ids_1S = torch.tensor([list(ids)])
    x_1SD = embedding(ids_1S) if positions else embedding.pieces(ids_1S) * embedding.scale
    encoded_1SD: Tensor = encoder(x_1SD)
    return encoded_1SD[0]


def _agreement(left_SD: Tensor, right_SD: Tensor) -> Agreement:
    cosine = torch.cosine_similarity(left_SD, right_SD, dim=-1).mean()
    return Agreement(float((left_SD - right_SD).abs().max()), float(cosine))
