"""From CTranslate2's results to the reference's: the same steps, ranked by the paper's length penalty.

CTranslate2's beam search takes the steps that ours takes. Asked for no length penalty, it stops when a whole beam is
finished and the likeliest hypothesis of some step was among them, where ours may stop earlier because nothing open can
win. (With a penalty it would stop at any whole beam, and give up a far better open hypothesis for poor short ones.)
What differs is put right here:

- It normalises by length^alpha, the paper by ((5 + length) / 6)^alpha. So it is asked for all of a beam's finished
  hypotheses and their plain log-probabilities, and they are ranked by the paper's formula, the default of both engines:
  it is the one that `length_penalty` is meant for.
- At the maximum length it counts unfinished hypotheses as finished, and keeps no more than a beam of both. The few
  sentences that come so far are searched again, for all that there is; and if nothing at all finished, once more up to
  the maximum length without the end.
- One maximum length holds for a whole batch. What is too long for its own source is searched again likewise.
- Pieces of a forced prefix count nothing in its scores. They are scored apart and added.

Two differences remain, both rare. Of more than a beam of finished hypotheses both keep the likeliest; where ours stops
earlier, CTranslate2 may still find likelier ones that push out what ranked first by length. And what is forbidden
(padding, begin, n-grams that may not repeat) has its share of the probability spread over the rest, where ours keeps
it: of no weight in a trained model. With a forced prefix and a beam the two may differ too; greedy is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.engine.engine import DecodeOptions, Output, make_output

_IMPOSSIBLE = -1e8  # the places of a beam that a prefix leaves empty have scores of about -1e10


@dataclass(frozen=True)
class Task:
    """A source to translate, a prefix to begin with and its log-probability, and the most pieces, end not counted."""

    source: list[str]
    prefix: list[str]
    prefix_log_probability: float
    limit: int


@dataclass(frozen=True)
class Found:
    """The hypotheses that CTranslate2 returned for a task: those to keep, and whether it returned others too."""

    kept: list[Output]
    has_others: bool


Start = Callable[[Sequence[Task], int, int], list[Any]]
"""Begin to search tasks for at most so many pieces, end counted, with so much patience: a handle for each."""


@dataclass(frozen=True)
class Search:
    """A search under way; `handles` are the first pass."""

    tasks: Sequence[Task]
    handles: Sequence[Any]
    options: DecodeOptions
    end: str
    start: Start

    def results(self) -> list[list[Output]]:
        found = [self._read(task, handle) for task, handle in zip(self.tasks, self.handles, strict=True)]
        again = [place for place, one in enumerate(found) if one.has_others]
        if self.options.search.beam > 1:
            # With patience 2 there is room for both the finished and the unfinished.
            self._repeat(again, found, extra_steps=1, patience=2)
        self._repeat([place for place in again if not found[place].kept], found, extra_steps=0, patience=1)
        return [sorted(one.kept, key=lambda output: -output.score)[: self.options.num_best] for one in found]

    def _repeat(self, places: Sequence[int], found: list[Found], extra_steps: int, patience: int) -> None:
        """Search these tasks again, each with its own maximum length, and put what comes out into `found`."""
        by_limit: dict[int, list[int]] = {}
        for place in places:
            by_limit.setdefault(self.tasks[place].limit, []).append(place)
        handles = {
            place: handle
            for limit, group in by_limit.items()
            for place, handle in zip(
                group, self.start([self.tasks[place] for place in group], limit + extra_steps, patience), strict=True
            )
        }
        for place, handle in handles.items():
            found[place] = self._read(self.tasks[place], handle, unfinished=extra_steps == 0)

    def _read(self, task: Task, handle: Any, unfinished: bool = False) -> Found:
        """The finished hypotheses that are short enough, or all of them if the unfinished are wanted too."""
        result = handle.result()
        alpha = self.options.search.length_penalty
        kept, has_others = [], False
        for tokens, log_probability in zip(result.hypotheses, result.scores, strict=True):
            if log_probability < _IMPOSSIBLE:
                continue
            finished = tokens[-1] == self.end
            ids = tokens[:-1] if finished else tokens
            if len(ids) <= task.limit and (finished or unfinished):
                total = log_probability + task.prefix_log_probability
                kept.append(make_output(tuple(map(int, ids)), total, finished, alpha))
            else:
                has_others = True
        return Found(kept, has_others)


def translate_options(options: DecodeOptions, max_steps: int, patience: int) -> dict[str, Any]:
    """What `ctranslate2.Translator.translate_batch` is told, so that the above holds."""
    search = options.search
    return {
        "beam_size": search.beam,
        "patience": patience,
        "num_hypotheses": search.beam * patience,
        "length_penalty": 0.0,
        "no_repeat_ngram_size": search.no_repeat_ngram,
        "max_input_length": 0,  # its own default cuts long sources in silence
        "max_decoding_length": max(1, max_steps),
        "min_decoding_length": 0,
        "return_scores": True,
        "return_end_token": True,
    }
