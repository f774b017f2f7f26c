"""The reference: the model in torch, searched by `dragoman.search`. Slower to start and to run, it can do all.

Of several models it asks all at every step, and takes the mean of their probabilities. With examples, each recalls at
every step what followed in translations like this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.bundle import Bundle
from dragoman.engine.alignment import alignment_layer
from dragoman.engine.batching import check_lengths, plan_batches
from dragoman.engine.engine import (
    Attention,
    DecodeOptions,
    Demand,
    Done,
    Ids,
    Output,
    check_demands,
)
from dragoman.errors import require

if TYPE_CHECKING:
    import torch

    from dragoman.model.build import TranslationModel
    from dragoman.search.examples import Examples
    from dragoman.search.hypothesis import Hypothesis
    from dragoman.search.searchable import Searchable

BATCH_TOKENS = 2048


class TorchEngine:
    """A model in torch, on the CPU unless its weights are moved; with `others`, which read and write the same pieces,
    several as one; with `examples`, by those.
    """

    name = "torch"
    compute_type = "float32"

    def __init__(
        self,
        model: TranslationModel,
        batch_tokens: int = BATCH_TOKENS,
        others: Sequence[TranslationModel] = (),
        examples: Examples | None = None,
    ) -> None:
        self._model = model.eval()
        self._models = [self._model, *(other.eval() for other in others)]
        self._config = model.config
        self._searched = self._to_search(examples)
        self._batch_tokens = batch_tokens

    @classmethod
    def open(cls, bundle: Bundle, others: Sequence[Bundle] = (), examples: Examples | None = None) -> TorchEngine:
        require("torch", "train", "the torch engine")
        return cls(bundle.load_model(), others=[other.load_model() for other in others], examples=examples)

    def lacks(self, options: DecodeOptions, demands: Sequence[Demand] | None = None) -> str:
        return ""

    def submit(self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None) -> Done:
        return Done(self.translate_ids(sources, options, demands))

    def translate_ids(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Output]]:
        check_lengths(sources, self._config.max_length)
        demands = check_demands(sources, demands)
        outputs: list[list[Output]] = [[] for _ in sources]
        for batch in plan_batches(list(map(len, sources)), self._batch_tokens):
            found = self._search(
                [sources[place] for place in batch], [demands[place] for place in batch], options, batch
            )
            for place, hypotheses in zip(batch, found, strict=True):
                outputs[place] = [Output(one.ids, one.log_probability, one.score, one.finished) for one in hypotheses]
        return outputs

    def score_ids(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """By the models alone, whatever the examples."""
        import torch

        from dragoman.search.mixture import mean_log_probs

        rows: list[list[float]] = []
        for source, target in zip(sources, targets, strict=True):
            read, begun = self._padded([source]), self._padded([[self._config.begin_id, *target]])
            with torch.inference_mode():
                log_probs_1TV = mean_log_probs([model.logits(model.hidden(read, begun)) for model in self._models])
            pieces_T1 = torch.tensor([*target, self._config.end_id])[:, None]
            rows.append(log_probs_1TV[0].gather(1, pieces_T1).squeeze(1).tolist())
        return rows

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Attention]:
        """By one pass over each finished translation that writes down who looked where, in the first model. A model
        without attention looks nowhere: its tables have no rows.
        """
        import torch

        from dragoman.model.record import Record

        attentions: list[Attention] = []
        name = f"decoder.{alignment_layer(self._config)}.cross_attention.weights"
        for source, target in zip(sources, targets, strict=True):
            record = Record()
            with torch.inference_mode():
                # Position t reads the piece before it, and says what piece t is: the last piece is never read.
                self._model.hidden(self._padded([source]), self._padded([[self._config.begin_id, *target]]), record)
            if name not in record.tensors:
                attentions.append(np.zeros((0, len(source)), dtype=np.float32))
                continue
            weights_1HTS = record.tensors[name]
            attentions.append(weights_1HTS[0].mean(0)[: len(target)].numpy())
        return attentions

    def _search(
        self, sources: Sequence[Ids], demands: Sequence[Demand], options: DecodeOptions, places: Sequence[int]
    ) -> list[list[Hypothesis]]:
        from dragoman.search.beam import search
        from dragoman.search.constraints import Constraints
        from dragoman.search.sampling import sample

        config, model, prefix = self._config, self._searched, [demand.prefix for demand in demands]
        if options.sampling is not None:
            return sample(
                model,
                self._padded(sources),
                options.search,
                padding_id=config.padding_id,
                begin_id=config.begin_id,
                end_id=config.end_id,
                seed=options.sampling.seed,
                temperature=options.sampling.temperature,
                top_k=options.sampling.top_k,
                top_p=options.sampling.top_p,
                num_samples=options.num_best,
                indices=places,
                prefix=prefix,
                max_length=config.max_length - 1,
            )
        return search(
            model,
            self._padded(sources),
            options.search,
            padding_id=config.padding_id,
            begin_id=config.begin_id,
            end_id=config.end_id,
            num_best=options.num_best,
            prefix=prefix,
            constraints=[Constraints(demand.must, demand.must_not) for demand in demands],
            max_length=config.max_length - 1,
        )

    def _to_search(self, examples: Examples | None) -> Searchable[Any]:
        """What is searched: the models as one, and each with the examples."""
        from dragoman.search.mixture import Mixture
        from dragoman.search.recall import Recall

        models: list[Searchable[Any]] = list(self._models)
        if examples is not None:
            ids = {"padding_id": self._config.padding_id, "begin_id": self._config.begin_id}
            models = [Recall(model, examples, **ids) for model in self._models]
        return models[0] if len(models) == 1 else Mixture(models)

    def _padded(self, sources: Sequence[Ids]) -> torch.Tensor:
        import torch

        longest = max(map(len, sources))
        padding = self._config.padding_id
        return torch.tensor([[*source, *[padding] * (longest - len(source))] for source in sources])
