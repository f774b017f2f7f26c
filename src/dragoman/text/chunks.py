"""Pairs of text to ids, a chunk at a time, in this process or in several.

Looking words up is Python's work, which threads cannot share, so each worker is a process: `python -m` this module,
fed through its standard input and read from its standard output. (The `multiprocessing` module would run the caller's
script once more in each worker, unless that script is written for it.) Chunks come back in the order they went in, so
the number of workers changes nothing but the time.
"""

import marshal
import os
import signal
import subprocess
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass
from itertools import chain, islice
from typing import Any, Protocol

from dragoman.errors import DataError
from dragoman.text.sentencepiece_tokenizer import unpack
from dragoman.text.tokenizer import Tokenizer

CHUNK_PAIRS = 8192

Texts = list[tuple[str, str]]


class PairLike(Protocol):
    """Anything with the two sides of a pair."""

    @property
    def source(self) -> str: ...

    @property
    def target(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What becomes of a pair: the ids around it, and when it is dropped."""

    target_tag: int | None
    max_length: int
    max_ratio: float
    keep_text: bool


@dataclass(frozen=True)
class Side:
    """One side of the pairs that were kept, as machine numbers: ids and UTF-8 end to end, and the length of each."""

    ids: bytes
    lengths: bytes
    text: bytes
    text_lengths: bytes


@dataclass(frozen=True)
class Chunk:
    """What became of the pairs of a chunk; `dropped` counts by reason."""

    source: Side
    target: Side
    dropped: dict[str, int]


def reason_to_drop(num_source: int, num_target: int, rules: Rules) -> str | None:
    """`empty`, `overlong`, `ratio`, or None to keep a pair of so many pieces, the added ones not counted."""
    if not num_source or not num_target:
        return "empty"
    if max(num_source + 1 + (rules.target_tag is not None), num_target + 1) > rules.max_length:
        return "overlong"
    # Ten pieces of grace: two words against nine say little.
    if max(num_source, num_target) > rules.max_ratio * min(num_source, num_target) + 10:
        return "ratio"
    return None


def encode_chunk(texts: Texts, tokenizer: Tokenizer, rules: Rules) -> Chunk:
    """Source ids begin with the target's tag, if there is one; both sides end with the end id."""
    sources = tokenizer.ids_batch([source for source, _ in texts])
    targets = tokenizer.target_side.ids_batch([target for _, target in texts])
    reasons = [reason_to_drop(len(s), len(t), rules) for s, t in zip(sources, targets, strict=True)]
    kept = [number for number, reason in enumerate(reasons) if reason is None]
    dropped = {reason: reasons.count(reason) for reason in ("empty", "overlong", "ratio")}
    head = [] if rules.target_tag is None else [rules.target_tag]
    end = [tokenizer.end_id]
    source_ids = [head + sources[number] + end for number in kept]
    target_ids = [targets[number] + end for number in kept]
    if not rules.keep_text:
        return Chunk(_side(source_ids, []), _side(target_ids, []), dropped)
    source_texts = [tokenizer.normalize(texts[number][0]).encode() for number in kept]
    target_texts = [tokenizer.target_side.normalize(texts[number][1]).encode() for number in kept]
    return Chunk(_side(source_ids, source_texts), _side(target_ids, target_texts), dropped)


def encode_pairs(pairs: Iterable[PairLike], tokenizer: Tokenizer, rules: Rules, workers: int) -> Iterator[Chunk]:
    """Every pair's ids, in order. Workers start when there is more than one chunk to share."""
    texts = ((pair.source, pair.target) for pair in pairs)
    chunks = iter(lambda: list(islice(texts, CHUNK_PAIRS)), [])
    first = list(islice(chunks, 2))
    chunks = chain(first, chunks)
    if workers < 2 or len(first) < 2 or not sys.executable:
        yield from (encode_chunk(chunk, tokenizer, rules) for chunk in chunks)
        return
    with ExitStack() as stack:
        idle = deque(stack.enter_context(_Worker(tokenizer, rules)) for _ in range(workers))
        threads = stack.enter_context(ThreadPoolExecutor(workers))
        waiting: deque[Future[Chunk]] = deque()

        def encode(chunk: Texts) -> Chunk:
            # There are as many threads as workers, so one is always idle here.
            worker = idle.popleft()
            result = worker.encode(chunk)
            idle.append(worker)
            return result

        for chunk in chunks:
            waiting.append(threads.submit(encode, chunk))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _Worker:
    """A process that encodes chunks, from entering until leaving the `with` block."""

    def __init__(self, tokenizer: Tokenizer, rules: Rules) -> None:
        self._greeting = (tokenizer.file, astuple(rules))

    def __enter__(self) -> "_Worker":
        command = [sys.executable, "-m", "dragoman.text.chunks"]
        # The worker finds dragoman where we did, also when our path was changed while running.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._send(self._greeting)
        return self

    def __exit__(self, *_: object) -> None:
        # Killed rather than asked: when we leave early, it may be in the middle of a chunk that nobody will read.
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            # Closing flushes, and what is left of a chunk has no reader any more.
            with suppress(BrokenPipeError):
                if stream:
                    stream.close()
        self._process.wait()

    def encode(self, texts: Texts) -> Chunk:
        self._send(texts)
        assert self._process.stdout
        try:
            source, target, dropped = marshal.load(self._process.stdout)
        except (EOFError, ValueError) as error:
            raise self._death() from error
        return Chunk(Side(*source), Side(*target), dropped)

    def _send(self, message: Any) -> None:
        assert self._process.stdin
        try:
            marshal.dump(message, self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._death() from error

    def _death(self) -> DataError:
        status = self._process.wait()
        return DataError(f"a process that encodes text ended with status {status}: is there memory left?")


def _side(ids: Sequence[Sequence[int]], texts: Sequence[bytes]) -> Side:
    return Side(
        array("I", chain.from_iterable(ids)).tobytes(),
        array("I", map(len, ids)).tobytes(),
        b"".join(texts),
        array("I", map(len, texts)).tobytes(),
    )


def _serve() -> None:
    """A worker's life: the tokenizer and the rules, then chunks until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    receive, send = sys.stdin.buffer, sys.stdout.buffer
    file, rules = marshal.load(receive)
    tokenizer = unpack(file)
    target_tag, max_length, max_ratio, keep_text = rules
    known = Rules(target_tag=target_tag, max_length=max_length, max_ratio=max_ratio, keep_text=keep_text)
    while True:
        try:
            texts = marshal.load(receive)
        except EOFError:
            return
        marshal.dump(astuple(encode_chunk(texts, tokenizer, known)), send)
        send.flush()


if __name__ == "__main__":
    _serve()
