"""What a person sees of training, on a terminal and elsewhere."""

import io
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from dragoman.train.progress import PlainProgress, TerminalProgress, make_progress
from dragoman.train.wording import clean, clock, fit, report, shorten

START = {
    "event": "start", "step": 0, "total_steps": 1009, "parameters": 7654321, "pieces": 8009, "pairs": 29009,
    "target_tokens_per_epoch": 400009, "batch_tokens": 4099, "device": "cpu", "ranks": 1, "precision": "float32",
    "compiled": False,
}  # fmt: skip
STEP = {
    "event": "step", "step": 131, "total_steps": 1009, "epoch": 1.375, "loss": 3.25, "learning_rate": 5e-4,
    "gradient_norm": 0.7, "target_tokens": 536969, "target_tokens_per_second": 23456.7, "padding": 0.021, "skipped": 0,
    "seconds": 17.0, "seconds_left": 3723.0,
}  # fmt: skip
SAMPLE = {"source": "ein Hund", "reference": "a dog", "output": "a cat"}
VALIDATION = {
    "event": "validation", "step": 139, "loss": 2.5, "perplexity": 12.18, "bleu": 31.46, "chrf": 53.04, "better": True,
    "seconds": 19.0, "samples": [SAMPLE],
}  # fmt: skip
END = {"event": "end", "step": 1009, "seconds": 3723.4, "reason": "finished"}
NASTY = "[bold]x[/bold] \x1b[31mred\x07 :smile: \u202eabc\u2066\u200f عربي\u2028漢字かな交じり文" + "長" * 211


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def able_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def on_terminal(events: list[dict[str, Any]], width: int = 97) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    with TerminalProgress(console) as progress:
        for event in events:
            progress(event)
    return console.file.getvalue()  # type: ignore[attr-defined]


def in_plain(events: list[dict[str, Any]], **options: Any) -> str:
    stream = io.StringIO()
    with PlainProgress(stream, **options) as progress:
        for event in events:
            progress(event)
    return stream.getvalue()


def uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", text)


@pytest.mark.parametrize("show", [on_terminal, in_plain])
def test_a_step_shows_all_that_it_should(show: Any) -> None:
    shown = uncoloured(show([STEP]))
    for fact in ("step 131/1,009", "epoch 1.38", "loss 3.250", "23,457 target tokens/s", "padding 2.1%",
                 "learning rate 5.00e-04", "1:02:03 left"):  # fmt: skip
        assert fact in shown


@pytest.mark.parametrize("show", [on_terminal, in_plain])
def test_a_validation_shows_scores_and_samples(show: Any) -> None:
    shown = uncoloured(show([STEP, VALIDATION, END]))
    assert "step 139  BLEU 31.5  chrF 53.0  loss 2.500  perplexity 12.18  best so far\n" in shown
    assert "  source     ein Hund\n  reference  a dog\n  output     a cat\n" in shown
    assert shown.endswith("finished at step 1,009 after 1:02:03\n")


def test_what_is_not_known_is_left_out() -> None:
    step = {**STEP, "total_steps": 0, "seconds_left": None, "padding": None, "skipped": 3}
    validation = {**VALIDATION, "bleu": None, "chrf": None, "better": False, "samples": []}
    assert in_plain([step, validation]).split("\n")[:2] == [
        "step 131  epoch 1.38  loss 3.250  23,457 target tokens/s  learning rate 5.00e-04  3 skipped",
        "step 139  loss 2.500  perplexity 12.18",
    ]
    assert "left" not in in_plain([{**STEP, "seconds_left": float("inf")}])
    assert "━" not in on_terminal([step])


def test_a_start_says_what_is_trained_and_where_it_resumes() -> None:
    assert in_plain([START]) == (
        "7,654,321 parameters  8,009 pieces  29,009 pairs  400,009 target tokens an epoch  1,009 steps\n"
        "4,099 target tokens a step  cpu, float32\n"
    )
    resumed = in_plain([{**START, "step": 503, "ranks": 2, "compiled": True}])
    assert resumed.startswith("resuming after step 503  ")
    assert resumed.endswith("cpu on 2 ranks, float32, compiled\n")


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("finished", "finished at step 1,009"),
        ("patience", "stopped early, as validation no longer got better, at step 1,009"),
        ("interrupted", "interrupted at step 1,009"),
        ("budget", "stopped at the end of the time budget, at step 1,009"),
        ("eclipse", "eclipse at step 1,009"),
    ],
)
def test_an_end_says_why(reason: str, text: str) -> None:
    assert in_plain([{**END, "reason": reason}]) == f"{text} after 1:02:03\n"


def test_messages_keep_their_lines_and_warnings_are_called_so() -> None:
    info = {"event": "message", "level": "info", "text": "compiling pays:\n1.3 times as fast\n"}
    warning = {"event": "message", "level": "warning", "text": "a \x1b[2Jloss of NaN"}
    assert in_plain([info, warning]) == "compiling pays:\n1.3 times as fast\nwarning: a [2Jloss of NaN\n"
    assert in_plain([{"event": "checkpoint", "step": 7, "path": "x"}, {"event": "novelty", "step": 7}]) == ""


