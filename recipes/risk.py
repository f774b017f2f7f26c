"""Minimum risk training (Shen et al. 2016): what a model finds for a sentence is made likelier the nearer it is to what
people wrote, and less likely the farther.

    python recipes/risk.py --init models/mine --corpus pairs.tsv --output models/mine-risk
    dragoman average models/mine models/mine-risk --output models/mean

It goes on from a model that has learned from the same pairs, in one direction. The mean of both may be better than
either.

For each source sentence the model finds some translations, each with a cost, one less its sentence BLEU in the mean
over what people wrote. Among these the model's own probabilities, made to sum to one, give an expected cost, the risk:

    risk = sum_k p_k cost_k,   p = softmax(sharpness * log-probability)

It is minimised beside a share of the cross-entropy of what people wrote. Letters besides the project's: R translations
of all sources in a batch, each a row; N their real pieces.
"""

import argparse
import json
import random
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from sacrebleu.metrics import BLEU
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from dragoman import load
from dragoman.bundle import Bundle, find
from dragoman.bundle.card import model_card
from dragoman.bundle.weights import state_to_weights
from dragoman.cache import atomic_file
from dragoman.model.build import build_model
from dragoman.model.transformer import Transformer
from dragoman.recipe import CorpusConfig, TrainConfig
from dragoman.text.batches import collate
from dragoman.text.corpus import corpus_of, read_pairs
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.hardware import choose_precision
from dragoman.train.loss import CHUNK_CELLS
from dragoman.train.optimizer import make_optimizers, set_learning_rate

NUM_FOUND = 6
MOST_REFERENCES = 6
SHARPNESS = 0.5
WRITTEN = 0.04
"""The share of the cross-entropy, a piece, of what people wrote, beside the risk, a sentence."""
BATCH_CELLS = 12_288
WARMUP_STEPS = 10


@dataclass(frozen=True)
class Found:
    """A sentence, what was found for it with its costs, and what people wrote."""

    source: str
    translations: list[str]
    costs: list[float]
    written: list[str]


@dataclass(frozen=True)
class Rows:
    """A batch: sources, and all their translations, the last of each source by a person."""

    source_BS: Tensor
    target_in_RT: Tensor
    target_out_RT: Tensor
    source_R: Tensor
    cost_R: Tensor
    is_written_R: Tensor


def what_people_wrote(corpus: CorpusConfig) -> dict[str, list[str]]:
    """Each source sentence's translations in the corpus."""
    written: dict[str, list[str]] = {}
    for pair in read_pairs(corpus):
        written.setdefault(pair.source, []).append(pair.target)
    return written


def find_translations(model: str, corpus: CorpusConfig, kept: Path) -> list[Found]:
    """What the model finds for the corpus' sources; `kept`, and not found again."""
    if not kept.exists():
        people, bleu = what_people_wrote(corpus), BLEU(effective_order=True)
        stream = load(model).stream(people, alternatives=NUM_FOUND - 1, guards=False, split_sentences=False)
        lines = []
        for (source, written), best in zip(people.items(), stream, strict=True):
            found, references = list(dict.fromkeys((best.text, *best.alternatives))), written[:MOST_REFERENCES]
            scores = [[bleu.sentence_score(one, [reference]).score for reference in references] for one in found]
            lines.append(json.dumps([source, found, [1 - sum(of) / len(of) / 100 for of in scores], references]))
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(kept) as file:
            file.write_text("\n".join(lines), encoding="utf-8")
    return [Found(*json.loads(line)) for line in kept.read_text(encoding="utf-8").splitlines()]


