"""Pieces, padding, speed and memory of the way from text to batches.

    python benchmarks/data.py                            ten million generated lines, then the corpora in ../shared/data
    python benchmarks/data.py --corpus pairs.tsv.gz      another corpus
    python benchmarks/data.py --lines 1000000            fewer lines; 0 leaves this part out

For each corpus: the vocabulary size that is chosen, pieces per word, encoding speed against the plain `tokenizers`
batch call on the same text in the same run, and the share of padding in batches of 4,096 target pieces. For the
generated lines: the anonymous memory of this process (RssAnon: what is not a view of a file) while pairs are encoded
and while an epoch of batches is read, which must not grow with the lines but for the plan's four bytes a pair.
"""

import argparse
import gzip
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers

from dragoman.recipe import TokenizerConfig
from dragoman.text.batches import collate, plan_epoch, planned_padding_share
from dragoman.text.dataset import Dataset, build, num_processors
from dragoman.text.tokenizer import Tokenizer

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
BATCH_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Pair:
    source: str
    target: str


def open_text(path: Path) -> Iterator[str]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            yield line.decode().rstrip("\n")


def default_corpora() -> dict[str, list[Pair]]:
    corpora = {}
    if (tatoeba := SHARED / "tatoeba-fr-en" / "train.tsv.gz").exists():
        corpora["tatoeba-fr-en"] = read_tsv(tatoeba)
    if (multi30k := SHARED / "multi30k").exists():
        sides = (open_text(multi30k / f"train.{language}.gz") for language in ("en", "de"))
        corpora["multi30k-en-de"] = [Pair(source, target) for source, target in zip(*sides, strict=True)]
    return corpora


def read_tsv(path: Path) -> list[Pair]:
    return [Pair(*line.split("\t")[:2]) for line in open_text(path)]


def measure_corpus(name: str, pairs: list[Pair], folder: Path) -> None:
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    start = time.perf_counter()
    tokenizer = Tokenizer.learn(texts, TokenizerConfig())
    learning = time.perf_counter() - start
    plain = tokenizers.Tokenizer.from_str(tokenizer.file.decode())
    start = time.perf_counter()
    ids = [encoding.ids for encoding in plain.encode_batch_fast(texts, add_special_tokens=False)]
    plain_seconds = time.perf_counter() - start
    start = time.perf_counter()
    assert tokenizer.ids_batch(texts) == ids
    fast_seconds = time.perf_counter() - start
    num_pieces, num_words = sum(map(len, ids)), sum(len(text.split()) for text in texts)
    start = time.perf_counter()
    data = build(pairs, tokenizer, folder, max_length=512, max_ratio=6.0)
    building = time.perf_counter() - start
    start = time.perf_counter()
    plans = [
        plan_epoch(data.source_lengths, data.target_lengths, batch_tokens=BATCH_TOKENS, seed=1, epoch=epoch)
        for epoch in range(3)
    ]
    planning = (time.perf_counter() - start) / 3
    shares = [planned_padding_share(plan, data.source_lengths, data.target_lengths) for plan in plans]
    print(f"{name}: {len(pairs):,} pairs, dropped {data.dropped}")
    print(f"  vocabulary {tokenizer.vocab_size:,} (chosen), {num_pieces / num_words:.3f} pieces per word")
    print(f"  learning {learning:.1f} s; building {building:.1f} s = {len(pairs) / building:,.0f} pairs/s")
    print(
        f"  encoding {num_pieces / fast_seconds:,.0f} pieces/s in one thread, "
        f"{num_pieces / plain_seconds:,.0f} by the library's batch call in {num_processors()}: "
        f"{plain_seconds / fast_seconds:.1f} times as fast"
    )
    print(
        f"  padding at {BATCH_TOKENS} target pieces: {', '.join(f'{share:.2%}' for share in shares)} in three epochs "
        f"of {len(plans[0])} batches; planning one takes {planning:.2f} s"
    )


def anonymous_megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def generated(count: int, every: int) -> Iterator[Pair]:
    """`count` pairs of a language that is made up on the way; prints the memory after each `every` of them."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(50_000)]
    weights = np.cumsum(1 / np.arange(1, len(words) + 1)).tolist()
    start = time.perf_counter()
    for number in range(count):
        source = draw.choices(words, cum_weights=weights, k=2 + number % 13)
        yield Pair(" ".join(source), " ".join(source[number % 3 :: -1] + source[number % 2 + 2 :]) + ".")
        if (number + 1) % every == 0:
            rate = (number + 1) / (time.perf_counter() - start)
            print(
                f"  encoded {number + 1:>11,} lines: {anonymous_megabytes():6.0f} MB, {rate:,.0f} pairs/s", flush=True
            )


def measure_memory(num_lines: int, folder: Path) -> None:
    sample = [text for pair in generated(20_000, num_lines + 20_001) for text in (pair.source, pair.target)]
    tokenizer = Tokenizer.learn(sample, TokenizerConfig(vocab_size=16_000))
    del sample
    every = max(1, min(1_000_000, num_lines // 4))
    print(f"generated: {num_lines:,} lines, {tokenizer.vocab_size:,} pieces; at first {anonymous_megabytes():.0f} MB")
    data = build(generated(num_lines, every), tokenizer, folder, max_length=512, max_ratio=6.0)
    size = sum(path.stat().st_size for path in folder.iterdir())
    largest_worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  {len(data):,} pairs in {size / 1e9:.2f} GB of files; a worker took {largest_worker:.0f} MB at most")
    read_epoch(data, tokenizer, every)


def read_epoch(data: Dataset, tokenizer: Tokenizer, every: int) -> None:
    start = time.perf_counter()
    plan = plan_epoch(data.source_lengths, data.target_lengths, batch_tokens=BATCH_TOKENS, seed=1, epoch=0)
    seconds = time.perf_counter() - start
    print(f"  planned {len(plan):,} batches in {seconds:.1f} s: {anonymous_megabytes():6.0f} MB", flush=True)
    share = planned_padding_share(plan, data.source_lengths, data.target_lengths)
    start = time.perf_counter()
    num_pairs = num_tokens = 0
    for indices in plan:
        batch = collate([data.pair(index) for index in indices], tokenizer.padding_id, tokenizer.begin_id, indices)
        before, num_pairs = num_pairs, num_pairs + len(batch)
        num_tokens += batch.num_target_tokens
        if before // every < num_pairs // every:
            rate = num_tokens / (time.perf_counter() - start)
            print(
                f"  read {num_pairs:>11,} pairs: {anonymous_megabytes():6.0f} MB, {rate:,.0f} target pieces/s",
                flush=True,
            )
    print(f"  padding {share:.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, action="append", help="TSV of source and target, plain or .gz")
    parser.add_argument("--lines", type=int, default=10_000_000, help="how many lines to generate")
    parser.add_argument("--folder", type=Path, help="where to put the files; they are deleted at the end")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        # Memory first: what the corpora leave on the heap would blur it.
        if arguments.lines:
            measure_memory(arguments.lines, Path(folder) / "generated")
        corpora = {path.name: read_tsv(path) for path in arguments.corpus} if arguments.corpus else default_corpora()
        for name, pairs in corpora.items():
            measure_corpus(name, pairs, Path(folder) / name)


if __name__ == "__main__":
    main()
