"""`Explainer`: a model, its pieces, and everything that may be asked of them. Nothing is kept between calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dragoman.bundle import Bundle, find
from dragoman.errors import ConfigError
from dragoman.explain.ask import Prepared, Written, prepare, write
from dragoman.explain.checkpoints import kept_checkpoints
from dragoman.explain.derived import derive, heads_of, on_demand, shapes_on_demand
from dragoman.explain.effects import Effects
from dragoman.explain.forced import Forced, force
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
from dragoman.explain.words import aligned_words, aligning_layer
from dragoman.model.build import TranslationModel
from dragoman.search.length import length_penalty
from dragoman.settings import nearest
from dragoman.translator.alignment import links_of


def open_explainer(path_or_name: Path | str) -> Explainer:
    """The explainer of a model folder, or of a model in the box by name; the model is loaded once."""
    return Explainer(Bundle.open(find(path_or_name)))


@dataclass(frozen=True)
class Pass:
    """A request, the translation that it led to, and the pass over it; `model` has the heads off that should be."""

    model: TranslationModel
    prepared: Prepared
    written: Written
    forced: Forced


class Explainer:
    """Explains translations of one model. Threads may share it."""

    def __init__(self, bundle: Bundle, model: TranslationModel | None = None) -> None:
        """`model` stands in for the bundle's own weights."""
        self.bundle = bundle
        self.tokenizer = bundle.tokenizer
        self.model: TranslationModel = (model or bundle.load_model()).eval()

    def trace(self, text: str, **options: Any) -> Trace:
        """What the translation of a text was made of; `TraceRequest` explains the options."""
        return self.explain(TraceRequest(text=text, **options))

    def explain(self, request: TraceRequest) -> Trace:
        """`trace` of a request as it is."""
        one = self._run(request)
        prepared, ids = one.prepared, one.written.ids
        tokenizer, module = self.tokenizer.target_side, one.model
        recorded = {**one.forced.tensors, **derive(module, one.forced.tensors)}
        tensors = as_arrays(recorded)
        tensors |= rollout(tensors)
        target = target_side(tokenizer, ids)
        layer = aligning_layer(tensors)
        return Trace(
            request=replace(prepared.request, target_ids=ids),
            model=self.facts(prepared.request),
            sentences=prepared.sentences,
            source=prepared.source,
            target=target,
            begin=lone_piece(tokenizer, one.model.config.begin_id),
            translation=self._outcome(one),
            steps=make_steps(one.model, one.forced, ids, tokenizer, prepared.request.top),
            alignment=links_of(aligned_words(tensors, layer, prepared.source, target)) if layer >= 0 else (),
            alignment_layer=layer,
            heads=look_at_heads(tensors, _heads(module, tensors), prepared.source),
            beam=one.written.tree,
            tensors=tensors,
            on_demand=shapes_on_demand(module, recorded),
        )

    def tensors(self, request: TraceRequest, names: Sequence[str]) -> Arrays:
        """Some tensors of a trace, those on demand among them."""
        one = self._run(request)
        module = one.model
        recorded = {**one.forced.tensors, **derive(module, one.forced.tensors)}
        asked = on_demand(module, recorded)
        arrays = as_arrays({name: tensor for name, tensor in recorded.items() if name in names})
        arrays |= as_arrays({name: make() for name, make in asked.items() if name in names})
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
        return leave_words_out(one.model, one.prepared, one.written.ids, self.tokenizer)

    def effects(self, request: TraceRequest) -> Effects:
        """Each head switched off in turn: what the translation loses."""
        one = self._run(request)
        return measure_effects(one.model, one.prepared.source_ids, one.written.ids)

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
        model = switched_off(self.model, request.off)
        written = write(model, prepared, self.tokenizer)
        return Pass(model, prepared, written, force(model, prepared.source_ids, written.ids))

    def _outcome(self, one: Pass) -> Outcome:
        ids, alpha = one.written.ids, one.prepared.search.length_penalty
        total = sum(one.forced.log_probs_TV[place, id].item() for place, id in enumerate(ids))
        return Outcome(
            text=one.prepared.scribe.decode(ids),
            score=total / length_penalty(len(ids), alpha),
            log_probability=total,
            confidence=min(1.0, math.exp(total / len(ids))),
            finished=ids[-1] == one.model.config.end_id,
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
