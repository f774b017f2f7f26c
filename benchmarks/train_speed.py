"""Training, forward + backward + optimiser step: target tokens per second, and the share of this machine's peak.

Ours is the step of `dragoman train`, with AdamW. Beside it, on the same batches in turn, each in a process of its own:
a plain loop around `torch.nn.Transformer`, and one around transformers' MarianMTModel, both with Adam and clipping. The
peak is that of a large float32 matrix product, measured in the same run.

    python benchmarks/train_speed.py --shape small base
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dragoman.config import preset
from dragoman.model.transformer import Transformer
from dragoman.recipe import CorpusConfig, TokenizerConfig, TrainConfig
from dragoman.text.batches import collate, plan_epoch
from dragoman.text.corpus import read_pairs
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.feed import to_tensors
from dragoman.train.hardware import reuse_memory
from dragoman.train.objective import Objective
from dragoman.train.optimizer import make_optimizers, set_learning_rate
from dragoman.train.plan import operations_per_target_token
from rivals import Marian, TorchTransformer

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi30k"
CONTENDERS = ("dragoman", "torch.nn.Transformer", "MarianMTModel")
Ids = tuple[Tensor, ...]


def read_batches(source: str, target: str, vocab_size: int, batch_tokens: int, count: int) -> list[Ids]:
    """Real sentences in length-bucketed batches."""
    pairs = list(read_pairs(CorpusConfig(path=source, target_path=target)))
    texts = (text for pair in pairs for text in (pair.source, pair.target))
    tokenizer = Tokenizer.learn(texts, TokenizerConfig(vocab_size=vocab_size))
    ids = [
        [[*row, tokenizer.end_id] for row in tokenizer.ids_batch(side)]
        for side in ([pair.source for pair in pairs], [pair.target for pair in pairs])
    ]
    sources, targets = ([np.array(row) for row in side] for side in ids)
    lengths = [np.array([len(row) for row in side]) for side in (sources, targets)]
    plan = plan_epoch(*lengths, batch_tokens=batch_tokens, seed=1, epoch=0)
    batches = [collate([(sources[i], targets[i]) for i in indices], 0, 1) for indices in plan[:count]]
    return [to_tensors(batch, torch.device("cpu")) for batch in batches]


def our_step(model: Transformer) -> Callable[[Ids], None]:
    # As the others: the default, Muon, is slower a step and takes fewer of them (docs/log.md).
    config = TrainConfig(optimizer="adamw")
    objective = Objective(model, 0, config.label_smoothing)
    optimizers = make_optimizers(model, config)
    set_learning_rate(optimizers, 1e-4)
    parameters = list(model.parameters())

    def step(batch: Ids) -> None:
        num_tokens = int((batch[2] != 0).sum())
        (objective(*batch).smoothed / num_tokens).backward()
        nn.utils.clip_grad_norm_(parameters, config.clip_norm, foreach=True)
        for optimizer in optimizers:
            optimizer.step()
        for parameter in parameters:
            parameter.grad = None

    return step


def plain_step(model: nn.Module) -> Callable[[Ids], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: Ids) -> None:
        optimizer.zero_grad()
        model(*batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def peak_operations_per_second(size: int = 1536, rounds: int = 8) -> float:
    """The best of several large products."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = math.inf
    for _ in range(rounds):
        started = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best


class Contender:
    """A trainer in a process of its own, as its users run it; it works only when told to."""

    def __init__(self, name: str, shape: str, vocab_size: int, batches: Path) -> None:
        command = [sys.executable, __file__, "--contender", name, "--shape", shape, "--pieces", str(vocab_size)]
        self.process = subprocess.Popen(
            [*command, "--batches-file", str(batches)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.run()

    def run(self) -> float:
        """Seconds for all batches."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def work(name: str, shape: str, vocab_size: int, path: Path) -> None:
    """A contender's side: train on the batches at every line that comes in, and print the seconds."""
    config = replace(preset(shape).model, vocab_size=vocab_size)
    if name == "dragoman":
        reuse_memory()
        step = our_step(Transformer(config).train())
    else:
        step = plain_step({"torch.nn.Transformer": TorchTransformer, "MarianMTModel": Marian}[name](config).train())
    tensors = load_file(path)
    batches = [tuple(tensors[f"{i}.{part}"] for part in range(3)) for i in range(len(tensors) // 3)]
    step(batches[0])
    for _ in sys.stdin:
        started = time.perf_counter()
        for batch in batches:
            step(batch)
        print(time.perf_counter() - started, flush=True)


def measure(shape: str, batches: list[Ids], rounds: int, vocab_size: int) -> dict[str, Any]:
    config = replace(preset(shape).model, vocab_size=vocab_size)
    tokens = sum(int((target_out != 0).sum()) for _, _, target_out in batches)
    source_tokens = sum(int((source != 0).sum()) for source, _, _ in batches)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "batches.safetensors"
        save_file({f"{i}.{part}": ids for i, batch in enumerate(batches) for part, ids in enumerate(batch)}, path)
        contenders = {name: Contender(name, shape, vocab_size, path) for name in CONTENDERS}
        seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        peaks = []
        for _ in range(rounds):
            peaks.append(peak_operations_per_second())
            for name, contender in contenders.items():
                seconds[name].append(contender.run())
        for contender in contenders.values():
            contender.close()
    operations, peak = operations_per_target_token(config, source_tokens / tokens), max(peaks)
    speeds = {name: tokens / min(times) for name, times in seconds.items()}
    return {
        "shape": shape,
        "peak_gflops": peak / 1e9,
        "target_tokens_per_second": speeds,
        "share_of_peak": {name: speed * operations / peak for name, speed in speeds.items()},
        "ratio": {
            name: statistics.median(b / a for a, b in zip(seconds["dragoman"], times, strict=True))
            for name, times in seconds.items()
            if name != "dragoman"
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", default=["small", "base"])
    parser.add_argument("--source", default=str(DATA / "train.en.gz"), help="default: Multi30k English")
    parser.add_argument("--target", default=str(DATA / "train.de.gz"), help="default: Multi30k German")
    parser.add_argument("--pieces", type=int, default=8000)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    parser.add_argument("--batches-file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        work(options.contender, options.shape[0], options.pieces, options.batches_file)
        return
    batches = read_batches(options.source, options.target, options.pieces, options.batch_tokens, options.batches)
    for shape in options.shape:
        result = measure(shape, batches, options.rounds, options.pieces)
        if options.json:
            print(json.dumps(result), flush=True)
            continue
        print(f"{shape}: peak {result['peak_gflops']:.0f} GFLOP/s", flush=True)
        for name, speed in result["target_tokens_per_second"].items():
            ratio = result["ratio"].get(name)
            beside = f", dragoman is {ratio:.2f} times as fast" if ratio else ""
            print(
                f"  {name}: {speed:,.0f} target tokens/s, {result['share_of_peak'][name]:.0%} of peak{beside}",
                flush=True,
            )


if __name__ == "__main__":
    main()