def test_plain_lines_come_by_the_clock_of_training() -> None:
    steps = [{**STEP, "step": number, "seconds": 100 + 3.0 * number} for number in range(1, 14)]
    shown = re.findall(r"step (\d+)/", in_plain(steps))
    assert shown == ["1", "5", "9", "13"]
    assert len(re.findall(r"step", in_plain(steps, every_seconds=0))) == 13


def test_plain_lines_hold_no_control_characters() -> None:
    sample = dict.fromkeys(SAMPLE, NASTY)
    message = {"event": "message", "level": "info", "text": NASTY}
    shown = in_plain([START, STEP, {**VALIDATION, "samples": [sample]}, message, END])
    assert {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Zl", "Zp"} == {"Cc"}
    assert {c for c in shown if unicodedata.category(c) == "Cc"} == {"\n"}


def test_plain_lines_reach_a_stream_that_knows_only_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    PlainProgress(stream)({**VALIDATION, "samples": [{"source": "Grüße", "reference": "", "output": "漢\udc80"}]})
    assert raw.getvalue().endswith(b"  source     Gr??e\n  output     ??\n")


@pytest.mark.parametrize("width", [7, 40, 80, 211])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    sample = dict.fromkeys(SAMPLE, NASTY)
    shown = on_terminal([START, STEP, {**VALIDATION, "samples": [sample] * 2}, STEP, END], width)
    lines = uncoloured(shown.replace("\x1b[2K", "\n")).split("\n")
    assert max(cell_len(line.rstrip()) for line in lines) <= width
    assert len(lines) > 12


def test_a_narrow_terminal_shows_facts_unbroken() -> None:
    shown = uncoloured(on_terminal([STEP, {**VALIDATION, "samples": [dict.fromkeys(SAMPLE, NASTY)]}], 40))
    for fact in ("step 131/1,009", "23,457 target tokens/s", "learning rate 5.00e-04", "1:02:03 left", "BLEU 31.5"):
        assert fact in shown
    assert "  output     [bold]x[/bold] [31mred :sm…" in shown


def test_the_bar_grows_with_the_steps() -> None:
    few, many = (
        re.findall(r"\x1b\[36m(━*)", on_terminal([{**STEP, "step": n, "total_steps": 80}], 89)) for n in (11, 67)
    )
    assert (len(few[0]), len(many[0])) == (11, 67)


def test_samples_are_shown_as_they_are_not_as_markup() -> None:
    text = r"[red]stop[/red] [/] \[x] :smile: [link=https://example.org]y[/link]"
    shown = uncoloured(on_terminal([{**VALIDATION, "samples": [{**SAMPLE, "output": text}]}]))
    assert f"output     {text}\n" in shown


def test_only_a_few_samples_are_shown() -> None:
    shown = in_plain([{**VALIDATION, "samples": [{**SAMPLE, "output": f"dog {n}"} for n in range(7)]}])
    assert re.findall(r"output +dog (\d)", shown) == ["0", "1", "2"]


def test_the_cursor_is_given_back_even_after_an_error() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=97)

    def fail_after_a_step() -> None:
        with TerminalProgress(console) as progress:
            progress(STEP)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_a_step()
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_a_run_after_the_end_draws_its_own_bar() -> None:
    shown = on_terminal([STEP, END, {**STEP, "step": 137}])
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 2


def test_the_live_view_is_for_terminals_that_can_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_progress(Terminal()), TerminalProgress)
    assert isinstance(make_progress(io.StringIO()), PlainProgress)
    assert isinstance(make_progress(), PlainProgress)
    ascii_terminal = Terminal()
    ascii_terminal.encoding = "ascii"
    assert isinstance(make_progress(ascii_terminal), PlainProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_progress(Terminal()), PlainProgress)


def test_joiners_stay_as_words_are_spelled_with_them() -> None:
    assert clean("می\u200cخواهم\u200f") == "می\u200cخواهم"


@given(st.text(st.characters()), st.integers(2, 53))
def test_any_text_becomes_one_safe_line_that_fits(text: str, width: int) -> None:
    line = shorten(clean(text), width)
    assert cell_len(line) <= width
    assert {unicodedata.category(c) for c in line.replace("\u200c", "").replace("\u200d", "")}.isdisjoint(
        {"Cc", "Cf", "Cs", "Zl", "Zp"}
    )
    assert line == clean(text) or line.endswith("…")


@given(st.lists(st.text("ab", min_size=1, max_size=11)), st.integers(1, 53))
def test_facts_are_laid_out_in_order_and_never_broken(facts: list[str], width: int) -> None:
    lines = fit(facts, width)
    assert [fact for line in lines for fact in line.split("  ")] == facts
    assert all(len(line) <= width or line in facts for line in lines)


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (3599.7, "1:00:00"), (90061, "25:01:01")]
)
def test_durations_are_read_as_on_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_better_validation_is_told_by_colour_too() -> None:
    assert report(VALIDATION, 97)[0].style != report({**VALIDATION, "better": False}, 97)[0].style
