import math
from dataclasses import replace

import pytest
import torch
from fake_model import BEGIN, END, PADDING, SPECIAL, FakeModel, FakeStep, batch, enumerate_translations
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError, LengthError
from dragoman.recipe import SearchConfig
from dragoman.search.beam import search
from dragoman.search.length import best_attainable, length_penalty

GREEDY = SearchConfig(beam=1, extra_length=7)
BEAM = SearchConfig(beam=3, extra_length=7)
sources = st.lists(st.integers(3, 10), min_size=1, max_size=5)
alphas = st.sampled_from([-0.7, 0.0, 0.6, 1.3])
quick = settings(deadline=None, max_examples=25)


def argmax_decoding(model, source, limit):
    """Greedy search in its plainest form."""
    ids = []
    while len(ids) <= limit:
        log_probs = model.log_probs_after(source, ids)
        piece = max(set(range(model.num_pieces)) - {PADDING, BEGIN}, key=lambda piece: log_probs[piece])
        if piece == END:
            return ids
        ids.append(piece)
    return ids[:limit]


def plain_beam_search(model, source, config):
    """Beam search over lists, every hypothesis scored from scratch."""
    limit = len(source) + config.extra_length
    opened, finished, leader_ended = [((), 0.0)], [], False
    for length in range(limit + 1):
        candidates = []
        for ids, total in opened:
            log_probs = model.log_probs_after(source, list(ids))
            candidates += [((*ids, piece), total + log_probs[piece]) for piece in range(END, model.num_pieces)]
        candidates = sorted(candidates, key=lambda one: -one[1])[: 2 * config.beam]
        leader_ended = leader_ended or candidates[0][0][-1] == END
        finished += [(ids[:-1], total, length + 1) for ids, total in candidates[: config.beam] if ids[-1] == END]
        finished = sorted(finished, key=lambda one: -one[1])[: config.beam]
        before, opened = opened, [one for one in candidates if one[0][-1] != END][: config.beam]
        scores = [total / length_penalty(pieces, config.length_penalty) for _, total, pieces in finished]
        best = max(scores, default=-math.inf)
        reach = best_attainable(opened[0][1], length + 1, limit, config.length_penalty)
        if (leader_ended and len(finished) >= config.beam) or best >= reach:
            break
    results = finished or [(ids, total, limit) for ids, total in before]
    scored = [(ids, total / length_penalty(pieces, config.length_penalty)) for ids, total, pieces in results]
    return max(scored, key=lambda one: one[1])


@quick
@given(sources)
def test_a_beam_of_one_is_greedy(source):
    model = FakeModel()
    [[best]] = search(model, batch([source]), GREEDY, **SPECIAL)
    assert list(best.ids) == argmax_decoding(FakeModel(), source, len(source) + 7)
    assert len(model.rows) == len(best.piece_log_probabilities) + (not best.finished)


@quick
@given(sources, alphas, st.sampled_from([2, 3, 5]))
def test_batched_search_equals_search_over_lists(source, alpha, beam):
    config = SearchConfig(beam=beam, length_penalty=alpha, extra_length=3)
    [[best]] = search(FakeModel(), batch([source]), config, **SPECIAL)
    ids, score = plain_beam_search(FakeModel(), source, config)
    assert best.ids == ids
    assert best.score == pytest.approx(score, abs=1e-5)


@quick
@given(st.lists(st.integers(3, 5), min_size=2, max_size=2), alphas)
def test_a_wide_beam_finds_the_best_of_all_translations(source, alpha):
    model = FakeModel(num_pieces=6, end_bonus=-1.0)
    config = SearchConfig(beam=6**3, length_penalty=alpha, extra_length=1)
    [found] = search(model, batch([source]), config, **SPECIAL, num_best=5)
    scores = [
        (total / length_penalty(len(ids) + 1, alpha), ids) for ids, total in enumerate_translations(model, source, 3)
    ]
    expected = sorted(scores, reverse=True)[:5]
    assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-5)


