"""Two outputs: the difference, whether it could be chance, and where it comes from."""

import random

import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from dragoman.errors import ConfigError, DataError
from dragoman.evaluate.compare import CompareOptions, compare_outputs
from dragoman.evaluate.scores import ScoreOptions
from dragoman.evaluate.testset import TestSet

QUICK = CompareOptions(samples=101, seed=12345, changes=3)


def sentences(num: int = 59) -> list[str]:
    draw = random.Random(7)
    words = ["the", "old", "town", "has", "a", "new", "river", "and", "some", "cats"]
    return [" ".join(draw.choices(words, k=11)) for _ in range(num)]


def worse(texts: list[str], share: float, seed: int) -> list[str]:
    """The texts with a share of their words lost."""
    draw = random.Random(seed)
    return [" ".join(word for word in text.split() if draw.random() > share) for text in texts]


REFERENCES = sentences()
TEST = TestSet("pairs.tsv", tuple(f"source {i}" for i in range(59)), tuple((text,) for text in REFERENCES))


def test_the_p_values_are_those_of_sacrebleu() -> None:
    first, second = worse(REFERENCES, 0.3, seed=1), worse(REFERENCES, 0.27, seed=2)
    comparison = compare_outputs(first, second, TEST, QUICK)
    metrics = {"BLEU": BLEU(), "chrF": CHRF()}
    signatures, theirs = PairedTest([("1", first), ("2", second)], metrics, [REFERENCES], "bs", n_samples=101)()
    for ours in comparison.differences:
        assert ours.p_value == theirs[ours.name][1].p_value
        assert ours.first == pytest.approx(theirs[ours.name][0].score)
        assert ours.second == pytest.approx(theirs[ours.name][1].score)
        assert ours.signature == str(signatures[ours.name])
        assert 0.05 < ours.p_value < 1, "the example should be one that is not clear"


def test_a_clear_difference_is_significant_and_its_interval_is_on_one_side() -> None:
    comparison = compare_outputs(worse(REFERENCES, 0.5, seed=1), worse(REFERENCES, 0.1, seed=2), TEST, QUICK)
    for one in comparison.differences:
        assert one.significant
        assert 0 < one.low < one.difference < one.high
        assert one.p_value == 1 / 102


def test_swapping_the_outputs_turns_the_difference_and_its_interval_round() -> None:
    first, second = worse(REFERENCES, 0.3, seed=1), worse(REFERENCES, 0.2, seed=2)
    there, back = (compare_outputs(*pair, TEST, QUICK) for pair in ((first, second), (second, first)))
    for one, other in zip(there.differences, back.differences, strict=True):
        assert one.difference == pytest.approx(-other.difference)
        assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))
        assert one.p_value == other.p_value
    assert [change.number for change in there.gains] == [change.number for change in back.losses]


def test_an_output_does_not_differ_from_itself() -> None:
    output = worse(REFERENCES, 0.3, seed=1)
    comparison = compare_outputs(output, output, TEST, QUICK)
    assert [(one.difference, one.low, one.high, one.p_value) for one in comparison.differences] == [(0, 0, 0, 1)] * 2
    assert (comparison.num_changed, comparison.gains, comparison.losses) == (0, (), ())


def test_a_seed_repeats_its_draws_and_another_draws_anew() -> None:
    first, second = worse(REFERENCES, 0.3, seed=1), worse(REFERENCES, 0.27, seed=2)
    again = [compare_outputs(first, second, TEST, QUICK) for _ in range(2)]
    assert again[0] == again[1]
    other = compare_outputs(first, second, TEST, CompareOptions(samples=101, seed=3, changes=3))
    assert other.differences[0].low != again[0].differences[0].low
    assert other.differences[0].difference == again[0].differences[0].difference


def test_the_lines_that_changed_most_come_first_both_ways() -> None:
    first, second = list(REFERENCES), list(REFERENCES)
    first[5], first[7], first[11], first[13] = "", first[7][:20], first[11][:9], first[13][:30]
    second[17], second[19] = second[19], ""
    comparison = compare_outputs(first, second, TEST, QUICK, names=("old", "new"))
    assert (comparison.first, comparison.second) == ("old", "new")
    assert [change.number for change in comparison.gains] == [6, 12, 8]
    assert [change.number for change in comparison.losses] == [20, 18]
    assert comparison.num_changed == 6
    gain = comparison.gains[0]
    assert (gain.source, gain.first, gain.second) == ("source 5", "", REFERENCES[5])
    assert (gain.first_chrf, gain.second_chrf, gain.difference) == (0, 100, 100)


def test_options_of_scoring_are_honoured() -> None:
    shouted = [text.upper() for text in REFERENCES]
    comparison = compare_outputs(REFERENCES, shouted, TEST, QUICK, ScoreOptions(lowercase=True))
    assert [one.difference for one in comparison.differences] == [pytest.approx(0)] * 2
    assert "case:lc" in comparison.differences[0].signature


def test_the_summary_has_everything_as_plain_values() -> None:
    comparison = compare_outputs(worse(REFERENCES, 0.3, seed=1), list(REFERENCES), TEST, QUICK)
    summary = comparison.summary()
    assert summary["differences"][0]["p_value"] == comparison.differences[0].p_value
    assert len(summary["gains"]) == 3
    assert summary["samples"] == 101


def test_outputs_of_another_length_are_refused_with_both_numbers() -> None:
    with pytest.raises(DataError, match="7 translations and 59 references, expected as many"):
        compare_outputs(REFERENCES, REFERENCES[:7], TEST, QUICK)


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(ConfigError, match="samples is 7, expected at least 100"):
        CompareOptions(samples=7)


def test_a_handful_of_lines_proves_nothing_whatever_its_p_value() -> None:
    few = TestSet("few.tsv", ("a", "b", "c"), (("the cat sleeps",), ("it rains here",), ("where is the old town",)))
    first = ["the cat is there", "it rains here", ""]
    second = ["the cat sleeps", "it rains rains rains", "where is the town"]
    chrf = compare_outputs(first, second, few, QUICK).differences[1]
    assert chrf.p_value < 0.05
    assert chrf.low < 0 < chrf.high
    assert not chrf.significant
