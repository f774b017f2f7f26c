"""Where embeddings begin: pieces that stand in the same pairs are neighbours.

    pmi_ij = log(n n_ij / (n_i n_j)), and 0 where that is less

of n pairs, n_i of which have piece i, on either side, and n_ij both. What a word and its translation share is their
company, on both sides, so their rows of pmi are alike; U sqrt(S) of pmi = U S W^T, cut to d_model columns, keeps that.
A model that begins so need not find out word by word what means the same: it begins with a dictionary.

Besides the project's letters: N pieces of the pairs at hand, each counted once a pair; J commonest pieces, by whose
company all others are known.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.text.mixture import Mixture

MOST_PAIRS, MOST_COMPANY = 200_000, 4096
AT_ONCE = 4096
LEAST_PAIRS, LEAST_SAID = 2, 1e-3
DRAWN = 0.3
"""The share of a row's length that is drawn all the same: no two pieces begin as one."""
_SPARE_COLUMNS, _ROUNDS = 32, 3


def neighbouring(data: Mixture, vocab_size: int, d_model: int, seed: int) -> Tensor:
    """Pairs of one vocabulary -> embeddings (V, D) with rows of about unit length; of pieces hardly met, drawn ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        drawn_VD = torch.randn(vocab_size, d_model) * d_model**-0.5
        count_V, pmi_VJ = _association(data, vocab_size)
        rank = min(d_model, *pmi_VJ.shape)
        # Vectors of nearly equal singular values turn with the rounding, and so with the number of threads: in doubles
        # that is not seen.
        u, s, _ = torch.svd_lowrank(pmi_VJ.double(), q=min(rank + _SPARE_COLUMNS, *pmi_VJ.shape), niter=_ROUNDS)
        met_VD = torch.zeros(vocab_size, d_model)
        met_VD[:, :rank] = u[:, :rank] * s[:rank].sqrt()
        # In the singular vectors' own axes the first channels would have nearly all there is.
        rotation_DD, _ = torch.linalg.qr(torch.randn(d_model, d_model))
    known_V1 = (count_V >= LEAST_PAIRS)[:, None] & (pmi_VJ.amax(1, keepdim=True) > LEAST_SAID)
    met_VD = torch.nn.functional.normalize(met_VD - met_VD.mean(0)) @ rotation_DD
    return torch.where(known_V1, math.sqrt(1 - DRAWN**2) * met_VD + DRAWN * drawn_VD, drawn_VD)


def _association(data: Mixture, vocab_size: int) -> tuple[Tensor, Tensor]:
    """How many pairs have each piece (V), and pmi (V, J)."""
    count_V = np.zeros(vocab_size, np.int64)
    for _, piece_N in _met(data, vocab_size):
        count_V += np.bincount(piece_N, minlength=vocab_size)
    # A piece that all pairs have, such as the end, says nothing: its row and column come out as 0.
    company_J = np.argsort(-count_V, kind="stable")[: min(MOST_COMPANY, vocab_size)]
    column_V = np.full(vocab_size, -1)
    column_V[company_J] = np.arange(len(company_J))
    together = torch.zeros(vocab_size * len(company_J))
    for pair_N, piece_N in _met(data, vocab_size):
        is_company_N = column_V[piece_N] >= 0
        company_N, of_pair = column_V[piece_N[is_company_N]], pair_N[is_company_N]
        start_N, end_N = np.searchsorted(of_pair, pair_N, "left"), np.searchsorted(of_pair, pair_N, "right")
        width_N = end_N - start_N
        first = np.repeat(start_N - (np.cumsum(width_N) - width_N), width_N)
        cells = np.repeat(piece_N, width_N) * len(company_J) + company_N[first + np.arange(len(first))]
        together.scatter_add_(0, torch.from_numpy(cells), torch.ones(len(cells)))
    pmi_VJ = together.view(vocab_size, -1)
    share_V = torch.from_numpy(count_V.clip(1) / math.sqrt(_num_pairs(data))).float()
    pmi_VJ.div_(share_V[:, None]).div_(share_V[torch.from_numpy(company_J)])
    return torch.from_numpy(count_V), pmi_VJ.clamp_(min=1).log_()


def _num_pairs(data: Mixture) -> int:
    return len(range(0, len(data), _stride(data)))


def _stride(data: Mixture) -> int:
    return math.ceil(len(data) / MOST_PAIRS)


def _met(data: Mixture, vocab_size: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The pieces of some pairs at a time, from all over the data: a pair's number and a piece (N each), once a pair,
    in the order of the pairs.
    """
    places = range(0, len(data), _stride(data))
    for start in range(0, len(places), AT_ONCE):
        pairs = [data.pair(place) for place in places[start : start + AT_ONCE]]
        lengths = [len(source) + len(target) for source, target in pairs]
        piece = np.concatenate([side for pair in pairs for side in pair]).astype(np.int64)
        once = np.unique(np.repeat(np.arange(len(pairs)), lengths) * vocab_size + piece)
        yield once // vocab_size, once % vocab_size
