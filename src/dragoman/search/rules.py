"""What may be written next: the rules of one search, as log-probabilities of minus infinity."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.errors import ConfigError, LengthError
from dragoman.recipe import SearchConfig
from dragoman.search.constraints import Constraints, Progress, banned_pieces
from dragoman.search.length import max_lengths

NEVER = float("-inf")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules for a batch; `limits` (pieces, end not counted), `prefixes`, `constraints` have an entry a sentence."""

    config: SearchConfig
    end_id: int
    forbidden: tuple[int, ...]
    limits: tuple[int, ...]
    prefixes: tuple[tuple[int, ...], ...]
    constraints: tuple[Constraints, ...]


def make_rules(
    source_BS: Tensor,
    config: SearchConfig,
    *,
    padding_id: int,
    begin_id: int,
    end_id: int,
    prefix: Sequence[Sequence[int]] | None = None,
    constraints: Sequence[Constraints] | None = None,
    max_length: int | None = None,
) -> Rules:
    """The rules for a batch, after checking that they can be kept."""
    num_sentences = source_BS.shape[0]
    for name, given in (("prefix", prefix), ("constraints", constraints)):
        if given is not None and len(given) != num_sentences:
            raise ConfigError(f"{name} has {len(given)} entries for {num_sentences} sentences: give one a sentence")
    source_lengths = (source_BS != padding_id).sum(1).tolist()
    limits = tuple(max_lengths(source_lengths, config.extra_length, max_length))
    prefixes = tuple(tuple(ids) for ids in prefix) if prefix is not None else ((),) * num_sentences
    for ids, limit in zip(prefixes, limits, strict=True):
        if len(ids) > limit:
            raise LengthError(
                f"the forced prefix has {len(ids)} pieces, the translation may have at most {limit}: "
                f"shorten the prefix or raise extra_length"
            )
    return Rules(
        config=config,
        end_id=end_id,
        # Some models begin with the padding or the end piece: the end stays possible.
        forbidden=tuple({padding_id, begin_id} - {end_id}),
        limits=limits,
        prefixes=prefixes,
        constraints=tuple(constraints) if constraints is not None else (Constraints(),) * num_sentences,
    )


def allowed_log_probs(
    logits_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int], progress: Sequence[Progress | None], rules: Rules
) -> Tensor:
    """log softmax(logits) (R, V) in float32, with minus infinity where a rule forbids the piece.

    Row r continues `ids_RT[r]`, a hypothesis of sentence `sentences[r]` with the constraints' `progress[r]`. What is
    forbidden keeps its share of the probability, so that a score stays the model's own. A forced piece overrules all.
    """
    log_probs_RV = logits_RV.float().log_softmax(-1)
    length = ids_RT.shape[1]
    forced = [
        (row, prefix[length])
        for row, sentence in enumerate(sentences)
        if length < len(prefix := rules.prefixes[sentence])
    ]
    forced_values = [log_probs_RV[row, piece].clone() for row, piece in forced]
    log_probs_RV[:, list(rules.forbidden)] = NEVER
    if rules.config.no_repeat_ngram:
        log_probs_RV[_repeating(ids_RT, rules.config.no_repeat_ngram, log_probs_RV.shape[1])] = NEVER
    for row, sentence in enumerate(sentences):
        if negative := rules.constraints[sentence].negative:
            log_probs_RV[row, banned_pieces(ids_RT[row].tolist(), negative)] = NEVER
        owing = progress[row]
        if owing is not None and any(owing.missing):
            log_probs_RV[row, rules.end_id] = NEVER
    for (row, piece), value in zip(forced, forced_values, strict=True):
        log_probs_RV[row] = NEVER
        log_probs_RV[row, piece] = value
    return log_probs_RV


def _repeating(ids_RT: Tensor, size: int, num_pieces: int) -> Tensor:
    """Which pieces (R, V) would repeat `size` pieces in a row that a hypothesis already has."""
    num_rows, length = ids_RT.shape
    repeats_RV = torch.zeros(num_rows, num_pieces, dtype=torch.bool, device=ids_RT.device)
    if length < size:
        return repeats_RV
    ngrams = ids_RT.unfold(1, size, 1)
    context = ids_RT[:, length - size + 1 :]
    same = (ngrams[:, :, :-1] == context[:, None, :]).all(-1)
    rows, places = same.nonzero(as_tuple=True)
    repeats_RV[rows, ngrams[rows, places, -1]] = True
    return repeats_RV
