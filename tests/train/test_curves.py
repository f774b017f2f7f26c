"""The curves are drawn from whatever log a run left behind."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from dragoman.errors import DataError, MissingExtraError
from dragoman.train import curves
from dragoman.train.curves import Series, draw_curves, read_log, series_of, smoothed


def start(step: int) -> dict[str, Any]:
    return {"event": "start", "step": step}


def step(number: int, **figures: Any) -> dict[str, Any]:
    usual = {"loss": 7 - number / 1000, "learning_rate": 1e-3, "target_tokens_per_second": 2e4, "seconds": number * 1.3}
    return {"event": "step", "step": number, **usual, **figures}


def validation(number: int, **figures: Any) -> dict[str, Any]:
    usual = {"loss": 7 - number / 1100, "bleu": 11.0, "chrf": 23.0, "seconds": number * 1.3 + 5, "better": True}
    return {"event": "validation", "step": number, **usual, **figures}


def write(path: Path, events: list[dict[str, Any]], end: str = "") -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events) + end)
    return path


USUAL = [start(0), *(step(number) for number in range(10, 1010, 10)), *(validation(number) for number in (500, 1000))]
LOGS = {
    "usual": USUAL,
    "one step": [start(0), step(1)],
    "no validation": [start(0), step(10), step(20)],
    "no scores": [step(10), validation(10, bleu=None, chrf=None), step(20)],
    "no loss": [step(10, loss=None), step(20, loss=None)],
    "no time": [step(10, seconds=0.0), step(20, seconds=0.0)],
    "validation first": [validation(0, seconds=2.0), step(10)],
}


@pytest.mark.parametrize("name", LOGS)
def test_any_log_that_has_a_step_is_drawn(tmp_path: Path, name: str) -> None:
    png = tmp_path / "curves.png"
    draw_curves(write(tmp_path / "training.jsonl", LOGS[name]), png)
    image = imread(png)
    assert image.shape[0] > 400
    assert image.std() > 0.01
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.png", "training.jsonl"]


def test_the_panels_show_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    draw = curves._draw_panels
    monkeypatch.setattr(curves, "_draw_panels", lambda figure, log: (draw(figure, log), figures.append(figure)))
    events = [start(0), step(60, seconds=60.0), step(120, seconds=120.0), validation(120, seconds=240.0, loss=2.5)]
    draw_curves(write(tmp_path / "training.jsonl", events), tmp_path / "curves.png")
    loss, scores, rate, speed = figures[0].axes
    assert [line.get_label() for line in loss.lines] == ["training", "validation"]
    assert [line.get_label() for line in scores.lines] == ["BLEU", "chrF"]
    assert loss.lines[1].get_xydata().tolist() == [[120, 2.5]]
    assert rate.lines[0].get_xdata().tolist() == speed.lines[0].get_xdata().tolist() == [60, 120]
    minutes = loss.child_axes[0].get_xticks()
    labels = [label.get_text() for label in loss.child_axes[0].get_xticklabels()]
    # Two minutes bring 120 steps, the next two are spent validating.
    assert dict(zip(labels, minutes, strict=True))["1"] == pytest.approx(60)
    assert dict(zip(labels, minutes, strict=True))["4"] == pytest.approx(120)


@pytest.mark.parametrize("end", ['{"event": "step", "st', '{"event": "step", "step": 30, "loss"', "\x00\x00", "7"])
def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path, end: str) -> None:
    path = write(tmp_path / "training.jsonl", [step(10), step(20)], end)
    assert [event["step"] for event in read_log(path).steps] == [10, 20]


def test_what_a_resume_went_back_over_is_not_drawn_twice(tmp_path: Path) -> None:
    events = [start(0), step(10), validation(10), step(20), step(30), validation(30), start(20), step(30, loss=2.5)]
    log = read_log(write(tmp_path / "training.jsonl", events))
    assert [(event["step"], event["loss"] == 2.5) for event in log.steps] == [(10, False), (20, False), (30, True)]
    assert [event["step"] for event in log.validations] == [10]


def test_a_new_run_in_an_old_log_stands_alone(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "training.jsonl", [start(0), validation(0), step(10), start(0), step(7)]))
    assert [event["step"] for event in log.steps] == [7]
    assert log.validations == ()


def test_a_line_separator_inside_a_sample_does_not_end_the_line(tmp_path: Path) -> None:
    path = tmp_path / "training.jsonl"
    event = step(10, samples=[{"output": "a\u2028b"}])
    path.write_text(json.dumps(event, ensure_ascii=False) + "\n", encoding="utf-8")
    assert read_log(path).steps == (event,)


def test_a_figure_that_is_missing_leaves_its_step_out() -> None:
    series = series_of([step(10), step(20, loss=None), {"step": 30}, step(40)], "loss")
    assert series.steps.tolist() == [10, 40]


def test_smoothing_leaves_a_straight_line_straight() -> None:
    steps = np.arange(31.0)
    mean = smoothed(Series(steps, 3 * steps), 7)
    np.testing.assert_allclose(mean.values, 3 * mean.steps)
    assert len(mean.steps) == 25


@pytest.mark.parametrize("events", [[], [start(0)], [start(0), validation(0)]])
def test_a_log_without_a_step_is_refused(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    path = write(tmp_path / "training.jsonl", events)
    with pytest.raises(DataError, match=r"training\.jsonl has no training step to draw: expected the training\.jsonl"):
        draw_curves(path, tmp_path / "curves.png")


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.jsonl: cannot read the training log: No such file"):
        draw_curves(tmp_path / "nowhere.jsonl", tmp_path / "curves.png")


def test_drawing_without_matplotlib_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"drawing curves needs matplotlib: .*\[train\]"):
        draw_curves(write(tmp_path / "training.jsonl", USUAL), tmp_path / "curves.png")


def test_a_picture_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half_a_picture(figure: Figure, path: Path, **options: Any) -> None:
        path.write_bytes(b"half")
        raise OSError("No space left on device")

    png = tmp_path / "curves.png"
    png.write_bytes(b"old")
    monkeypatch.setattr(Figure, "savefig", half_a_picture)
    with pytest.raises(OSError, match="No space left"):
        draw_curves(write(tmp_path / "training.jsonl", USUAL), png)
    assert png.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.png", "training.jsonl"]
