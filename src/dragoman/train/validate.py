"""How good the weights are now: the loss on the validation set, and BLEU, chrF and samples of real translations."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.model.build import build_model
from dragoman.recipe import Recipe, SearchConfig
from dragoman.search.beam import search
from dragoman.search.searchable import Searchable
from dragoman.text.batches import Batch, collate, plan_epoch
from dragoman.text.metrics import corpus_scores
from dragoman.text.mixture import Mixture
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.feed import to_tensors
from dragoman.train.loss import chunked_loss
from dragoman.train.prepare import Prepared

SAMPLED_PAIRS = 300
"""Translated at each validation, for BLEU and chrF."""

SHOWN_SAMPLES = 3


class Validation:
    """Call it with weights: -> loss, perplexity, bleu, chrf, samples. It has a model of its own to put them in."""

    def __init__(self, prepared: Prepared, recipe: Recipe, device: torch.device) -> None:
        self.data = prepared.valid
        self.watched = prepared.watched
        self.pairs = prepared.valid_pairs
        self.tokenizer = prepared.tokenizer
        self.recipe = recipe
        self.device = device
        self.model = build_model(recipe.model).to(device).eval()
        spread = np.linspace(0, len(self.pairs) - 1, min(SAMPLED_PAIRS, len(self.pairs)))
        self.sampled = sorted({int(place) for place in spread})
        chosen = np.random.default_rng(recipe.train.seed).permutation(len(self.sampled))
        self.shown = sorted(chosen[:SHOWN_SAMPLES].tolist())

    def __call__(self, state: Mapping[str, Tensor]) -> dict[str, Any]:
        self.model.load_state_dict(state)
        loss = self.loss(self.data)
        outputs = self.translate(self.sampled, SearchConfig(beam=1))
        references = [self.pairs[index].target for index in self.sampled]
        bleu, chrf = corpus_scores(outputs, references, metrics=("bleu", "chrf"))
        samples = [
            {"source": self.pairs[self.sampled[i]].source, "reference": references[i], "output": outputs[i]}
            for i in self.shown
        ]
        metrics = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "bleu": bleu.value, "chrf": chrf.value}
        if self.watched is not None:
            metrics["watched_loss"] = self.loss(self.watched)
        return {**metrics, "samples": samples}

    @torch.inference_mode()
    def loss(self, data: Mixture) -> float:
        """Nats per target piece, unsmoothed."""
        model, total, num_tokens = self.model, 0.0, 0
        for batch in batches_in_order(data, self.tokenizer, self.recipe.train.batch_tokens):
            source_BS, target_in_BT, target_out_BT = to_tensors(batch, self.device)
            real_BT = target_out_BT != self.tokenizer.padding_id
            hidden_ND = model.hidden(source_BS, target_in_BT)[real_BT].float()
            loss = chunked_loss(hidden_ND, model.output_weight_VD, model.output_bias_V, target_out_BT[real_BT], 0.0)
            total += loss.plain.item()
            num_tokens += batch.num_target_tokens
        return total / num_tokens

    @torch.inference_mode()
    def translate(self, indices: Sequence[int], config: SearchConfig) -> list[str]:
        """The text of each source of the validation set, in the order of `indices`."""
        outputs: dict[int, str] = {}
        model: Searchable[Any] = self.model
        by_length = sorted(indices, key=lambda index: len(self.data.pair(index).source))
        rows = max(1, 128 // config.beam)
        for start in range(0, len(by_length), rows):
            chunk = by_length[start : start + rows]
            sources = [torch.from_numpy(self.data.pair(index).source.astype(np.int64)) for index in chunk]
            source_BS = torch.nn.utils.rnn.pad_sequence(sources, True, self.tokenizer.padding_id).to(self.device)
            found = search(
                model,
                source_BS,
                config,
                padding_id=self.tokenizer.padding_id,
                begin_id=self.tokenizer.begin_id,
                end_id=self.tokenizer.end_id,
                max_length=self.recipe.model.max_length - 1,
            )
            for index, hypotheses in zip(chunk, found, strict=True):
                outputs[index] = self.tokenizer.target_side.decode(hypotheses[0].ids)
        return [outputs[index] for index in indices]


def batches_in_order(data: Mixture, tokenizer: Tokenizer, batch_tokens: int) -> Iterator[Batch]:
    """Every pair once, in the batches of one fixed epoch."""
    for indices in plan_epoch(data.source_lengths, data.target_lengths, batch_tokens=batch_tokens, seed=0, epoch=0):
        yield collate([data.pair(index) for index in indices], tokenizer.padding_id, tokenizer.begin_id)