def batches(found: Sequence[Found], tokenizer: Tokenizer, target: str, seed: int) -> Iterator[Rows]:
    """Sentences of much the same length together, in an order that is drawn; without end."""
    rng = random.Random(seed)
    tag = [tokenizer.language_id(target)] if tokenizer.languages else []
    sources = [tag + ids for ids in tokenizer.ids_batch(one.source for one in found)]
    longest = [max(map(len, tokenizer.target_side.ids_batch((*one.translations, *one.written)))) + 1 for one in found]
    while True:
        order = sorted(range(len(found)), key=lambda place: (longest[place], rng.random()))
        cut: list[list[int]] = [[]]
        for place in order:
            if (len(cut[-1]) + 1) * longest[place] * (NUM_FOUND + 1) > BATCH_CELLS:
                cut.append([])
            cut[-1].append(place)
        rng.shuffle(cut)
        for places in cut:
            yield rows([found[place] for place in places], [sources[place] for place in places], tokenizer, rng)


def rows(found: Sequence[Found], sources: Sequence[Sequence[int]], tokenizer: Tokenizer, rng: random.Random) -> Rows:
    """The batch of some sentences, each with one of what people wrote."""
    texts = [[*one.translations, rng.choice(one.written)] for one in found]
    end = [tokenizer.end_id]
    targets = [np.array(ids + end) for of in texts for ids in tokenizer.target_side.ids_batch(of)]
    source_R = [place for place, of in enumerate(texts) for _ in of]
    ends = [np.array([*ids, *end]) for ids in sources]
    by_row = [(ends[place], target) for place, target in zip(source_R, targets, strict=True)]
    batch = collate(by_row, tokenizer.padding_id, tokenizer.begin_id)
    first_B = np.unique(source_R, return_index=True)[1]
    return Rows(
        source_BS=torch.from_numpy(batch.source_BS[first_B]),
        target_in_RT=torch.from_numpy(batch.target_in_BT),
        target_out_RT=torch.from_numpy(batch.target_out_BT),
        source_R=torch.tensor(source_R),
        cost_R=torch.tensor([cost for one in found for cost in (*one.costs, 0.0)]),
        is_written_R=torch.tensor([last for one in found for last in (*(False for _ in one.translations), True)]),
    )


