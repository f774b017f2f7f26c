"""What is said about an event of training, as text that is safe to show: pure functions, used by `progress.py`."""

import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

MAX_SAMPLES = 3
JOINERS = "\u200c\u200d"
"""Invisible, but without them Persian, Hindi and many emoji are misspelled."""

STEP_FACTS = {
    "epoch": "epoch {:.2f}",
    "loss": "loss {:.3f}",
    "target_tokens_per_second": "{:,.0f} target tokens/s",
    "padding": "padding {:.1%}",
    "learning_rate": "learning rate {:.2e}",
}
VALIDATION_FACTS = {
    "bleu": "BLEU {:.1f}",
    "chrf": "chrF {:.1f}",
    "loss": "loss {:.3f}",
    "perplexity": "perplexity {:.2f}",
    "watched_loss": "loss on what was learned before {:.3f}",
}
REASONS = {
    "finished": "finished",
    "patience": "stopped early, as validation no longer got better,",
    "interrupted": "interrupted",
    "budget": "stopped at the end of the time budget,",
}


@dataclass(frozen=True)
class Line:
    """A line to show, and how a terminal colours it."""

    text: str
    style: str = ""


def clean(text: str) -> str:
    """A text as one line that no terminal obeys: without control and direction characters, or halves of a pair."""
    one_line = " ".join(text.split())
    kept = (c for c in one_line if c in JOINERS or unicodedata.category(c) not in ("Cc", "Cf"))
    return "".join("\ufffd" if unicodedata.category(c) == "Cs" else c for c in kept)


def shorten(text: str, width: int) -> str:
    """At most `width` columns of a terminal, where a Chinese character takes two."""
    short = Text(text)
    short.truncate(max(width, 2), overflow="ellipsis")
    return short.plain


def fit(facts: Iterable[str], width: int) -> list[str]:
    """Facts side by side in as few lines as `width` allows; none is broken."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + 2 + len(fact) <= width:
            lines[-1] += f"  {fact}"
        else:
            lines.append(fact)
    return lines


def clock(seconds: float) -> str:
    """1:02:03, or 2:03."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def step_facts(event: Mapping[str, Any]) -> list[str]:
    """Where a run stands; what the event does not know is left out."""
    total, left, skipped = event.get("total_steps"), event.get("seconds_left"), event.get("skipped")
    facts = [f"step {event['step']:,}" + (f"/{total:,}" if total else ""), *_known(event, STEP_FACTS)]
    if skipped:
        facts.append(f"{skipped:,} skipped")
    if left is not None and math.isfinite(left):
        facts.append(f"{clock(left)} left")
    return facts


def report(event: Mapping[str, Any], width: int) -> list[Line]:
    """What to say about an event that is not a step; checkpoints are passed over in silence."""
    kind = event["event"]
    if kind == "start":
        return [Line(text, "bold") for text in fit(_start_facts(event), width)]
    if kind == "validation":
        facts = [f"step {event['step']:,}", *_known(event, VALIDATION_FACTS), *(["best so far"] * event["better"])]
        lines = [Line(text, "bold green" if event["better"] else "bold") for text in fit(facts, width)]
        samples = list(event.get("samples") or ())[:MAX_SAMPLES]
        return lines + [line for sample in samples for line in _sample_lines(sample, width)]
    if kind == "message":
        warning = event.get("level") == "warning"
        lines_of_text = event["text"].strip("\n").split("\n")
        return [Line(("warning: " if warning else "") + clean(text), "yellow" * warning) for text in lines_of_text]
    if kind == "end":
        reason = REASONS.get(event["reason"], clean(str(event["reason"])))
        return [Line(f"{reason} at step {event['step']:,} after {clock(event['seconds'])}", "bold")]
    return []


def _known(event: Mapping[str, Any], facts: Mapping[str, str]) -> list[str]:
    return [form.format(event[key]) for key, form in facts.items() if event.get(key) is not None]


def _start_facts(event: Mapping[str, Any]) -> list[str]:
    resumed = [f"resuming after step {event['step']:,}"] if event["step"] else []
    ranks = f" on {event['ranks']} ranks" if event["ranks"] > 1 else ""
    return [
        *resumed,
        f"{event['parameters']:,} parameters",
        f"{event['pieces']:,} pieces",
        f"{event['pairs']:,} pairs",
        f"{event['target_tokens_per_epoch']:,} target tokens an epoch",
        *([f"{event['total_steps']:,} steps"] if event["total_steps"] else []),
        f"{event['batch_tokens']:,} target tokens a step",
        f"{event['device']}{ranks}, {event['precision']}{', compiled' if event['compiled'] else ''}",
    ]


def _sample_lines(sample: Mapping[str, str], width: int) -> list[Line]:
    styles = {"source": "dim", "reference": "dim", "output": ""}
    shown = {name: clean(sample.get(name) or "") for name in styles}
    return [
        Line(f"  {name:<9}  {shorten(text, width - 13)}".rstrip(), styles[name])
        for name, text in shown.items()
        if text or name == "output"
    ]
