"""Batches for the loop: (epoch, index) -> the same pairs in the same splitting, whoever asks and whenever."""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.recipe import Recipe
from dragoman.text.batches import Batch, collate, plan_epoch, split
from dragoman.text.merge_dropout import MergeDropout
from dragoman.text.mixture import Mixture
from dragoman.text.tokenizer import Tokenizer


class PairFeed:
    """The training pairs as batches. One epoch's plan is kept; everything else is worked out when it is asked for."""

    def __init__(self, data: Mixture, tokenizer: Tokenizer, recipe: Recipe, num_ranks: int = 1) -> None:
        self.data = data
        self.tokenizer = tokenizer
        self.num_ranks = num_ranks
        self.batch_tokens = recipe.train.batch_tokens
        self.seed = recipe.train.seed
        rate = recipe.tokenizer.dropout
        self.dropout = MergeDropout(tokenizer, rate, self.seed) if rate else None
        self._planned_epoch = -1
        self._planned: Sequence[NDArray[Any]] = ()

    def num_batches(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def parts(self, epoch: int, index: int, first: int, stride: int, count: int) -> list[Batch]:
        """The global batch cut into `count` parts: those numbered first, first + stride, ..."""
        indices = self._plan(epoch)[index]
        cut = split(indices, count)
        return [self._collate(epoch, cut[number], int(indices[0])) for number in range(first, count, stride)]

    def _collate(self, epoch: int, indices: NDArray[Any], stand_in: int) -> Batch:
        """A part without pairs gets one that teaches nothing, so that every rank has a pass to take part in."""
        pairs = [self._pair(epoch, int(index)) for index in indices]
        if pairs:
            return collate(pairs, self.tokenizer.padding_id, self.tokenizer.begin_id)
        batch = collate([self.data.pair(stand_in)], self.tokenizer.padding_id, self.tokenizer.begin_id)
        silent = np.full_like(batch.target_out_BT, self.tokenizer.padding_id)
        return replace(batch, target_out_BT=silent, num_source_tokens=0, num_target_tokens=0)

    def _pair(self, epoch: int, index: int) -> Any:
        if self.dropout is None:
            return self.data.pair(index)
        # Of a pair's own: which rank or part it falls to must not change how it is split.
        rng = np.random.default_rng(zlib.crc32(f"{self.seed} {epoch} {index}".encode()))
        return self.data.pair_with_dropout(index, self.dropout, rng)

    def _plan(self, epoch: int) -> Sequence[NDArray[Any]]:
        if epoch != self._planned_epoch:
            self._planned = plan_epoch(
                self.data.source_lengths,
                self.data.target_lengths,
                batch_tokens=self.batch_tokens,
                seed=self.seed,
                epoch=epoch,
                selection=self.data.epoch(self.seed, epoch),
                world_size=self.num_ranks,
            )
            self._planned_epoch = epoch
        return self._planned
