"""Training replay: the same sentence at every checkpoint that is kept beside a model.

`dragoman train` keeps weights in the model folder's run/weights (as many as `train.average` says); whoever wants more
moments puts such files into a folder `checkpoints`. A file is named step-000000123.safetensors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch

from dragoman.bundle import Bundle
from dragoman.errors import BundleError
from dragoman.explain.checkpoints import kept_checkpoints
from dragoman.explain.explainer import Explainer
from dragoman.explain.request import TraceRequest
from dragoman.explain.words import aligned_words
from dragoman.model.build import TranslationModel, build_model
from dragoman.translator.translation import Link


@dataclass(frozen=True)
class Moment:
    """A sentence at one step of the training: what was translated then, how likely the final translation was then,
    and its words' attention to the source's.
    """

    step: int
    text: str
    log_probability: float
    words: tuple[str, ...]
    alignment: tuple[Link, ...]
    matrix: tuple[tuple[float, ...], ...]


def replay(explainer: Explainer, request: TraceRequest) -> tuple[Moment, ...]:
    """Each moment; the target is the final model's throughout, so that rows can be compared."""
    checkpoints = kept_checkpoints(explainer.bundle.path)
    if not checkpoints:
        return ()
    final = explainer.explain(request).request
    return tuple(
        _moment(Explainer(explainer.bundle, load(explainer.bundle, path)), step, final)
        for step, path in checkpoints.items()
    )


def load(bundle: Bundle, path: Path) -> TranslationModel:
    """The model with a checkpoint's weights."""
    model = build_model(bundle.model_config)
    try:
        model.load_state_dict(safetensors.torch.load_file(path))
    except (OSError, RuntimeError, safetensors.SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise BundleError(f"{path} does not hold weights of this model ({reason}): remove it") from error
    return model.eval()


def _moment(explainer: Explainer, step: int, final: TraceRequest) -> Moment:
    trace = explainer.explain(final)
    matrix = aligned_words(trace.tensors, trace.alignment_layer, trace.source, trace.target)
    return Moment(
        step=step,
        text=explainer.version(replace(final, target_ids=None)).text,
        log_probability=trace.translation.log_probability,
        words=tuple(word.text for word in trace.target.words),
        alignment=trace.alignment,
        matrix=tuple(tuple(round(float(value), 4) for value in row) for row in matrix),
    )