@quick
@given(st.lists(sources, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_a_translation_does_not_depend_on_the_rest_of_the_batch(batch_sources, random):
    together = search(FakeModel(), batch(batch_sources), BEAM, **SPECIAL, num_best=3)
    order = random.sample(range(len(batch_sources)), len(batch_sources))
    shuffled = search(FakeModel(), batch([batch_sources[i] for i in order]), BEAM, **SPECIAL, num_best=3)
    alone = [search(FakeModel(), batch([source]), BEAM, **SPECIAL, num_best=3)[0] for source in batch_sources]
    assert together == alone
    assert shuffled == [together[i] for i in order]


@quick
@given(sources)
def test_scores_are_those_of_the_model(source):
    [found] = search(FakeModel(), batch([source]), BEAM, **SPECIAL, num_best=3)
    assert found == sorted(found, key=lambda one: -one.score)
    for hypothesis in found:
        written = [*hypothesis.ids, END] if hypothesis.finished else list(hypothesis.ids)
        log_probs = [FakeModel().log_probs_after(source, written[:i])[piece] for i, piece in enumerate(written)]
        assert list(hypothesis.piece_log_probabilities) == pytest.approx(log_probs, abs=1e-6)
        assert hypothesis.log_probability == sum(hypothesis.piece_log_probabilities)
        assert hypothesis.score == hypothesis.log_probability / length_penalty(len(written), BEAM.length_penalty)


def test_the_source_is_read_once_and_the_state_is_only_reordered():
    model = FakeModel(end_bonus=-1.0)
    search(model, batch([[3, 4, 5], [6, 7], [8]]), BEAM, **SPECIAL)
    assert model.encodes == 1
    # The fake refuses any state but the last step's; every select is of rows that the step before had.
    assert model.rows[:2] == [3, 9]
    selected = [len(rows) for rows in model.selects]
    assert set(selected) <= {3, 6, 9}
    assert all(max(rows) < before for rows, before in zip(model.selects, model.rows, strict=False))


def test_a_state_that_stays_in_place_is_not_copied():
    model = FakeModel(end_bonus=-30.0)
    search(model, batch([[3, 4], [5, 6]]), GREEDY, **SPECIAL)
    assert len(model.rows) == 10
    assert model.selects == []


def test_a_finished_sentence_leaves_the_batch():
    short, long = [5], [6, 7, 3, 3]
    steps = {}
    for name, batch_sources in {"short": [short], "long": [long], "both": [short, long]}.items():
        model = FakeModel(end_bonus=-30.0)
        search(model, batch(batch_sources), replace(BEAM, extra_length=2), **SPECIAL)
        steps[name] = model.rows
    assert steps["short"] == [1, 3, 3, 3]
    assert steps["long"] == [1, 3, 3, 3, 3, 3, 3]
    assert steps["both"] == [2, 6, 6, 6, 3, 3, 3]


def test_the_search_stops_when_no_open_hypothesis_can_win():
    model = FakeModel(end_bonus=30.0)
    [[best]] = search(model, batch([[3, 4, 5]]), BEAM, **SPECIAL)
    assert best.ids == ()
    assert best.finished
    assert len(model.rows) == 1


@pytest.mark.parametrize(("extra_length", "num_pieces"), [(3, 0), (5, 6)])
def test_the_search_goes_on_exactly_while_an_open_hypothesis_can_win(extra_length, num_pieces):
    class Scripted(FakeModel):
        """The end at once has a chance of 0.6; after any other piece, one piece is sure until six are written."""

        def step(self, last_B, state):
            step = super().step(last_B, state)
            step.logits_BV[:] = -100.0
            step.logits_BV[:, [3, END]] = torch.tensor(
                {1: [0.4, 0.6], 7: [0.0, 1.0]}.get(len(self.rows), [1.0, 0.0])
            ).log()
            return step

    # log 0.6 = -0.51 is to beat. log 0.4 / lp(7) = -0.46 does, log 0.4 / lp(5) = -0.55 does not.
    model = Scripted()
    config = SearchConfig(beam=3, length_penalty=1.0, extra_length=extra_length)
    [[best]] = search(model, batch([[5]]), config, **SPECIAL)
    assert best.ids == (3,) * num_pieces
    assert len(model.rows) == num_pieces + 1


def test_the_search_goes_on_while_others_are_asked_for():
    model = FakeModel(end_bonus=30.0)
    [found] = search(model, batch([[3, 4, 5]]), BEAM, **SPECIAL, num_best=3)
    assert len(found) == 3
    assert len({hypothesis.ids for hypothesis in found}) == 3


def test_what_does_not_end_is_cut_at_the_maximum_length():
    [found] = search(FakeModel(end_bonus=-30.0), batch([[3, 4, 5]]), BEAM, **SPECIAL, num_best=3)
    assert [len(hypothesis.ids) for hypothesis in found] == [10, 10, 10]
    assert not any(hypothesis.finished for hypothesis in found)


@quick
@given(sources)
def test_unfinished_hypotheses_are_returned_only_alone(source):
    [found] = search(FakeModel(end_bonus=-2.0), batch([source]), BEAM, **SPECIAL, num_best=3)
    assert len({hypothesis.finished for hypothesis in found}) == 1


def test_max_length_caps_every_translation():
    found = search(FakeModel(end_bonus=-30.0), batch([[3, 4, 5], [6]]), BEAM, **SPECIAL, max_length=5)
    assert [len(best.ids) for [best] in found] == [5, 5]


@quick
@given(sources, st.lists(st.integers(3, 10), max_size=5))
def test_a_forced_prefix_begins_the_translation(source, prefix):
    model = FakeModel()
    [[best], [free]] = search(model, batch([source, source]), BEAM, **SPECIAL, prefix=[prefix, []])
    assert list(best.ids[: len(prefix)]) == prefix
    assert [free] == search(FakeModel(), batch([source]), BEAM, **SPECIAL)[0]


@quick
@given(sources, st.sampled_from([1, 2, 3]))
def test_no_ngram_is_repeated_when_that_is_forbidden(source, size):
    config = SearchConfig(beam=2, extra_length=19, no_repeat_ngram=size)
    [[best]] = search(FakeModel(num_pieces=7, end_bonus=-4.0), batch([source]), config, **SPECIAL)
    ngrams = list(zip(*(best.ids[i:] for i in range(size)), strict=False))
    assert len(ngrams) == len(set(ngrams))


def test_blocking_ngrams_changes_a_translation_that_loops():
    model = FakeModel(num_pieces=5, end_bonus=-30.0)
    [[best]] = search(model, batch([[3]]), replace(GREEDY, extra_length=30), **SPECIAL)
    bigrams = list(zip(best.ids, best.ids[1:], strict=False))
    assert len(bigrams) > len(set(bigrams))


def test_a_piece_that_is_forced_overrules_the_ngram_block():
    config = replace(BEAM, no_repeat_ngram=1)
    [[best]] = search(FakeModel(), batch([[3]]), config, **SPECIAL, prefix=[[5, 5, 5]])
    assert best.ids[:3] == (5, 5, 5)


def test_models_that_begin_with_the_padding_or_end_piece_can_end():
    for begin in (PADDING, END):
        special = {**SPECIAL, "begin_id": begin}
        [[best]] = search(FakeModel(end_bonus=30.0), batch([[3]]), BEAM, **special)
        assert best.finished


def test_half_precision_logits_are_scored_in_single_precision():
    class Half(FakeModel):
        def step(self, last_B, state):
            step = super().step(last_B, state)
            return replace(step, logits_BV=step.logits_BV.bfloat16())

    [[best]] = search(Half(num_pieces=101), batch([[3, 4]]), BEAM, **SPECIAL)
    assert any(number != torch.tensor(number).bfloat16().item() for number in best.piece_log_probabilities)


def test_an_empty_batch_has_no_translations():
    assert search(FakeModel(), torch.zeros(0, 3, dtype=torch.long), BEAM, **SPECIAL) == []


def test_more_best_than_the_beam_holds_is_refused():
    with pytest.raises(ConfigError, match="num_best is 5, the beam holds 3: take a beam of at least 5"):
        search(FakeModel(), batch([[3]]), BEAM, **SPECIAL, num_best=5)


def test_a_prefix_for_each_sentence_is_asked_for():
    with pytest.raises(ConfigError, match="prefix has 1 entries for 2 sentences: give one a sentence"):
        search(FakeModel(), batch([[3], [4]]), BEAM, **SPECIAL, prefix=[[5]])


def test_a_prefix_that_is_too_long_is_refused():
    with pytest.raises(LengthError, match="prefix has 3 pieces, the translation may have at most 2: shorten"):
        search(FakeModel(), batch([[3]]), replace(BEAM, extra_length=1), **SPECIAL, prefix=[[5, 6, 7]])


def test_the_transformer_can_be_searched():
    from dragoman.config import ModelConfig
    from dragoman.model.transformer import Transformer

    torch.manual_seed(3)
    shape = ModelConfig(vocab_size=13, d_model=14, d_ff=17, num_heads=7, encoder_layers=2, decoder_layers=3)
    model = Transformer(shape).eval()
    batch_sources = [[3, 4, 5, END], [6, END]]
    found = search(model, batch(batch_sources), BEAM, **SPECIAL, num_best=3)
    for source, hypotheses in zip(batch_sources, found, strict=True):
        for hypothesis in hypotheses:
            written = [*hypothesis.ids, END] if hypothesis.finished else list(hypothesis.ids)
            with torch.inference_mode():
                logits_TV = model(torch.tensor([source]), torch.tensor([[BEGIN, *written[:-1]]]))[0]
            log_probs = logits_TV.log_softmax(-1)[range(len(written)), written]
            assert list(hypothesis.piece_log_probabilities) == pytest.approx(log_probs.tolist(), abs=1e-4)


class Written:
    """A state that is nothing but what was written."""

    def __init__(self, ids_RT):
        self.ids_RT = ids_RT

    def select(self, rows_R):
        return Written(self.ids_RT[rows_R])


class Confident:
    """Sure of one long translation; off its track it wants to end."""

    RIGHT = (3, 4, 5, 3, 4, 5, END)

    def encode(self, source_BS):
        return Written(torch.zeros(len(source_BS), 0, dtype=torch.long))

    def step(self, last_B, state):
        ids_RT = torch.cat((state.ids_RT, last_B[:, None]), dim=1)
        probabilities_RV = torch.full((len(ids_RT), 7), 0.02)
        for row, (_begin, *written) in enumerate(ids_RT.tolist()):
            on_track = tuple(written) == self.RIGHT[: len(written)]
            probabilities_RV[row, self.RIGHT[len(written)] if on_track else END] = 0.88
        return FakeStep(probabilities_RV.log(), Written(ids_RT))


def test_a_beam_of_poor_short_ones_does_not_end_the_search_before_the_likeliest():
    [[best]] = search(Confident(), batch([[3, 4, 5]]), SearchConfig(beam=4), **SPECIAL)
    assert best.ids == Confident.RIGHT[:-1]
