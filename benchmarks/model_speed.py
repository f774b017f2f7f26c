"""Forward + backward, target tokens per second: our Transformer against `torch.nn.Transformer` of the same shape.

Both see the same length-bucketed batches of made-up ids, in turn, in one process; the ratio is what counts.

    python benchmarks/model_speed.py --shape small base
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.config import preset
from dragoman.model.transformer import Transformer
from dragoman.train.objective import Objective
from rivals import TorchTransformer

Ids = tuple[Tensor, Tensor, Tensor]


def make_batches(count: int, batch_tokens: int, vocab_size: int, seed: int = 7) -> list[Ids]:
    """Bucketed batches whose lengths are spread like image captions': about 14 pieces, some up to 40."""
    rng = np.random.default_rng(seed)
    batches = []
    for _ in range(count):
        target_length = int(np.clip(rng.lognormal(2.6, 0.35), 4, 40))
        rows = max(1, batch_tokens // target_length)
        source_lengths = np.clip(rng.normal(target_length, 1, rows).round(), 2, 60).astype(int)
        target_lengths = np.clip(target_length - rng.integers(0, 2, rows), 2, None)
        source = torch.zeros(rows, int(source_lengths.max()), dtype=torch.long)
        target = torch.zeros(rows, int(target_lengths.max()) + 1, dtype=torch.long)
        for row, (s, t) in enumerate(zip(source_lengths, target_lengths, strict=True)):
            source[row, :s] = torch.from_numpy(rng.integers(3, vocab_size, s))
            target[row, : t + 1] = torch.from_numpy(rng.integers(3, vocab_size, t + 1))
        batches.append((source, target[:, :-1].clone(), target[:, 1:].clone()))
    return batches


def time_pass(run: Callable[[Ids], Tensor], model: nn.Module, batches: list[Ids]) -> float:
    """Seconds for one forward and backward pass over the batches."""
    started = time.perf_counter()
    for batch in batches:
        run(batch).backward()
        for parameter in model.parameters():
            parameter.grad = None
    return time.perf_counter() - started


def measure(shape: str, batch_tokens: int, num_batches: int, rounds: int) -> dict[str, float | str]:
    config = replace(preset(shape).model, vocab_size=8000)
    batches = make_batches(num_batches, batch_tokens, config.vocab_size)
    tokens = sum(int((target_out != 0).sum()) for _, _, target_out in batches)
    ours = Objective(Transformer(config), 0, 0.1)
    theirs = TorchTransformer(config)
    runs = {
        "dragoman": (lambda batch: ours(*batch).smoothed / tokens, ours),
        "torch.nn.Transformer": (lambda batch: theirs(*batch), theirs),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run, model in runs.values():
        time_pass(run, model, batches[:1])
    for _ in range(rounds):
        for name, (run, model) in runs.items():
            seconds[name].append(time_pass(run, model, batches))
    ratios = [b / a for a, b in zip(seconds["dragoman"], seconds["torch.nn.Transformer"], strict=True)]
    speeds = {name: tokens / min(times) for name, times in seconds.items()}
    return {"shape": shape, **speeds, "ratio": statistics.median(ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", default=["small", "base"], help="presets to measure")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for shape in options.shape:
        result = measure(shape, options.batch_tokens, options.batches, options.rounds)
        if options.json:
            print(json.dumps(result), flush=True)
        else:
            ours, theirs = result["dragoman"], result["torch.nn.Transformer"]
            print(f"{shape}: dragoman {ours:,.0f} target tokens/s, torch.nn.Transformer {theirs:,.0f}, "
                  f"ratio {result['ratio']:.2f} (median of {options.rounds} rounds)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
