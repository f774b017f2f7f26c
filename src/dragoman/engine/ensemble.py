"""Several models as one, and a model with examples.

The torch engine steps them side by side, and writes what all find likely at every step; examples are recalled there.
CTranslate2 cannot: there the first model proposes translations, and all of them judge. A beam of the first model's is
ranked by the mean of all models' log-probabilities, over the paper's length penalty, which costs a pass over what was
found for each further model. Examples judge too: what stands in the translations of sources alike counts for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dragoman.bundle import Bundle
from dragoman.engine.auto import EngineName, has_torch, open_engine, open_fast_engine
from dragoman.engine.convert import ComputeType
from dragoman.engine.engine import Attention, DecodeOptions, Demand, Engine, Ids, Output, Pending, make_output
from dragoman.engine.torch_engine import TorchEngine
from dragoman.errors import ConfigError
from dragoman.search.length import length_penalty
from dragoman.search.phrases import phrases_alike, support

if TYPE_CHECKING:
    from dragoman.search.examples import Examples


def open_ensemble(
    bundle: Bundle,
    others: Sequence[Bundle],
    name: EngineName,
    compute_type: ComputeType,
    workers: int,
    examples: Examples | None = None,
) -> Engine:
    """The engine of a bundle and others that read and write the same pieces, in the same directions. With examples to
    translate by, `auto` is torch, which recalls them at every step, where that is installed.
    """
    for other in others:
        if other.tokenizer.fingerprint() != bundle.tokenizer.fingerprint():
            raise ConfigError(
                f"{other.path.name} has other pieces than {bundle.path.name}: an ensemble takes models that were "
                f"trained with one tokenizer.json, say one from the other with --init"
            )
        if lacking := [direction for direction in bundle.directions if direction not in other.directions]:
            raise ConfigError(f"{other.path.name} does not translate {lacking[0]}, as {bundle.path.name} does")
        if other.model_config.max_length < bundle.model_config.max_length:
            raise ConfigError(
                f"{other.path.name} takes at most {other.model_config.max_length} pieces, {bundle.path.name} "
                f"{bundle.model_config.max_length}: name the other one first"
            )
    if name == "torch" or (name == "auto" and examples is not None and has_torch()):
        return TorchEngine.open(bundle, others, examples)
    judges = [open_fast_engine(other, compute_type, workers) for other in others]
    first = open_engine(bundle, name, compute_type, workers)
    return Ensemble(first, judges, examples, begin_id=bundle.model_config.begin_id)


class Ensemble:
    """An engine whose hypotheses are ranked by others, and by examples, too. What is drawn, and what has no beam, stays
    as it is. Scores are the models', whatever the examples.
    """

    def __init__(
        self, first: Engine, judges: Sequence[Engine], examples: Examples | None = None, *, begin_id: int = 0
    ) -> None:
        self._first = first
        self._judges = judges
        self._examples = examples
        self._begin_id = begin_id

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def compute_type(self) -> str:
        return self._first.compute_type

    def lacks(self, options: DecodeOptions, demands: Sequence[Demand] | None = None) -> str:
        return self._first.lacks(options, demands)

    def submit(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> Pending:
        if options.sampling is not None:
            return self._first.submit(sources, options, demands)
        all_found = replace(options, num_best=options.search.beam)
        return _Judging(self, sources, options, self._first.submit(sources, all_found, demands))

    def translate_ids(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Output]]:
        return self.submit(sources, options, demands).results()

    def score_ids(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The mean of all models' log-probabilities, piece by piece."""
        scores = [engine.score_ids(sources, targets) for engine in (self._first, *self._judges)]
        return [[sum(pieces) / len(pieces) for pieces in zip(*rows, strict=True)] for rows in zip(*scores, strict=True)]

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Attention]:
        """Where the first model looks."""
        return self._first.attend(sources, targets)

    def judge(self, sources: Sequence[Ids], found: Sequence[Output], alpha: float) -> list[Output]:
        """What the first model found for each source, with the log-probability that all models give it in the mean."""
        log_probabilities = [output.log_probability for output in found]
        for judge in self._judges:
            rows = judge.score_ids(sources, [output.ids for output in found])
            for place, (row, output) in enumerate(zip(rows, found, strict=True)):
                log_probabilities[place] += sum(row[: len(output.ids) + output.finished])
        return [
            make_output(output.ids, total / (1 + len(self._judges)), output.finished, alpha)
            for output, total in zip(found, log_probabilities, strict=True)
        ]

    def rank(self, source: Ids, found: Sequence[Output], options: DecodeOptions) -> list[Output]:
        """What was judged, best first: by score, and by what stands in the translations of sources alike."""
        if self._examples is None or len(found) < 2:
            return sorted(found, key=lambda output: -output.score)
        worth = phrases_alike(source, self._examples, self._begin_id)

        def score(output: Output) -> float:
            ids = (*output.ids, source[-1]) if output.finished else output.ids  # both sides have the same end
            penalty = length_penalty(len(ids), options.search.length_penalty)
            return (output.log_probability + support((self._begin_id, *ids), worth)) / penalty

        return sorted(found, key=score, reverse=True)


@dataclass(frozen=True)
class _Judging:
    """A search of the first model, and what is then asked of the others."""

    ensemble: Ensemble
    sources: Sequence[Ids]
    options: DecodeOptions
    pending: Pending

    def results(self) -> list[list[Output]]:
        found = self.pending.results()
        rows = [(source, output) for source, outputs in zip(self.sources, found, strict=True) for output in outputs]
        sources, outputs = [source for source, _ in rows], [output for _, output in rows]
        judged = iter(self.ensemble.judge(sources, outputs, self.options.search.length_penalty))
        return [
            self.ensemble.rank(source, [next(judged) for _ in some], self.options)[: self.options.num_best]
            for source, some in zip(self.sources, found, strict=True)
        ]
