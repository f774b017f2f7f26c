"""Buckets, rates and the worth of a confidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.evaluate.quality import BUCKETS, MEANINGS, bucket_scores, num_words, rank_correlation, rates
from dragoman.text.metrics import corpus_scores
from dragoman.text.suspect import SUSPICIONS


def sentence(num: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(num))


def test_every_length_falls_into_exactly_one_bucket() -> None:
    lengths = list(range(1, 59))
    sources = [sentence(length) for length in lengths]
    buckets = bucket_scores(sources, sources, sources)
    assert [bucket.length for bucket in buckets] == ["1-5", "6-10", "11-20", "21-40", "41+"]
    assert [bucket.num_pairs for bucket in buckets] == [5, 5, 10, 20, 18]
    assert len(buckets) == len(BUCKETS)


def test_a_bucket_scores_as_its_pairs_alone_do() -> None:
    sources = [sentence(3), sentence(13), sentence(5), sentence(17)]
    references = [sentence(7, "r"), (sentence(11, "r"), sentence(13, "q")), sentence(5, "r"), sentence(19, "r")]
    hypotheses = [sentence(5, "r"), sentence(13, "q"), sentence(5, "r"), sentence(7, "r")]
    short, long = bucket_scores(sources, hypotheses, references)
    for bucket, chosen in ((short, (0, 2)), (long, (1, 3))):
        bleu, chrf = corpus_scores([hypotheses[i] for i in chosen], [references[i] for i in chosen])
        assert (bucket.bleu, bucket.chrf) == (bleu.value, chrf.value)
    assert short.bleu != long.bleu


def test_buckets_are_scored_the_way_the_whole_is() -> None:
    (cased,) = bucket_scores(["a b"], ["THE OLD TOWN HALL"], ["the old town hall"])
    (lower,) = bucket_scores(["a b"], ["THE OLD TOWN HALL"], ["the old town hall"], lowercase=True)
    assert cased.bleu == pytest.approx(0)
    assert (lower.bleu, lower.chrf) == (pytest.approx(100), pytest.approx(100))


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("Va !", 2), ("我是学生", 4), ("私は Tom です", 5), ("  a  b ", 2)]
)
def test_han_and_kana_count_as_words(text: str, count: int) -> None:
    assert num_words(text) == count


def test_rates_count_each_kind_of_trouble() -> None:
    sources = ["Il fait beau dans la ville."] * 7
    outputs = ["The weather is fine in town.", "", " ", "the the the the the the", sources[0], "Fine.", "Fine in town."]
    found = {rate.kind: (rate.count, rate.share) for rate in rates(sources, outputs)}
    assert found == {"empty": (2, 2 / 7), "loop": (1, 1 / 7), "copy": (1, 1 / 7), "ratio": (0, 0)}
    assert set(found) == set(SUSPICIONS) == set(MEANINGS)


def test_rank_correlation_of_a_worked_example() -> None:
    # Ranks 1 2 3 4 5 against 2 1 4 3 5: squared distances sum to 4, so rho = 1 - 6 * 4 / (5 * 24).
    assert rank_correlation([0.1, 0.2, 0.3, 0.4, 0.5], [20, 10, 40, 30, 900]) == pytest.approx(0.8)


def test_equal_values_share_their_rank() -> None:
    assert rank_correlation([1, 2, 2, 3], [1, 2, 2, 3]) == pytest.approx(1)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0
    assert rank_correlation([], []) == 0


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=31, unique=True))
def test_rank_correlation_sees_order_alone(values: list[int]) -> None:
    assert rank_correlation(values, [v**3 for v in values]) == pytest.approx(1)
    assert rank_correlation(values, [-v for v in values]) == pytest.approx(-1)
