"""Beam search: the likeliest translations that a beam's width can find, under the paper's length penalty (6.1).

Every step considers two beams' worth of the likeliest continuations of a sentence's open hypotheses. Those that end
and rank within the beam are finished; the best others stay open. A sentence is done when no open hypothesis can still
win, when a beam of them is finished, the likeliest of some step among them, or at its maximum length. A beam of 1 is
greedy search.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.recipe import SearchConfig
from dragoman.search.allocation import allocate
from dragoman.search.constraints import Constraints
from dragoman.search.frontier import Candidates, Frontier, start
from dragoman.search.history import History
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.length import best_attainable
from dragoman.search.rules import NEVER, Rules, allowed_log_probs, make_rules
from dragoman.search.searchable import Searchable, StateT

Found = list[list[Hypothesis]]


def search(
    model: Searchable[StateT],
    source_BS: Tensor,
    config: SearchConfig,
    *,
    padding_id: int,
    begin_id: int,
    end_id: int,
    num_best: int = 1,
    prefix: Sequence[Sequence[int]] | None = None,
    constraints: Sequence[Constraints] | None = None,
    max_length: int | None = None,
    history: History | None = None,
) -> Found:
    """The `num_best` translations of each source, best first; fewer where fewer were found, never none.

    A sentence's translations do not depend on what else is in the batch. `prefix` has the ids that each translation
    must begin with, `constraints` the phrases it must and must not have; both have one entry a sentence. `max_length`
    caps the pieces of every translation (end not counted). Only when nothing could be finished are unfinished
    hypotheses returned. `history` is filled with every step, if given. The model should be in evaluation mode.
    """
    if num_best > config.beam:
        raise ConfigError(f"num_best is {num_best}, the beam holds {config.beam}: take a beam of at least {num_best}")
    rules = make_rules(
        source_BS,
        config,
        padding_id=padding_id,
        begin_id=begin_id,
        end_id=end_id,
        prefix=prefix,
        constraints=constraints,
        max_length=max_length,
    )
    found: Found = [[] for _ in rules.limits]
    if not found:
        return found
    with torch.inference_mode():
        frontier, state = start(rules, source_BS.device), model.encode(source_BS)
        while frontier.sentences:
            step = model.step(frontier.last(begin_id), state)
            frontier = advance(frontier, step.logits_BV, rules, num_best, found, history)
            state = step.state
            # In most steps of a greedy search nothing moves: that saves copying the cache.
            if frontier.sentences and not _in_place(frontier.parents_R, len(step.logits_BV)):
                state = state.select(frontier.parents_R)
    return [sorted(hypotheses, key=lambda one: -one.score)[:num_best] for hypotheses in found]


def advance(
    frontier: Frontier, logits_RV: Tensor, rules: Rules, num_best: int, found: Found, history: History | None
) -> Frontier:
    """One step: the frontier a piece further, without the sentences that are done; what ended is added to `found`."""
    log_probs_RV = allowed_log_probs(logits_RV, frontier.ids_RT, frontier.sentence_of_rows(), frontier.progress, rules)
    candidates = expand(frontier, log_probs_RV, rules)
    finish(frontier, candidates, log_probs_RV, rules, found)
    chosen = choose(candidates, rules)
    led = frontier.led_after(candidates, rules.end_id)
    verdicts = judge(frontier, chosen, led, rules, num_best, found)
    if history is not None:
        _record(history, frontier, candidates, rules, verdicts)
    for index, sentence in enumerate(frontier.sentences):
        if verdicts[index] and not found[sentence]:
            rows = [row for row in frontier.rows(index) if frontier.totals_R[row] > NEVER]
            found[sentence] = [frontier.cut(row, rules.config.length_penalty) for row in rows]
    stay = [index for index, verdict in enumerate(verdicts) if not verdict]
    return frontier.proceed(chosen, log_probs_RV, led, stay)


def expand(frontier: Frontier, log_probs_RV: Tensor, rules: Rules) -> Candidates:
    """The best continuations of each sentence's open hypotheses: twice the beam, as up to half of them may end."""
    num_sentences, num_pieces = len(frontier.sentences), log_probs_RV.shape[1]
    num = 2 * rules.config.beam
    # First a row's own best, then the best of those: the vocabulary is gone through once.
    values_RP, pieces_RP = log_probs_RV.topk(min(num, num_pieces), dim=1)
    totals = (frontier.totals_R[:, None] + values_RP).view(num_sentences, -1)
    totals_BP, places_BP = totals.topk(min(num, totals.shape[1]), dim=1)
    starts_B1 = torch.arange(num_sentences, device=places_BP.device)[:, None] * frontier.width
    candidates = Candidates(
        rows_BP=starts_B1 + places_BP // values_RP.shape[1],
        pieces_BP=pieces_RP.view(num_sentences, -1).gather(1, places_BP),
        totals_BP=totals_BP,
    )
    for index, sentence in enumerate(frontier.sentences):
        if rules.constraints[sentence].positive:
            allocate(frontier, index, log_probs_RV, pieces_RP, candidates, rules)
    return candidates


