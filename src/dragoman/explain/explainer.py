"""`Explainer`: a model, its pieces, and everything that may be asked of them."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dragoman.bundle import Bundle, find
from dragoman.engine.alignment import alignment_layer
from dragoman.errors import ConfigError
from dragoman.explain.ask import Prepared, Written, prepare, write
from dragoman.explain.checkpoints import kept_checkpoints
from dragoman.explain.derived import derive, heads_of, on_demand, shapes_on_demand
from dragoman.explain.effects import Effects
from dragoman.explain.forced import Forced, Tensors, force
from dragoman.explain.heads import look_at_heads
from dragoman.explain.importance import Importance, leave_words_out
from dragoman.explain.pieces import lone_piece, target_side
from dragoman.explain.request import HeadName, TraceRequest
from dragoman.explain.rollout import rollout
from dragoman.explain.shuffle import Shuffled, shuffle_pieces
from dragoman.explain.steps import make_steps
from dragoman.explain.switches import measure_effects, switched_off
from dragoman.explain.trace import Arrays, ModelFacts, Outcome, Trace
from dragoman.explain.what_if import Comparison, Version, compare
from dragoman.explain.words import aligned_words
from dragoman.model.build import TranslationModel
from dragoman.search.length import length_penalty
from dragoman.settings import nearest
from dragoman.translator.alignment import links_of


def open_explainer(path_or_name: Path | str) -> Explainer:
    """The explainer of a model folder, or of a model in the box by name; the model is loaded once."""
    return Explainer(Bundle.open(find(path_or_name)))


@dataclass(frozen=True)
class Seen:
    """A pass over a translation, by a model that has the heads off that should be."""

    model: TranslationModel
    forced: Forced

    @functools.cached_property
    def tensors(self) -> Tensors:
        """What was written down, and what follows from it."""
        return {**self.forced.tensors, **derive(self.model, self.forced.tensors)}


@dataclass(frozen=True)
class Pass:
    """A request, the translation that it led to, and the pass over it."""

    prepared: Prepared
    written: Written
    seen: Seen


class Explainer:
    """Explains translations of one model. Threads may share it, if it keeps nothing."""

    def __init__(self, bundle: Bundle, model: TranslationModel | None = None, keep: int = 0) -> None:
        """`model` stands in for the bundle's own weights.

        The last `keep` passes are kept, for who asks for a translation first and then for its tensors bit by bit. The
        arrays that come out share their numbers with what is kept, and must stay as they are.
        """
        self.bundle = bundle
        self.tokenizer = bundle.tokenizer
        self.model: TranslationModel = (model or bundle.load_model()).eval()
        self._keep = keep
        self._kept: OrderedDict[TraceRequest, Seen] = OrderedDict()

    def trace(self, text: str, **options: Any) -> Trace:
        """What the translation of a text was made of; `TraceRequest` explains the options."""
        return self.explain(TraceRequest(text=text, **options))

    def explain(self, request: TraceRequest) -> Trace:
        """`trace` of a request as it is."""
        one = self._run(request)
        prepared, ids = one.prepared, one.written.ids
        tokenizer, module = self.tokenizer.target_side, one.seen.model
        tensors = as_arrays(one.seen.tensors)
        tensors |= rollout(tensors)
        target = target_side(tokenizer, ids)
        layer = alignment_layer(module.config) if "decoder.0.cross_attention.weights" in tensors else -1
        return Trace(
            request=replace(prepared.request, target_ids=ids),
            model=self.facts(prepared.request),
            sentences=prepared.sentences,
            source=prepared.source,
            target=target,
            begin=lone_piece(tokenizer, module.config.begin_id),
            translation=self._outcome(one),
            steps=make_steps(module, one.seen.forced, ids, tokenizer, prepared.request.top),
            alignment=links_of(aligned_words(tensors, layer, prepared.source, target)) if layer >= 0 else (),
            alignment_layer=layer,
            heads=look_at_heads(tensors, _heads(module, tensors), prepared.source),
            beam=one.written.tree,
            tensors=tensors,
            on_demand=shapes_on_demand(module, one.seen.tensors),
        )

    def tensors(self, request: TraceRequest, names: Sequence[str]) -> Arrays:
        """Some tensors of a trace, those on demand among them."""
        seen = self._run(request).seen
        recorded, asked = seen.tensors, on_demand(seen.model, seen.tensors)
        arrays = as_arrays({name: tensor for name, tensor in recorded.items() if name in names})
        arrays |= as_arrays({name: later.make() for name, later in asked.items() if name in names})
        if any(name.startswith("rollout.") for name in names):
            rolled = rollout(as_arrays(recorded))
            arrays |= {name: rolled[name] for name in names if name in rolled}
        for name in names:
            if name not in arrays:
                raise ConfigError(f"there is no tensor {name!r}{nearest(name, [*recorded, *asked][:400])}")
        return arrays

    def importance(self, request: TraceRequest) -> Importance:
        """Each source word left out in turn: the change in every target word's probability."""
        one = self._run(request)
        return leave_words_out(one.seen.model, one.prepared, one.written.ids, self.tokenizer)

    def effects(self, request: TraceRequest) -> Effects:
        """Each head switched off in turn: what the translation loses."""
        one = self._run(request)
        return measure_effects(one.seen.model, one.prepared.source_ids, one.written.ids)

    def compare(self, request: TraceRequest, changed: TraceRequest) -> Comparison:
        """Two translations side by side."""
        return compare(self.version(request), self.version(changed))

    def version(self, request: TraceRequest) -> Version:
        """The translation alone."""
        one = self._run(request)
        outcome = self._outcome(one)
        return Version(outcome.text, outcome.score, outcome.log_probability, outcome.confidence, one.written.ids)

    def shuffle(self, request: TraceRequest, seed: int = 1) -> Shuffled:
        """The source's pieces in another order, with positions and without."""
        return shuffle_pieces(self.model, self.prepare(request).source_ids, seed)

    def page(self, request: TraceRequest) -> str:
        """The page in one HTML file that needs no network, with the trace inside and all that may be asked of it."""
        from dragoman.explain.answers import whole_page  # which makes explainers itself, of checkpoints

        return whole_page(self, request)

    def facts(self, request: TraceRequest) -> ModelFacts:
        """The model's name and shape; the request's languages."""
        config = self.model.config
        paper = config.architecture == "transformer"
        words = {
            name: getattr(config, name) if paper else "" for name in ("norm", "norm_order", "activation", "position")
        }
        return ModelFacts(
            name=self.bundle.path.resolve().name,
            architecture=config.architecture,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            heads=config.num_heads,
            d_model=config.d_model,
            d_k=config.d_k or 0,
            d_v=config.d_v or 0,
            d_ff=config.d_ff,
            source=request.source or "",
            target=request.target or "",
            position_base=config.position_base if paper else 0.0,
            vocab_size=config.vocab_size,
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            checkpoints=tuple(kept_checkpoints(self.bundle.path)),
            **words,
        )

    def prepare(self, request: TraceRequest) -> Prepared:
        """The request made ready, or refused: which sentence, which pieces."""
        bundle = self.bundle
        return prepare(request, self.tokenizer, bundle.languages, bundle.search, bundle.model_config.max_length)

    def _run(self, request: TraceRequest) -> Pass:
        prepared = self.prepare(request)
        if (seen := self._kept.get(prepared.request)) is not None:
            self._kept.move_to_end(prepared.request)
            return Pass(prepared, write(seen.model, prepared, self.tokenizer), seen)
        model = switched_off(self.model, request.off)
        written = write(model, prepared, self.tokenizer)
        seen = Seen(model, force(model, prepared.source_ids, written.ids))
        if self._keep:
            # Under the request that a trace answers with: it names the translation, so nothing is searched again.
            self._kept[replace(prepared.request, target_ids=written.ids)] = seen
            while len(self._kept) > self._keep:
                self._kept.popitem(last=False)
        return Pass(prepared, written, seen)

    def _outcome(self, one: Pass) -> Outcome:
        ids, alpha = one.written.ids, one.prepared.search.length_penalty
        total = sum(one.seen.forced.log_probs_of(ids))
        return Outcome(
            text=one.prepared.scribe.decode(ids),
            score=total / length_penalty(len(ids), alpha),
            log_probability=total,
            confidence=min(1.0, math.exp(total / len(ids))),
            finished=ids[-1] == self.model.config.end_id,
        )


def as_arrays(tensors: dict[str, Tensor]) -> Arrays:
    """Tensors as arrays in float32."""
    return {name: tensor.float().numpy() for name, tensor in tensors.items()}


def _heads(module: nn.Module, tensors: Arrays) -> list[HeadName]:
    """The model's heads; those of a model that is no Transformer are counted off what was written down."""
    if own := list(heads_of(module)):
        return own
    found = []
    for name, array in tensors.items():
        if name.endswith(".cross_attention.weights"):
            layer = int(name.split(".")[1])
            found += [HeadName("decoder", layer, "cross_attention", head) for head in range(len(array))]
    return found
