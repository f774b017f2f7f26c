"""The default engine: CTranslate2, from a model converted on first use, int8 unless asked otherwise; no torch.

In float32 it finds the translations that the reference finds; `ctranslate2_search` says how, and what remains.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.engine.batching import check_lengths, plan_batches
from dragoman.engine.convert import ComputeType, convert, vocabulary
from dragoman.engine.ctranslate2_search import Search, Task, translate_options
from dragoman.engine.engine import (
    Attention,
    DecodeOptions,
    Demand,
    Done,
    Ids,
    Output,
    Pending,
    check_demands,
    limits_of,
    make_output,
)
from dragoman.engine.without_torch import import_ctranslate2
from dragoman.errors import ConfigError

BATCH_TOKENS = 1024
_LOG = logging.getLogger("dragoman.engine")
_SEEDING = threading.Lock()


class CTranslate2Engine:
    """A converted model, with several workers of one thread each: on a CPU that is faster than threads for one."""

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        config: ModelConfig,
        compute_type: ComputeType = "int8",
        workers: int = 1,
        batch_tokens: int = BATCH_TOKENS,
        divide: bool = True,
    ) -> None:
        """With `divide` a call is shared out among the workers; without, other calls are what keeps them busy."""
        self._folder = folder
        self._config = config
        self.compute_type: str = compute_type
        self._call_workers = workers if divide else 1
        self._batch_tokens = batch_tokens
        self._vocabulary = vocabulary(config)
        self._library = import_ctranslate2()
        self._translator = self._open(workers)

    @classmethod
    def open(
        cls, bundle: Bundle, compute_type: ComputeType = "int8", workers: int = 0, divide: bool = True
    ) -> CTranslate2Engine:
        """The engine of a bundle, with a worker a core if their number is not given."""

        def opened(folder: Path) -> CTranslate2Engine:
            return cls(folder, bundle.model_config, compute_type, workers or num_cores(), divide=divide)

        folder = convert(bundle, compute_type)
        try:
            return opened(folder)
        except RuntimeError as error:  # a file was cut short, or removed by whoever cleans up there
            _LOG.warning("the converted model in the cache is damaged (%s): converting again", error)
            shutil.rmtree(folder, ignore_errors=True)
            return opened(convert(bundle, compute_type))

    def lacks(self, options: DecodeOptions, demands: Sequence[Demand] | None = None) -> str:
        if any(demand.must for demand in demands or ()):
            return "phrases that must appear"
        if any(demand.must_not for demand in demands or ()):
            return "phrases that must not appear"
        if options.sampling is not None and any(demand.prefix for demand in demands or ()):
            return "sampling after a prefix"
        return ""

    def translate_ids(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Output]]:
        return self.submit(sources, options, demands).results()

    def submit(
        self, sources: Sequence[Ids], options: DecodeOptions, demands: Sequence[Demand] | None = None
    ) -> Pending:
        check_lengths(sources, self._config.max_length)
        demands = check_demands(sources, demands)
        if lacking := self.lacks(options, demands):
            raise ConfigError(f"CTranslate2 lacks {lacking}: use the torch engine, or leave the choice to `auto`")
        limits = limits_of(sources, options, self._config.max_length)
        if options.sampling is not None:
            return Done(self._sample(sources, limits, options))

        def start(tasks: Sequence[Task], max_steps: int, patience: int) -> list[Any]:
            prefixes = [task.prefix for task in tasks] if any(task.prefix for task in tasks) else None
            started: list[Any] = self._translator.translate_batch(
                [task.source for task in tasks],
                prefixes,
                max_batch_size=self._batch_tokens,
                batch_type="tokens",
                asynchronous=True,
                **translate_options(options, max_steps, patience),
            )
            return started

        tasks = self._tasks(sources, demands, limits)
        handles: list[Any] = [None] * len(tasks)
        for batch in plan_batches(list(map(len, sources)), self._batch_tokens, self._call_workers):
            max_steps = max(limits[place] for place in batch) + 1
            for place, handle in zip(batch, start([tasks[place] for place in batch], max_steps, 1), strict=True):
                handles[place] = handle
        return Search(tasks, handles, options, self._vocabulary[self._config.end_id], start)

    def score_ids(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of every piece of each target, and of its end."""
        results = self._translator.score_batch(
            [self._tokens(source) for source in sources],
            [self._tokens(target) for target in targets],
            max_batch_size=self._batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        return [result.log_probs for result in results]

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Attention]:
        """By decoding with the whole target as forced prefix."""
        check_lengths(sources, self._config.max_length)
        attentions: list[Attention] = [np.zeros((0, len(source)), dtype=np.float32) for source in sources]
        written = [place for place, target in enumerate(targets) if target]
        handles: dict[int, Any] = {}
        for batch in plan_batches([len(targets[place]) for place in written], self._batch_tokens, self._call_workers):
            places = [written[index] for index in batch]
            started = self._translator.translate_batch(
                [self._tokens(sources[place]) for place in places],
                [self._tokens(targets[place]) for place in places],
                asynchronous=True,
                beam_size=1,
                max_input_length=0,
                max_decoding_length=max(len(targets[place]) for place in places),
                return_attention=True,
            )
            handles.update(zip(places, started, strict=True))
        for place, handle in handles.items():
            attention_TS = np.asarray(handle.result().attention[0], dtype=np.float32)
            attentions[place] = attention_TS[: len(targets[place]), : len(sources[place])]
        return attentions

    def _open(self, workers: int) -> Any:
        return self._library.Translator(
            str(self._folder),
            compute_type=self.compute_type,
            inter_threads=workers,
            intra_threads=1,
            max_queued_batches=-1,
        )

    def _tokens(self, ids: Ids) -> list[str]:
        return [self._vocabulary[id] for id in ids]

    def _tasks(self, sources: Sequence[Ids], demands: Sequence[Demand], limits: Sequence[int]) -> list[Task]:
        prefixes = [demand.prefix for demand in demands]
        scores: dict[int, float] = {}
        if places := [place for place, prefix in enumerate(prefixes) if prefix]:
            rows = self.score_ids([sources[place] for place in places], [prefixes[place] for place in places])
            scores = {place: sum(row[: len(prefixes[place])]) for place, row in zip(places, rows, strict=True)}
        return [
            Task(self._tokens(source), self._tokens(prefix), scores.get(place, 0.0), limit)
            for place, (source, prefix, limit) in enumerate(zip(sources, prefixes, limits, strict=True))
        ]

    def _sample(self, sources: Sequence[Ids], limits: Sequence[int], options: DecodeOptions) -> list[list[Output]]:
        """Samples of each source, likeliest first; they are the same whatever other sources there are. Equal sources
        are drawn one after another, so that theirs differ.
        """
        places: dict[tuple[int, ...], list[int]] = {}
        for place, source in enumerate(sources):
            places.setdefault(tuple(source), []).append(place)
        outputs: list[list[Output]] = [[] for _ in sources]
        for source, group in places.items():
            limit = limits[group[0]]
            for place, samples in zip(group, self._draw(source, len(group), limit, options), strict=True):
                outputs[place] = self._score_samples(source, samples, limit, options)
        return outputs

    def _draw(self, source: Ids, times: int, limit: int, options: DecodeOptions) -> list[list[tuple[int, ...]]]:
        """The samples of a source, drawn so many times. A worker takes up the seed when it first draws and never
        again, so that it takes a new one; to open it costs no more than to draw.
        """
        sampling = options.sampling
        assert sampling is not None
        translator = self._open(1)
        drawn: list[list[tuple[int, ...]]] = []
        with _SEEDING:
            self._library.set_random_seed(sampling.seed)
            for _ in range(times):
                (result,) = translator.translate_batch(
                    [self._tokens(source)],
                    beam_size=1,
                    num_hypotheses=1 if sampling.top_k == 1 else options.num_best,
                    sampling_topk=sampling.top_k,
                    sampling_topp=sampling.top_p,
                    sampling_temperature=sampling.temperature,
                    max_input_length=0,
                    max_decoding_length=limit + 1,
                    min_decoding_length=0,
                    return_end_token=True,
                )
                drawn.append([tuple(map(int, tokens)) for tokens in result.hypotheses])
        return drawn

    def _score_samples(
        self, source: Ids, samples: Sequence[tuple[int, ...]], limit: int, options: DecodeOptions
    ) -> list[Output]:
        """Scores are the model's own, whatever they were drawn from."""
        end = self._config.end_id
        finished = [ids[-1:] == (end,) for ids in samples]
        bodies = [ids[:-1] if done else ids[:limit] for ids, done in zip(samples, finished, strict=True)]
        rows = self.score_ids([source] * len(bodies), bodies)
        outputs = [
            make_output(ids, sum(row[: len(ids) + done]), done, options.search.length_penalty)
            for ids, done, row in zip(bodies, finished, rows, strict=True)
        ]
        return sorted(outputs, key=lambda output: -output.score)


def num_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
