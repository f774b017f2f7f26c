import pytest
from fake_model import SPECIAL, FakeModel, batch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.recipe import SearchConfig
from dragoman.search.beam import search
from dragoman.search.history import History

BEAM = SearchConfig(beam=3, extra_length=7)
sources = st.lists(st.integers(3, 10), min_size=1, max_size=5)
quick = settings(deadline=None, max_examples=25)


@quick
@given(st.lists(sources, min_size=1, max_size=3))
def test_the_history_is_the_tree_of_the_search(batch_sources):
    history = History()
    found = search(FakeModel(), batch(batch_sources), BEAM, **SPECIAL, num_best=3, history=history)
    assert found == search(FakeModel(), batch(batch_sources), BEAM, **SPECIAL, num_best=3)
    for sentence, hypotheses in enumerate(found):
        nodes = history.nodes[sentence]
        finished = {}
        for node in nodes:
            assert (node.why != "") == (node.fate == "pruned")
            path = [node]
            while path[0].parent is not None:
                path.insert(0, nodes[path[0].parent])
            assert [each.step for each in path] == list(range(node.step + 1))
            assert all(each.fate == "kept" for each in path[:-1])
            if node.fate == "finished":
                finished[tuple(each.piece for each in path[:-1])] = node
        for hypothesis in hypotheses:
            if hypothesis.finished:
                assert finished[hypothesis.ids].score == pytest.approx(hypothesis.score, abs=1e-5)
        last = [node for node in nodes if node.step == nodes[-1].step]
        assert not any(node.fate == "kept" for node in last)


def test_the_history_says_why_a_search_ended():
    history = History()
    search(FakeModel(end_bonus=30.0), batch([[3, 4]]), BEAM, **SPECIAL, history=history)
    assert [node.fate for node in history.nodes[0]] == ["finished", *["pruned"] * 5]
    assert [node.why for node in history.nodes[0]] == ["", *["cannot win"] * 3, *["outside the beam"] * 2]
