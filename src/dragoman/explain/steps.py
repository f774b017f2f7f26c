"""The next piece, step by step: what was written, what else might have been, and what each layer would have said."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dragoman.explain.derived import blocks_of
from dragoman.explain.forced import Forced
from dragoman.explain.pieces import shown
from dragoman.explain.trace import Candidate, Step
from dragoman.model.build import TranslationModel
from dragoman.text.tokenizer import Tokenizer

LENS_TOP = 3


def make_steps(
    model: TranslationModel, forced: Forced, target_ids: Sequence[int], tokenizer: Tokenizer, top: int
) -> tuple[Step, ...]:
    """A step a target piece. Probabilities are of the whole vocabulary, before any rule of the search."""
    probabilities_TV = forced.log_probs_TV.exp()
    lenses = [layer.softmax(-1) for layer in lens_logits(model, forced)]
    return tuple(
        Step(
            chosen=_chosen(probabilities_TV[place], id, tokenizer),
            top=_best(probabilities_TV[place], top, tokenizer),
            lens=tuple(_best(lens_TV[place], LENS_TOP, tokenizer) for lens_TV in lenses),
        )
        for place, id in enumerate(target_ids)
    )


def lens_logits(model: TranslationModel, forced: Forced) -> list[Tensor]:
    """The logit lens: each decoder layer's output taken for the last one's, (T, V) a layer.

    With pre-norm it goes through the norm at the decoder's end first; the last layer's are the model's own logits.
    """
    names = [name for name, _ in blocks_of(model) if name.startswith("decoder.")]
    norm: nn.Module = getattr(getattr(model, "decoder", None), "norm", nn.Identity())
    with torch.inference_mode():
        return [model.logits(norm(forced.tensors[f"{name}.feed_forward_residual.output"])).float() for name in names]


def _chosen(probability_V: Tensor, id: int, tokenizer: Tokenizer) -> Candidate:
    own = probability_V[id]
    rank = int((probability_V > own).sum()) + 1
    return Candidate(id, tokenizer.piece(id), shown(tokenizer, id), float(own), rank)


def _best(probability_V: Tensor, num: int, tokenizer: Tokenizer) -> tuple[Candidate, ...]:
    values, ids = probability_V.topk(min(num, len(probability_V)))
    return tuple(
        Candidate(id, tokenizer.piece(id), shown(tokenizer, id), value, rank)
        for rank, (value, id) in enumerate(zip(values.tolist(), ids.tolist(), strict=True), start=1)
    )
