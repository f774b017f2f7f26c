from collections import Counter

import pytest
from fake_model import END, SPECIAL, FakeModel, batch, enumerate_translations
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DataError
from dragoman.recipe import SearchConfig
from dragoman.search.allocation import Continuation, share_by_banks
from dragoman.search.beam import search
from dragoman.search.constraints import Constraints, banned_pieces, begin_progress
from dragoman.search.length import length_penalty

BEAM = SearchConfig(beam=5, extra_length=13)
quick = settings(deadline=None, max_examples=25)
sources = st.lists(st.integers(3, 10), min_size=1, max_size=5)
phrases = st.lists(st.integers(3, 10), min_size=1, max_size=3).map(tuple)


def times_in(phrase, ids):
    """How often a phrase is in `ids`, without overlap."""
    text, wanted = (",".join(["", *map(str, numbers), ""]) for numbers in (ids, phrase))
    count = 0
    while (at := text.find(wanted)) >= 0:
        count, text = count + 1, text[at + len(wanted) - 1 :]
    return count


def test_progress_goes_through_a_phrase():
    progress = begin_progress([(3, 4, 5)])
    owed = [progress.pieces_owed]
    for piece in (7, 3, 4, 5, 3):
        progress = progress.advance(piece)
        owed.append(progress.pieces_owed)
    assert owed == [3, 3, 2, 1, 0, 0]


def test_a_phrase_that_breaks_off_begins_again():
    progress = begin_progress([(3, 4, 5)]).advance(3).advance(4)
    assert progress.next_pieces() == {3, 5}
    assert progress.advance(7).pieces_owed == 3
    assert progress.advance(3).pieces_owed == 2


def test_a_phrase_that_breaks_off_keeps_what_still_fits():
    progress = begin_progress([(3, 3, 4)]).advance(3).advance(3)
    assert progress.advance(3).advance(4).pieces_owed == 0


def test_a_phrase_asked_for_twice_is_owed_twice():
    progress = begin_progress([(3, 3), (3, 3)])
    assert progress.advance(3).advance(3).advance(3).pieces_owed == 1
    assert progress.advance(3).advance(3).advance(3).advance(3).pieces_owed == 0


@given(
    st.lists(st.lists(st.integers(3, 4), min_size=1, max_size=3).map(tuple), max_size=3), st.lists(st.integers(3, 4))
)
def test_progress_is_done_exactly_when_every_phrase_is_there(wanted, ids):
    progress = begin_progress(wanted)
    for piece in ids:
        progress = progress.advance(piece)
    expected = all(times_in(phrase, ids) >= times for phrase, times in Counter(wanted).items())
    assert (progress.pieces_owed == 0) == expected == (not any(progress.missing))


def test_the_last_piece_of_a_forbidden_phrase_is_banned_after_the_others():
    negative = ((5,), (3, 4), (7, 3, 6), (3, 7, 3, 9), (4, 8))
    assert banned_pieces([7, 3], negative) == [5, 4, 6]
    assert banned_pieces([], negative) == [5]


def test_every_bank_gets_its_share_and_who_owes_least_comes_first():
    rich = [Continuation(row=0, piece=piece, total=-1.0 * piece, pieces_owed=2) for piece in (3, 4, 5)]
    poor = [Continuation(row=1, piece=piece, total=-9.0 * piece, pieces_owed=0) for piece in (3, 4)]
    assert share_by_banks([*rich, *poor], beam=3, end_id=END) == [poor[0], rich[0], poor[1], rich[1], rich[2]]


def test_an_end_comes_first_when_it_is_within_a_beam_of_its_bank():
    rich = Continuation(row=0, piece=3, total=-1.0, pieces_owed=2)
    poor = [Continuation(row=1, piece=piece, total=-9.0 - piece, pieces_owed=0) for piece in (5, 7)]
    end = Continuation(row=1, piece=END, total=-15.0, pieces_owed=0)
    assert share_by_banks([rich, *poor, end], beam=2, end_id=END) == [end, poor[0], rich, poor[1]]
    assert share_by_banks([rich, *poor, end], beam=1, end_id=END) == [poor[0], rich, poor[1]]


