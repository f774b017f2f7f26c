"""Sampling: translations drawn at random as the model holds them likely, made bolder or tamer.

Each sentence draws from its own generator, seeded by (seed, its index, the sample's number): a fixed seed repeats,
and what else is in the batch does not matter.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.recipe import SearchConfig
from dragoman.search.frontier import Candidates, Frontier, start
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.rules import Rules, allowed_log_probs, make_rules
from dragoman.search.searchable import Searchable, StateT


def sample(
    model: Searchable[StateT],
    source_BS: Tensor,
    config: SearchConfig,
    *,
    padding_id: int,
    begin_id: int,
    end_id: int,
    seed: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    num_samples: int = 1,
    indices: Sequence[int] | None = None,
    prefix: Sequence[Sequence[int]] | None = None,
    max_length: int | None = None,
) -> list[list[Hypothesis]]:
    """`num_samples` translations of each source, in the order they are drawn; their scores are the model's own.

    A piece is drawn from softmax(log p / temperature), cut down to the `top_k` likeliest (0: all) and to the fewest
    whose shares reach `top_p`. `indices` names the sentences for the generators where a batch is part of a larger
    input; otherwise they are counted from 0. A sample that does not end within its maximum length is unfinished.
    """
    _check(temperature, top_k, top_p, num_samples)
    if not len(source_BS):
        return []
    names = range(len(source_BS)) if indices is None else indices
    repeat_R = torch.arange(len(source_BS), device=source_BS.device).repeat_interleave(num_samples)
    rules = make_rules(
        source_BS[repeat_R],
        config,
        padding_id=padding_id,
        begin_id=begin_id,
        end_id=end_id,
        prefix=None if prefix is None else [ids for ids in prefix for _ in range(num_samples)],
        max_length=max_length,
    )
    keys = [(seed, name, number) for name in names for number in range(num_samples)]
    uniforms = [uniform_numbers(*key, limit + 1) for key, limit in zip(keys, rules.limits, strict=True)]
    drawn: dict[int, Hypothesis] = {}
    with torch.inference_mode():
        frontier, state = start(rules, source_BS.device), model.encode(source_BS).select(repeat_R)
        while frontier.sentences:
            step = model.step(frontier.last(begin_id), state)
            log_probs_RV = allowed_log_probs(
                step.logits_BV, frontier.ids_RT, frontier.sentences, frontier.progress, rules
            )
            uniform_R = torch.tensor([uniforms[one][frontier.length] for one in frontier.sentences])
            pieces_R = draw_pieces(log_probs_RV, uniform_R.to(source_BS.device), temperature, top_k, top_p)
            stay = finish(frontier, pieces_R, log_probs_RV, rules, drawn)
            rows_R = torch.arange(len(pieces_R), device=source_BS.device)
            totals_R = frontier.totals_R + log_probs_RV[rows_R, pieces_R]
            chosen = Candidates(rows_R[:, None], pieces_R[:, None], totals_R[:, None])
            frontier, state = frontier.proceed(chosen, log_probs_RV, frontier.led, stay), step.state
            if 0 < len(stay) < len(pieces_R):
                state = state.select(frontier.parents_R)
    return [[drawn[index * num_samples + n] for n in range(num_samples)] for index in range(len(names))]


def finish(
    frontier: Frontier, pieces_R: Tensor, log_probs_RV: Tensor, rules: Rules, drawn: dict[int, Hypothesis]
) -> list[int]:
    """Put the samples that end, or reach their maximum length, into `drawn`; the rows of the others."""
    stay = []
    for row, piece in enumerate(pieces_R.tolist()):
        sentence = frontier.sentences[row]
        if piece == rules.end_id:
            drawn[sentence] = frontier.end(row, log_probs_RV[row, piece].item(), rules.config.length_penalty)
        elif frontier.length == rules.limits[sentence]:
            drawn[sentence] = frontier.cut(row, rules.config.length_penalty)
        else:
            stay.append(row)
    return stay


def draw_pieces(log_probs_RV: Tensor, uniform_R: Tensor, temperature: float, top_k: int, top_p: float) -> Tensor:
    """The piece of each row (R) that its number from [0, 1) falls on, when the pieces left share that interval."""
    values = log_probs_RV / temperature
    pieces = None
    if top_k or top_p < 1:
        values, pieces = (
            values.topk(min(top_k, values.shape[1])) if top_k else values.sort(descending=True, stable=True)
        )
    shares = values.softmax(-1)
    if top_p < 1:
        # A piece stays when those before it have not reached top_p yet: the first one always does.
        shares = shares * (shares.cumsum(-1) - shares < top_p)
    reached = shares.cumsum(-1)
    places_R = (reached <= uniform_R[:, None] * reached[:, -1:]).sum(-1)
    # Rounding may carry the last uniform number past the last piece with a share.
    last_R = (shares > 0).long().mul(torch.arange(1, shares.shape[1] + 1, device=shares.device)).amax(-1) - 1
    places_R = places_R.minimum(last_R)
    return places_R if pieces is None else pieces.gather(1, places_R[:, None])[:, 0]


def uniform_numbers(seed: int, name: int, number: int, num: int) -> list[float]:
    """Numbers from [0, 1) that depend on the arguments alone."""
    digest = hashlib.blake2b(f"{seed} {name} {number}".encode(), digest_size=8).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest, "big"))
    return torch.rand(num, generator=generator).tolist()


def _check(temperature: float, top_k: int, top_p: float, num_samples: int) -> None:
    if temperature <= 0:
        raise ConfigError(
            f"temperature is {temperature}, expected a number above 0: for the likeliest translation take a beam of 1"
        )
    if top_k < 0:
        raise ConfigError(f"top_k is {top_k}, expected at least 0, which means all pieces")
    if not 0 < top_p <= 1:
        raise ConfigError(f"top_p is {top_p}, expected a share above 0, up to 1, which means all pieces")
    if num_samples < 1:
        raise ConfigError(f"num_samples is {num_samples}, expected at least 1")
