"""Trackers hear every event, and none of them can stop training or spoil the log of a resumed run."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import MissingExtraError
from dragoman.train.trackers import Fanout, JsonLines, TensorBoard

VALIDATION = {
    "event": "validation", "step": 13, "loss": 2.5, "perplexity": 12.2, "bleu": 31.5, "chrf": None, "better": True,
    "seconds": 7.0, "samples": [{"source": "ein *Hund*", "reference": "a dog", "output": "a\ndog"}],
}  # fmt: skip


def step_event(step: int) -> dict[str, Any]:
    return {"event": "step", "step": step, "loss": 100 / step, "learning_rate": 0.001, "padding": 0.02}


def steps_in(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_bytes().split(b"\n")[:-1]]


def test_a_tracker_that_raises_is_dropped_and_the_others_are_warned_once() -> None:
    heard: list[dict[str, Any]] = []
    attempts: list[int] = []

    def broken(event: Any) -> None:
        attempts.append(event["step"])
        raise OSError("the tape is full")

    fanout = Fanout([broken, heard.append])
    for step in (2, 3, 5):
        fanout(step_event(step))
    assert attempts == [2]
    assert [event["event"] for event in heard] == ["step", "message", "step", "step"]
    assert heard[1] == {
        "event": "message", "level": "warning", "text": "broken failed (the tape is full): going on without it"
    }  # fmt: skip


def test_trackers_that_fail_at_each_others_warnings_are_all_dropped() -> None:
    def first(event: Any) -> None:
        raise KeyError

    def second(event: Any) -> None:
        if event["event"] == "message":
            raise RuntimeError("no words")

    heard: list[dict[str, Any]] = []
    Fanout([first, second, heard.append])(step_event(2))
    assert [event.get("text", "") for event in heard] == [
        "", "first failed (KeyError): going on without it", "second failed (no words): going on without it"
    ]  # fmt: skip


def test_an_interrupt_is_not_held_back() -> None:
    def interrupted(event: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Fanout([interrupted])(step_event(2))


def test_closing_a_fanout_closes_those_that_can_be_closed() -> None:
    class Closable:
        closed = 0

        def __call__(self, event: Any) -> None: ...

        def close(self) -> None:
            self.closed += 1
            raise OSError("already gone")

    first, second = Closable(), Closable()
    Fanout([first, print, second]).close()
    assert (first.closed, second.closed) == (1, 1)


def test_every_event_is_a_line_at_once(tmp_path: Path) -> None:
    path = tmp_path / "training.jsonl"
    log = JsonLines(path)
    assert log.size() == 0
    for step in (2, 3, 5):
        log(step_event(step))
        assert steps_in(path)[-1] == step
        assert log.size() == path.stat().st_size


def test_a_resumed_log_is_as_if_never_interrupted(tmp_path: Path) -> None:
    whole, resumed = tmp_path / "whole.jsonl", tmp_path / "resumed.jsonl"
    for step in range(1, 12):
        JsonLines(whole)(step_event(step))
    before = JsonLines(resumed)
    for step in range(1, 6):
        before(step_event(step))
    saved = before.size()
    for step in range(6, 9):
        before(step_event(step))
    resumed.write_bytes(resumed.read_bytes()[:-7])

    after = JsonLines(resumed, resume_bytes=saved)
    assert after.size() == saved
    for step in range(6, 12):
        after(step_event(step))
    assert resumed.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("resume_bytes", [None, 10_007])
def test_a_line_that_was_cut_off_is_gone_when_the_next_is_written(tmp_path: Path, resume_bytes: int | None) -> None:
    path = tmp_path / "training.jsonl"
    JsonLines(path)(step_event(2))
    with path.open("ab") as file:
        file.write(b'{"event": "st')
    JsonLines(path, resume_bytes)(step_event(3))
    assert steps_in(path) == [2, 3]


def test_resuming_at_nothing_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "training.jsonl"
    JsonLines(path)(step_event(2))
    JsonLines(path, resume_bytes=0)(step_event(3))
    assert steps_in(path) == [3]


def test_making_a_log_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "training.jsonl"
    path.write_bytes(b"half a li")
    JsonLines(path, resume_bytes=0)
    assert path.read_bytes() == b"half a li"


def test_figures_that_are_not_finite_are_null(tmp_path: Path) -> None:
    path = tmp_path / "training.jsonl"
    JsonLines(path)({"event": "validation", "loss": float("nan"), "more": [{"perplexity": float("inf")}], "path": path})
    written = json.loads(path.read_bytes(), parse_constant=lambda name: pytest.fail(name))
    assert written == {"event": "validation", "loss": None, "more": [{"perplexity": None}], "path": str(path)}


@given(st.text(st.characters()))
def test_any_text_comes_back_from_its_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("log") / "training.jsonl"
    JsonLines(path)({"event": "message", "text": text})
    first, rest = path.read_bytes().split(b"\n")
    assert json.loads(first)["text"] == text
    assert rest == b""


def test_tensorboard_gets_figures_and_samples(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path)
    assert not list(tmp_path.iterdir())
    for event in ({"event": "start", "step": 0}, step_event(11), VALIDATION, {"event": "end", "step": 13}):
        board(event)
    scalars, texts = read_board(tmp_path)
    assert scalars["train/loss"] == [(11, pytest.approx(100 / 11))]
    assert scalars["valid/bleu"] == [(13, 31.5)]
    assert "valid/chrf" not in scalars
    assert texts == {
        "sample/1/text_summary": "    source     ein *Hund*\n    reference  a dog\n    output     a dog"
    }  # fmt: skip


def test_tensorboard_hides_what_a_resume_went_back_over(tmp_path: Path) -> None:
    for start, steps in ((0, (5, 7, 11)), (7, (13,))):
        board = TensorBoard(tmp_path)
        board({"event": "start", "step": start})
        for step in steps:
            board(step_event(step))
        board.close()
    assert [step for step, _ in read_board(tmp_path)[0]["train/loss"]] == [5, 7, 13]


def test_tensorboard_says_which_extra_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"a TensorBoard log needs tensorboard: .*\[tensorboard\]"):
        TensorBoard(tmp_path)


def read_board(folder: Path) -> tuple[dict[str, list[tuple[int, float]]], dict[str, str]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    tags = accumulator.Tags()
    scalars = {tag: [(item.step, item.value) for item in accumulator.Scalars(tag)] for tag in tags["scalars"]}
    texts = {tag: accumulator.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in tags["tensors"]}
    return scalars, texts