def log_probability(model: Transformer, batch: Rows) -> Tensor:
    """Of each row (R), summed over its pieces; logits are made a chunk at a time, and again for their gradient."""
    memory = model.encode(batch.source_BS).memory.select(batch.source_R)
    hidden_RTD = model.decoder(model.target_embedding(batch.target_in_RT), memory).hidden_BTD
    real_N = (batch.target_out_RT != model.config.padding_id).flatten().nonzero().squeeze(1)
    hidden_ND = hidden_RTD.flatten(0, 1).index_select(0, real_N)
    target_N = batch.target_out_RT.flatten().index_select(0, real_N)

    def of_chunk(rows_ND: Tensor, right_N: Tensor) -> Tensor:
        return -torch.nn.functional.cross_entropy(model.logits(rows_ND).float(), right_N, reduction="none")

    size = max(1, CHUNK_CELLS // model.config.vocab_size)
    each = [
        checkpoint(of_chunk, *chunk, use_reentrant=False)
        for chunk in zip(hidden_ND.split(size), target_N.split(size), strict=True)
    ]
    row_N = real_N // batch.target_out_RT.shape[1]
    return torch.zeros(len(batch.source_R)).index_add(0, row_N, torch.cat(each))


def risk(log_probability_R: Tensor, batch: Rows) -> tuple[Tensor, Tensor]:
    """The risk, and the cross-entropy of what people wrote: each summed over the sources."""
    found_R = ~batch.is_written_R
    score_R = (SHARPNESS * log_probability_R).masked_fill(~found_R, -torch.inf)
    num_sources = len(batch.source_BS)
    highest_B = torch.full((num_sources,), -torch.inf).scatter_reduce(0, batch.source_R, score_R.detach(), "amax")
    weight_R = (score_R - highest_B[batch.source_R]).exp()
    total_B = torch.zeros(num_sources).index_add(0, batch.source_R, weight_R)
    expected = (weight_R / total_B[batch.source_R] * batch.cost_R).sum()
    return expected, -log_probability_R[batch.is_written_R].sum()


def train(bundle: Bundle, found: Sequence[Found], arguments: argparse.Namespace) -> Transformer:
    """The bundle's model, trained on for some steps at a rate that falls to nothing."""
    torch.manual_seed(arguments.seed)
    model = build_model(replace(bundle.model_config, dropout=arguments.dropout))
    assert isinstance(model, Transformer)
    model.load_state_dict(bundle.load_model().state_dict())
    low = choose_precision(TrainConfig(precision=arguments.precision), torch.device("cpu"))
    precision = "bfloat16" if low == torch.bfloat16 else "float32"
    optimizers = make_optimizers(model, TrainConfig(embedding_rate=1.0, precision=precision))
    began, told = time.monotonic(), np.zeros(3)
    endless = batches(found, bundle.tokenizer, bundle.directions[0].partition("-")[2], arguments.seed)
    for step, batch in zip(range(arguments.steps), endless, strict=False):
        with torch.autocast("cpu", low, enabled=low != torch.float32):
            expected, written = risk(log_probability(model, batch), batch)
        num_sources = len(batch.source_BS)
        ((expected + WRITTEN * written) / num_sources).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = arguments.rate * min((step + 1) / WARMUP_STEPS, 1 - step / arguments.steps)
        set_learning_rate(optimizers, rate)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        told += (expected.item(), written.item(), num_sources)
        if (step + 1) % 10 == 0:
            seconds, (costs, nats, count) = time.monotonic() - began, told
            print(
                f"step {step + 1}/{arguments.steps}  risk {costs / count:.4f}  written {nats / count:.2f} nats a "
                f"sentence  {seconds:.0f} s",
                flush=True,
            )
            told[:] = 0
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--init", required=True, help="the model to go on from")
    parser.add_argument("--corpus", required=True, help="the pairs it has learned from: a TSV, or a,b for two files")
    parser.add_argument("--swap", action="store_true", help="take a TSV the other way round")
    parser.add_argument(
        "--found",
        type=Path,
        help="where what --init finds is kept, and read if it is there; beside --output if not given",
    )
    parser.add_argument("--output", type=Path, required=True, help="the folder of the new model")
    parser.add_argument("--steps", type=int, default=170)
    parser.add_argument("--rate", type=float, default=0.0003)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    arguments = parser.parse_args()
    bundle, began = Bundle.open(find(arguments.init)), time.monotonic()
    if len(bundle.directions) > 1:
        told = ", ".join(bundle.directions)
        parser.error(f"{arguments.init} translates {told}, and would forget all but one: give a model of one direction")
    corpus = replace(corpus_of(arguments.corpus), swap=arguments.swap)
    kept = arguments.found or arguments.output.with_name(f"{arguments.output.name}.found.jsonl")
    model = train(bundle, find_translations(arguments.init, corpus, kept), arguments)
    minutes = bundle.scorecard.get("minutes", 0.0) + (time.monotonic() - began) / 60
    command = shlex.join(("python", "recipes/risk.py", *sys.argv[1:]))
    scorecard = {
        **{name: told for name, told in bundle.scorecard.items() if name in ("licence", "limits", "data")},
        "command": "\n".join((*bundle.scorecard.get("command", "").splitlines(), command)),
        "minutes": round(minutes, 1),
    }
    Bundle.write(
        arguments.output,
        model_config=bundle.model_config,
        search=bundle.search,
        tokenizer=bundle.tokenizer,
        weights=state_to_weights(model),
        directions=bundle.directions,
        known_words=bundle.known_words,
        card=model_card(
            directions=bundle.directions,
            model_config=bundle.model_config,
            num_parameters=bundle.num_parameters,
            scorecard=scorecard,
        ),
        scorecard=scorecard,
    )


if __name__ == "__main__":
    main()