def finish(frontier: Frontier, candidates: Candidates, log_probs_RV: Tensor, rules: Rules, found: Found) -> None:
    """Add to `found` the hypotheses that end within the beam; of more than a beam of them the likeliest stay."""
    ends_BP = (candidates.pieces_BP == rules.end_id) & (candidates.totals_BP > NEVER)
    for index, place in ends_BP[:, : rules.config.beam].nonzero().tolist():
        row = int(candidates.rows_BP[index, place])
        hypothesis = frontier.end(row, log_probs_RV[row, rules.end_id].item(), rules.config.length_penalty)
        sentence = frontier.sentences[index]
        found[sentence].append(hypothesis)
        if len(found[sentence]) > rules.config.beam and not rules.constraints[sentence].positive:
            found[sentence].remove(min(found[sentence], key=lambda one: one.log_probability))


def choose(candidates: Candidates, rules: Rules) -> Candidates:
    """The best candidates that do not end, a beam of them."""
    ends_BP = candidates.pieces_BP == rules.end_id
    order_BW = ends_BP.byte().argsort(dim=1, stable=True)[:, : rules.config.beam]
    return Candidates(
        rows_BP=candidates.rows_BP.gather(1, order_BW),
        pieces_BP=candidates.pieces_BP.gather(1, order_BW),
        totals_BP=candidates.totals_BP.masked_fill(ends_BP, NEVER).gather(1, order_BW),
    )


def judge(
    frontier: Frontier, chosen: Candidates, led: Sequence[bool], rules: Rules, num_best: int, found: Found
) -> list[str]:
    """Why the search of each sentence ends with this step, or an empty text where it goes on."""
    best_totals = chosen.totals_BP.amax(1).tolist()
    return [
        _verdict(best_total, frontier.length + 1, leader_ended, sentence, rules, num_best, found[sentence])
        for sentence, best_total, leader_ended in zip(frontier.sentences, best_totals, led, strict=True)
    ]


def _verdict(
    best_total: float,
    length: int,
    leader_ended: bool,
    sentence: int,
    rules: Rules,
    num_best: int,
    finished: list[Hypothesis],
) -> str:
    """Of one sentence, whose best open hypothesis now has `length` pieces and the log-probability `best_total`;
    `leader_ended` says whether the likeliest continuation of any step so far was an end.
    """
    limit, config = rules.limits[sentence], rules.config
    if length > limit:
        return "maximum length"
    if best_total == NEVER:
        return "nothing left to write"
    # With phrases to write the first to finish are those that hurried: there only the bound ends the search. Elsewhere
    # too a beam of poor ones may finish early: the likeliest hypothesis of a step must have been among them.
    if leader_ended and len(finished) >= config.beam and not rules.constraints[sentence].positive:
        return "a whole beam is finished"
    if len(finished) >= num_best:
        to_beat = sorted((hypothesis.score for hypothesis in finished), reverse=True)[num_best - 1]
        if to_beat >= best_attainable(best_total, length, limit, config.length_penalty):
            return "cannot win"
    return ""


def _record(
    history: History, frontier: Frontier, candidates: Candidates, rules: Rules, verdicts: Sequence[str]
) -> None:
    for index, sentence in enumerate(frontier.sentences):
        places = (candidates.rows_BP[index] - frontier.rows(index).start).tolist()
        pieces, totals = candidates.pieces_BP[index].tolist(), candidates.totals_BP[index].tolist()
        ranked = list(zip(places, pieces, totals, strict=True))
        history.record(sentence, frontier.length, ranked, rules, verdicts[index])


def _in_place(rows_R: Tensor, num_rows: int) -> bool:
    return torch.equal(rows_R, torch.arange(num_rows, device=rows_R.device))
