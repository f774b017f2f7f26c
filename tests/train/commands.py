"""Running the command line in processes of its own: what kill -9, signals and torchrun can only be tested on."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

TINY = [
    "--set", "model.d_model=32", "--set", "model.d_ff=64", "--set", "model.num_heads=2",
    "--set", "model.encoder_layers=1", "--set", "model.decoder_layers=1", "--set", "tokenizer.vocab_size=448",
    "--set", "train.batch_tokens=256", "--set", "train.warmup_steps=10", "--set", "data.valid_pairs=23",
]  # fmt: skip


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "DRAGOMAN_CACHE": str(cache), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}


def train_command(corpus: Path, output: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "dragoman", "train", str(corpus), "--output", str(output), *TINY, *more]


def run(command: list[str], cache: Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment(cache), capture_output=True, text=True, timeout=timeout, check=False)


def weights_hash(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