@quick
@given(sources, st.lists(phrases, min_size=1, max_size=3))
def test_a_finished_translation_has_every_phrase_it_must(source, wanted):
    constraints = [Constraints(positive=tuple(wanted))]
    [found] = search(FakeModel(), batch([source]), BEAM, **SPECIAL, num_best=3, constraints=constraints)
    for hypothesis in found:
        assume(hypothesis.finished)
        for phrase, times in Counter(wanted).items():
            assert times_in(phrase, hypothesis.ids) >= times


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_phrases_with_more_pieces_than_the_beam_is_wide_are_all_written(beam):
    wanted = ((3, 4), (5,), (6, 7, 8))
    config = SearchConfig(beam=beam, extra_length=23)
    [[best]] = search(FakeModel(), batch([[9]]), config, **SPECIAL, constraints=[Constraints(positive=wanted)])
    assert best.finished
    assert all(times_in(phrase, best.ids) for phrase in wanted)


def test_a_phrase_that_the_model_likes_is_written_where_it_likes_it():
    model, source_BS = FakeModel(end_bonus=-2.0), batch([[3, 4, 5]])
    [[free]] = search(model, source_BS, BEAM, **SPECIAL)
    wanted = free.ids[3:5]
    assert len(wanted) == 2
    model = FakeModel(end_bonus=-2.0)
    [[bound]] = search(model, source_BS, BEAM, **SPECIAL, constraints=[Constraints(positive=(wanted,))])
    assert bound == free


@quick
@given(sources, st.lists(phrases, min_size=1, max_size=5))
def test_a_translation_has_no_phrase_it_must_not(source, unwanted):
    constraints = [Constraints(negative=tuple(unwanted))]
    [[best]] = search(FakeModel(), batch([source]), BEAM, **SPECIAL, constraints=constraints)
    assert not any(times_in(phrase, best.ids) for phrase in unwanted)


@quick
@given(
    st.lists(st.integers(3, 5), min_size=2, max_size=2),
    st.lists(st.integers(3, 5), min_size=1, max_size=2).map(tuple),
    st.lists(st.integers(3, 5), min_size=1, max_size=2).map(tuple),
)
def test_a_wide_beam_finds_the_best_translation_that_keeps_the_constraints(source, wanted, unwanted):
    assume(not times_in(unwanted, wanted))
    model = FakeModel(num_pieces=6)
    config = SearchConfig(beam=6**3, extra_length=1)
    constraints = [Constraints(positive=(wanted,), negative=(unwanted,))]
    [[best]] = search(model, batch([source]), config, **SPECIAL, constraints=constraints)
    score, ids = max(
        (total / length_penalty(len(ids) + 1, config.length_penalty), ids)
        for ids, total in enumerate_translations(model, source, 3)
        if times_in(wanted, ids) and not times_in(unwanted, ids)
    )
    assert best.ids == ids
    assert best.score == pytest.approx(score, abs=1e-5)


@quick
@given(st.lists(sources, min_size=2, max_size=3), phrases)
def test_constraints_bind_their_own_sentence_only(batch_sources, phrase):
    bound = [Constraints(positive=(phrase,)), *[Constraints()] * (len(batch_sources) - 1)]
    together = search(FakeModel(), batch(batch_sources), BEAM, **SPECIAL, constraints=bound)
    for source, constraints, hypotheses in zip(batch_sources, bound, together, strict=True):
        assert [hypotheses] == search(FakeModel(), batch([source]), BEAM, **SPECIAL, constraints=[constraints])


def test_a_phrase_in_the_forced_prefix_counts():
    prefix, constraints = [[3, 4, 5]], [Constraints(positive=((4, 5),))]
    config = SearchConfig(beam=2, extra_length=2)
    [[best]] = search(
        FakeModel(end_bonus=30.0), batch([[9]]), config, **SPECIAL, prefix=prefix, constraints=constraints
    )
    assert best.ids == (3, 4, 5)
    assert best.finished


@pytest.mark.parametrize(
    "impossible",
    [Constraints(positive=((3, 4, 5, 6, 7, 8),)), Constraints(positive=((3, 4),), negative=((4,),))],
    ids=["too long", "contradictory"],
)
def test_constraints_that_cannot_be_kept_leave_the_translation_unfinished(impossible):
    config = SearchConfig(beam=5, extra_length=2)
    [[best]] = search(FakeModel(), batch([[9, 10, 3]]), config, **SPECIAL, constraints=[impossible])
    assert not best.finished
    assert len(best.ids) == 5


def test_an_empty_phrase_is_refused():
    with pytest.raises(
        DataError, match="a constraint has no pieces, expected at least one: leave the empty phrase out"
    ):
        Constraints(positive=((3,), ()))


def test_constraints_for_each_sentence_are_asked_for():
    with pytest.raises(ConfigError, match="constraints has 3 entries for 1 sentences: give one a sentence"):
        search(FakeModel(), batch([[3]]), BEAM, **SPECIAL, constraints=[Constraints()] * 3)
