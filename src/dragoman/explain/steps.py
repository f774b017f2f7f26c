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
    # A layer at a time, and only its best are kept: (T, V) of every layer would be much of a machine's memory.
    lenses = [
        _best(lens(model, forced.tensors[f"{name}.feed_forward_residual.output"]), LENS_TOP, tokenizer)
        for name, _ in blocks_of(model)
        if name.startswith("decoder.")
    ]
    return tuple(
        Step(
            chosen=_chosen(probabilities_TV[place], id, tokenizer),
            top=best,
            lens=tuple(layer[place] for layer in lenses),
        )
        for place, (id, best) in enumerate(zip(target_ids, _best(probabilities_TV, top, tokenizer), strict=True))
    )


def lens(model: TranslationModel, output_TD: Tensor) -> Tensor:
    """The logit lens: the probabilities (T, V) if a decoder layer's output were the last one's.

    With pre-norm it goes through the norm at the decoder's end first; the last layer's are the model's own.
    """
    norm: nn.Module = getattr(getattr(model, "decoder", None), "norm", nn.Identity())
    with torch.inference_mode():
        return model.logits(norm(output_TD)).float().softmax(-1)


def _chosen(probability_V: Tensor, id: int, tokenizer: Tokenizer) -> Candidate:
    own = probability_V[id]
    rank = int((probability_V > own).sum()) + 1
    return Candidate(id, tokenizer.piece(id), shown(tokenizer, id), float(own), rank)


def _best(probabilities_TV: Tensor, num: int, tokenizer: Tokenizer) -> list[tuple[Candidate, ...]]:
    """The likeliest pieces of each row, the likeliest first."""
    values, ids = probabilities_TV.topk(min(num, probabilities_TV.shape[1]))
    return [
        tuple(
            Candidate(id, tokenizer.piece(id), shown(tokenizer, id), value, rank)
            for rank, (value, id) in enumerate(zip(*row, strict=True), start=1)
        )
        for row in zip(values.tolist(), ids.tolist(), strict=True)
    ]
