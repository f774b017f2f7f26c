"""Batches for the loop: (epoch, index) -> the same pairs in the same splitting, whoever asks and whenever.

Where pairs are drawn anew in each epoch (BPE-dropout, variation), their lengths are known only then, and batches that
were planned by the lengths on disk would be half padding. So a pool of consecutive batches is drawn at a time and its
pairs are dealt out again by the lengths that they have.
"""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.recipe import Recipe
from dragoman.text.batches import Batch, collate, plan_epoch, split
from dragoman.text.dataset import PairIds, PairText
from dragoman.text.merge_dropout import MergeDropout
from dragoman.text.mixture import Mixture
from dragoman.text.packing import regroup
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.variation import vary

POOL_BATCHES = 64


class PairFeed:
    """The training pairs as batches. One epoch's plan is kept; everything else is worked out when it is asked for."""

    def __init__(self, data: Mixture, tokenizer: Tokenizer, recipe: Recipe, num_ranks: int = 1) -> None:
        self.data = data
        self.tokenizer = tokenizer
        self.num_ranks = num_ranks
        self.batch_tokens = recipe.train.batch_tokens
        self.seed = recipe.train.seed
        self.variation = recipe.data.variation
        rate = recipe.tokenizer.dropout
        self.dropout = MergeDropout(tokenizer, rate, self.seed) if rate else None
        self._planned_epoch = -1
        self._planned: Sequence[NDArray[Any]] = ()
        self._drawn_pool = (-1, -1)
        self._drawn: list[list[PairIds]] = []

    def num_batches(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def parts(self, epoch: int, index: int, first: int, stride: int, count: int) -> list[Batch]:
        """The global batch cut into `count` parts: those numbered first, first + stride, ..."""
        pairs = self._pairs(epoch, index)
        cut = split(np.arange(len(pairs)), count)
        return [self._collate([pairs[place] for place in cut[part]], pairs[0]) for part in range(first, count, stride)]

    def _collate(self, pairs: Sequence[PairIds], stand_in: PairIds) -> Batch:
        """A part without pairs gets one that teaches nothing, so that every rank has a pass to take part in."""
        if pairs:
            return collate(pairs, self.tokenizer.padding_id, self.tokenizer.begin_id)
        batch = collate([stand_in], self.tokenizer.padding_id, self.tokenizer.begin_id)
        silent = np.full_like(batch.target_out_BT, self.tokenizer.padding_id)
        return replace(batch, target_out_BT=silent, num_source_tokens=0, num_target_tokens=0)

    def _pairs(self, epoch: int, index: int) -> Sequence[PairIds]:
        """The pairs of a batch, by target length."""
        if self.dropout is None and not self.variation:
            return [self.data.pair(int(place)) for place in self._plan(epoch)[index]]
        pool = index // POOL_BATCHES
        if self._drawn_pool != (epoch, pool):
            self._drawn = self._draw_pool(epoch, pool)
            self._drawn_pool = (epoch, pool)
        return self._drawn[index % POOL_BATCHES]

    def _draw_pool(self, epoch: int, pool: int) -> list[list[PairIds]]:
        batches = self._plan(epoch)[pool * POOL_BATCHES : (pool + 1) * POOL_BATCHES]
        pairs = [self._draw(epoch, int(index)) for batch in batches for index in batch]
        source, target = np.array([(len(source), len(target)) for source, target in pairs]).T
        rng = np.random.default_rng((self.seed, epoch, pool))
        groups = regroup(source, target, len(batches), rng)
        return [[pairs[place] for place in groups[number]] for number in rng.permutation(len(groups))]

    def _draw(self, epoch: int, index: int) -> PairIds:
        # Of a pair's own: which rank or part it falls to must not change how it is split.
        rng = np.random.default_rng(zlib.crc32(f"{self.seed} {epoch} {index}".encode()))

        def pieces(text: PairText) -> Sequence[list[int]]:
            if self.variation and rng.random() < self.variation:
                text = vary(text, rng)
            if self.dropout:
                return self.dropout.ids_batch(text, rng)
            return *self.tokenizer.ids_batch([text.source]), *self.tokenizer.target_side.ids_batch([text.target])

        return self.data.drawn_pair(index, pieces)

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


def to_tensors(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """A batch's three arrays as tensors."""
    arrays = (batch.source_BS, batch.target_in_BT, batch.target_out_BT)
    source_BS, target_in_BT, target_out_BT = (torch.from_numpy(array).to(device) for array in arrays)
    return source_BS, target_in_BT, target_out_BT
