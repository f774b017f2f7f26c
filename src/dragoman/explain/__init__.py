"""See inside a translation: every layer's and head's numbers, what was considered, and what would have been if.

    request       what may be asked, and its checks
    trace         what one translation was made of: frozen dataclasses and arrays, saved and read back
    explainer     `Explainer`: a model, its pieces, and everything that may be asked of them
    ask           from a request to a finished translation in ids
    pieces        pieces and words, and where they stand in the text
    forced        one teacher-forced pass over a finished translation, everything written down
    derived       what follows from that: inputs of sub-layers, lengths of values, parameters by head
    steps         the next piece: candidates, and the logit lens
    words         from pieces to words: the alignment
    heads         what a head does, in numbers and a few words
    rollout       attention followed through the layers
    beam          the tree of a search
    switches      heads switched off, and what that costs: `effects`
    importance    words left out, and what that costs
    what_if       two translations side by side
    shuffle       the encoder without positions
    replay        the same sentence over a training run, as far as `checkpoints` are kept
    terminal      drawn with characters
    figures       drawn with matplotlib on a `canvas`: attention and heads; with `positions`, and `curves` of training
    page          one HTML file that needs no network
    answers       all of it as JSON holds it, for that page and the server

    explainer = explain.open_explainer("models/mine")
    trace = explainer.trace("Je suis étudiant.")
    trace.save("trace")
    Path("page.html").write_text(explainer.page(trace.request), encoding="utf-8")

The names of `__all__` are loaded when they are first used: asking needs torch, reading a saved trace does not.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.explain.explainer import Explainer, open_explainer
    from dragoman.explain.request import TraceRequest
    from dragoman.explain.trace import Trace

_HOMES = {
    "Explainer": "dragoman.explain.explainer",
    "Trace": "dragoman.explain.trace",
    "TraceRequest": "dragoman.explain.request",
    "open_explainer": "dragoman.explain.explainer",
}

__all__ = ["Explainer", "Trace", "TraceRequest", "open_explainer"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman.explain' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
