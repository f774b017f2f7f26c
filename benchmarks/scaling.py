"""What the paper's own runs take: operations, memory and hours, by arithmetic, at a utilisation that was measured.

python benchmarks/scaling.py --utilisation 0.6 --peak-tflops 312 --gpus 8
"""

import argparse
from dataclasses import replace

import torch

from dragoman.config import preset
from dragoman.model.transformer import Transformer
from dragoman.train.plan import operations_per_target_token

RUNS = {"base": (100_000, 25_000), "big": (300_000, 25_000)}
"""Steps, and target tokens a step (section 5)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--utilisation", type=float, default=0.6, help="share of peak, as train_speed.py prints it")
    parser.add_argument("--peak-tflops", type=float, default=312.0, help="of one GPU, in the precision used")
    parser.add_argument("--gpus", type=int, default=8)
    options = parser.parse_args()
    print("| model | parameters | operations a target token | operations in all | memory a GPU | hours |")
    print("|-|-|-|-|-|-|")
    for name, (steps, tokens) in RUNS.items():
        config = replace(preset(name).model, vocab_size=37_000)
        with torch.device("meta"):
            parameters = Transformer(config).num_parameters()
        each = operations_per_target_token(config)
        total = each * steps * tokens
        layers = config.encoder_layers + config.decoder_layers
        kept = layers * (14 * config.d_model + 3 * config.d_ff) * 4 * tokens / options.gpus
        memory = 16 * parameters + kept
        hours = total / (options.gpus * options.peak_tflops * 1e12 * options.utilisation) / 3600
        print(f"| {name} | {parameters / 1e6:.1f} M | {each:.2e} | {total:.1e} | {memory / 1e9:.1f} GB | {hours:.1f} |")


if __name__ == "__main__":
    main()
