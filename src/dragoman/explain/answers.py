"""What a page may ask of an explainer, as JSON holds it: one table for the server and the page in one file."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from dragoman.explain.explainer import Explainer
from dragoman.explain.page import offline_page
from dragoman.explain.replay import replay
from dragoman.explain.request import TraceRequest


def importance(explainer: Explainer, request: TraceRequest) -> dict[str, Any]:
    """Words left out."""
    return asdict(explainer.importance(request))


def effects(explainer: Explainer, request: TraceRequest) -> dict[str, Any]:
    """Heads switched off."""
    return asdict(explainer.effects(request))


def compare(explainer: Explainer, request: TraceRequest, changed: TraceRequest) -> dict[str, Any]:
    """Two translations side by side."""
    return asdict(explainer.compare(request, changed))


def shuffle(explainer: Explainer, request: TraceRequest, seed: int = 1) -> dict[str, Any]:
    """The encoder without positions."""
    return asdict(explainer.shuffle(request, seed))


def replayed(explainer: Explainer, request: TraceRequest) -> dict[str, Any]:
    """The sentence over a training run."""
    return {"checkpoints": [asdict(moment) for moment in replay(explainer, request)]}


def whole_page(explainer: Explainer, request: TraceRequest) -> str:
    """The page in one file, with everything inside that it could ask for without a new translation."""
    trace = explainer.explain(replace(request, target_ids=None))
    if request.target_ids not in (None, trace.request.target_ids):
        trace = explainer.explain(request)  # not what a search finds, so there is no tree of one to show
    known = trace.request
    answers = {"importance": importance(explainer, known), "effects": effects(explainer, known)}
    if trace.model.architecture == "transformer":
        answers["shuffle"] = shuffle(explainer, known)
    if trace.model.checkpoints:
        answers["replay"] = replayed(explainer, known)
    return offline_page(trace, answers)
