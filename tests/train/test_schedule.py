"""The learning rate: the paper's curve, and three other shapes."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.recipe import TrainConfig
from dragoman.train.schedule import default_peak, learning_rate, paper_rate

D_MODEL, WARMUP, TOTAL = 512, 401, 4001
SCHEDULES = ["paper", "inverse-sqrt", "cosine", "wsd"]


def rate(step: int, schedule: str, peak: float = 0.0, **changes: object) -> float:
    config = TrainConfig(schedule=schedule, warmup_steps=WARMUP, learning_rate=peak, **changes)
    return learning_rate(step, config, D_MODEL, TOTAL)


@pytest.mark.parametrize(("step", "wanted"), [(1, 1.747e-07), (4000, 6.988e-04), (100_000, 1.398e-04)])
def test_the_papers_rate_at_known_steps(step: int, wanted: float) -> None:
    assert paper_rate(step, d_model=512, warmup_steps=4000) == pytest.approx(wanted, rel=1e-3)


@given(st.integers(1, 4096), st.integers(1, 10_000), st.integers(1, 100_000))
def test_the_papers_rate_peaks_when_warmup_ends(d_model: int, warmup_steps: int, step: int) -> None:
    peak = paper_rate(warmup_steps, d_model, warmup_steps)
    assert peak == pytest.approx((d_model * warmup_steps) ** -0.5)
    assert paper_rate(step, d_model, warmup_steps) <= peak * (1 + 1e-12)


def test_the_paper_schedule_is_the_papers_formula_when_no_peak_is_given() -> None:
    for step in (1, 7, WARMUP, TOTAL):
        assert rate(step, "paper") == paper_rate(step, D_MODEL, WARMUP)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_given_peak_is_reached_when_warmup_ends_and_never_passed(schedule: str) -> None:
    assert rate(WARMUP, schedule, peak=0.003) == pytest.approx(0.003)
    assert max(rate(step, schedule, peak=0.003) for step in range(1, TOTAL + 1)) == pytest.approx(0.003)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_peak_twice_as_high_doubles_every_step(schedule: str) -> None:
    for step in (1, 101, WARMUP, 2003, TOTAL):
        assert rate(step, schedule, peak=0.006) == pytest.approx(2 * rate(step, schedule, peak=0.003))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warmup_climbs_in_a_line_from_the_first_step(schedule: str) -> None:
    for step in (1, 2, 101, WARMUP):
        assert rate(step, schedule, peak=0.003) == pytest.approx(0.003 * step / WARMUP)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_after_warmup_the_rate_never_climbs_and_never_falls_below_zero(schedule: str) -> None:
    rates = [rate(step, schedule, peak=0.003) for step in range(WARMUP, TOTAL + 100)]
    assert all(later <= earlier + 1e-15 for earlier, later in itertools.pairwise(rates))
    assert rates[-1] >= 0


@pytest.mark.parametrize("schedule", ["paper", "inverse-sqrt"])
def test_a_root_schedule_halves_when_the_steps_quadruple(schedule: str) -> None:
    assert rate(4 * WARMUP, schedule, peak=0.003) == pytest.approx(0.0015)


def test_cosine_is_at_half_in_the_middle_and_at_zero_in_the_end() -> None:
    assert rate((WARMUP + TOTAL) // 2, "cosine", peak=0.003) == pytest.approx(0.0015)
    assert rate(TOTAL, "cosine", peak=0.003) == pytest.approx(0, abs=1e-12)
    assert rate(TOTAL + 100, "cosine", peak=0.003) == pytest.approx(0, abs=1e-12)


def test_wsd_stays_at_its_peak_and_then_decays_in_a_line() -> None:
    decay_steps = 0.25 * TOTAL
    stays = math.floor(TOTAL - decay_steps)
    assert rate(stays, "wsd", peak=0.003, decay_share=0.25) == 0.003
    assert rate(TOTAL - 499, "wsd", peak=0.003, decay_share=0.25) == pytest.approx(0.003 * 500 / decay_steps)
    assert rate(TOTAL, "wsd", peak=0.003, decay_share=0.25) == pytest.approx(0.003 / decay_steps)
    assert rate(TOTAL + 1, "wsd", peak=0.003, decay_share=0.25) == 0


def test_wsd_without_a_decay_stays_to_the_end() -> None:
    assert rate(TOTAL, "wsd", peak=0.003, decay_share=0.0) == 0.003


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "wsd"])
def test_without_a_peak_the_width_gives_one(schedule: str) -> None:
    assert rate(WARMUP, schedule) == pytest.approx(default_peak(D_MODEL))
    assert default_peak(4 * D_MODEL) == pytest.approx(default_peak(D_MODEL) / 2)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_run_that_ends_within_its_warmup_still_climbs(schedule: str) -> None:
    config = TrainConfig(schedule=schedule, warmup_steps=WARMUP, learning_rate=0.003, decay_share=0.0)
    assert learning_rate(7, config, D_MODEL, total_steps=11) == pytest.approx(0.003 * 7 / WARMUP)
