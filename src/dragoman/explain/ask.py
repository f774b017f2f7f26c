"""From a request to a finished translation in ids: which sentence, which pieces, searched or given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from dragoman.errors import ConfigError, DataError, LengthError
from dragoman.explain.beam import make_tree
from dragoman.explain.pieces import source_side
from dragoman.explain.request import TraceRequest
from dragoman.explain.trace import BeamTree, Side
from dragoman.model.build import TranslationModel
from dragoman.recipe import SearchConfig
from dragoman.search.beam import search
from dragoman.search.history import History
from dragoman.search.searchable import Searchable
from dragoman.settings import nearest
from dragoman.text.languages import matching_direction
from dragoman.text.sentences import split
from dragoman.text.tokenizer import Tokenizer
from dragoman.translator.drafts import Scribe


@dataclass(frozen=True)
class Prepared:
    """A request made ready: one sentence, as the model reads it, and how to search."""

    request: TraceRequest
    sentences: tuple[str, ...]
    source: Side
    search: SearchConfig
    scribe: Scribe

    @property
    def source_ids(self) -> list[int]:
        return [piece.id for piece in self.source.pieces]


@dataclass(frozen=True)
class Written:
    """A translation in ids, its end included if it ended, and the tree of the search if there was one."""

    ids: tuple[int, ...]
    tree: BeamTree | None


def prepare(
    request: TraceRequest,
    tokenizer: Tokenizer,
    languages: Sequence[tuple[str, str]],
    own: SearchConfig,
    max_length: int,
) -> Prepared:
    """Fill in what the request leaves open, and check what it says; `own` is the model's search."""
    source, target = find_direction(request, languages)
    beam = own.beam if request.beam is None else request.beam
    alpha = own.length_penalty if request.length_penalty is None else request.length_penalty
    sentences = tuple(one.text for one in split(request.text, source) if one.is_sentence)
    if not sentences:
        raise DataError(f"there is nothing to translate in {request.text[:40]!r}, expected a sentence")
    if request.sentence >= len(sentences):
        raise ConfigError(f"no sentence has {request.sentence} before it: the text has {len(sentences)} in all")
    scribe = Scribe(tokenizer, target)
    side = source_side(tokenizer, sentences[request.sentence], scribe.head)
    if len(side.pieces) > max_length:
        raise LengthError(
            f"the sentence has {len(side.pieces)} pieces, the model takes at most {max_length}: explain a part of it"
        )
    _check_ids(request, tokenizer.target_side.vocab_size, max_length)
    filled = replace(request, source=source, target=target, beam=beam, length_penalty=alpha)
    return Prepared(filled, sentences, side, replace(own, beam=beam, length_penalty=alpha), scribe)


def _check_ids(request: TraceRequest, vocab_size: int, max_length: int) -> None:
    """Refuse ids that are no pieces, and more of them than the model takes."""
    for name in ("prefix", "target_ids"):
        ids: Sequence[int] = getattr(request, name) or ()
        if len(ids) > max_length:
            raise LengthError(f"{name} has {len(ids)} pieces, the model takes at most {max_length}")
        for id in ids:
            if not 0 <= id < vocab_size:
                raise ConfigError(f"{name} has {id}, the model's pieces are 0 to {vocab_size - 1}")


def find_direction(request: TraceRequest, languages: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The model's first direction that fits."""
    if found := matching_direction(languages, request.source, request.target):
        return found
    wanted = f"{request.source or 'any language'}-{request.target or 'any language'}"
    raise ConfigError(f"this model does not translate {wanted}{nearest(wanted, ['-'.join(one) for one in languages])}")


def write(model: TranslationModel, prepared: Prepared, tokenizer: Tokenizer) -> Written:
    """The translation: the one that is given, or the best that a search finds."""
    given = prepared.request.target_ids
    if given is not None:
        return Written(given, None)
    config, history = model.config, History()
    best = search(
        cast("Searchable[Any]", model),
        torch.tensor([prepared.source_ids]),
        prepared.search,
        padding_id=config.padding_id,
        begin_id=config.begin_id,
        end_id=config.end_id,
        prefix=[prepared.request.prefix],
        max_length=config.max_length - 1,
        history=history,
    )[0][0]
    ids = (*best.ids, config.end_id) if best.finished else best.ids
    return Written(ids, make_tree(history.nodes[0], prepared.search, tokenizer.target_side, ids))
