"""How many sentences a second does `dragoman serve` answer, and how soon? Against LibreTranslate, in one run.

    python benchmarks/serve_load.py --model FOLDER --peer-python VENV/bin/python
    python benchmarks/serve_load.py --model FOLDER --peer-venv FOLDER    makes that environment first (pip)
    python benchmarks/serve_load.py --model FOLDER --soak                memory after 10,000 and 100,000 requests

Each client has a connection of its own, sends a sentence, waits for the answer, and sends the next, for `--seconds` at
each number of clients. All is on the loopback: the clients take their share of the machine from both servers alike.

LibreTranslate serves the same weights, int8, packed as an argos package: CTranslate2's files, and our pieces as a
SentencePiece model. Two things are done for it that its own packages bring: sources get the language tag and the end
piece that the model expects, and each text is taken for one sentence (its sentence splitter is a download), which is
less work than it would do. It runs once as it comes (4 threads, one translator with all cores), and once tuned (a
thread a client, a translator a core), and the better of the two is what counts.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from libretranslate_peer import PATIENCE_SECONDS, Server, direction_of, find_peer, pack, peer_server

SUBJECTS = ["Le chat noir", "Ma sœur aînée", "Notre voisin", "Un vieil homme", "La boulangère", "Mon ami Paul"]
VERBS = ["regarde", "cherche", "a trouvé", "voudrait acheter", "n'aime pas", "préfère", "a oublié", "dessine"]
OBJECTS = ["une maison bleue", "le train du matin", "les fleurs du jardin", "un bon livre", "la vieille voiture"]
SYLLABLES = ["ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru"]
ENDINGS = ["dans la rue", "avant le dîner", "depuis trois jours", "avec beaucoup de joie", "près de la gare"]


@dataclass
class Tally:
    """What became of the requests of a run."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    failed: int = 0

    def line(self, duration: float) -> str:
        if not self.seconds:
            return f"no answer; {self.refused} of 503, {self.failed} lost"
        return (
            f"{self.throughput(duration):8.1f} sentences/s   p50 {1000 * self.quantile(0.5):8.0f} ms   "
            f"p99 {1000 * self.quantile(0.99):8.0f} ms   {self.refused:5} of 503   {self.failed:3} lost"
        )

    def throughput(self, duration: float) -> float:
        return len(self.seconds) / duration

    def quantile(self, share: float) -> float:
        """Seconds within which that share was answered; for ever, where nothing was."""
        found = sorted(self.seconds)
        return found[min(len(found) - 1, int(share * len(found)))] if found else float("inf")


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("DRAGOMAN_CACHE", f"{scratch}/cache")
        texts = make_texts(arguments.text)
        if arguments.soak:
            soak(arguments, texts)
            return
        peer = find_peer(arguments)
        found: dict[str, dict[int, tuple[float, float]]] = {}
        with dragoman_server(arguments, "--queue-limit", "1024") as server:
            found["dragoman"] = measure("dragoman serve", server, texts, arguments)
        if peer is not None:
            package = pack(arguments, Path(scratch) / "peer")
            for name, tuned in (("LibreTranslate", False), ("LibreTranslate, tuned", True)):
                with peer_server(peer, package, tuned, max(arguments.clients)) as server:
                    found[name] = measure(name, server, texts, arguments)
            compare(found)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a model folder, or its name in the box; it reads French")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--seconds", type=float, default=20.0, help="for each number of clients")
    parser.add_argument("--text", help="sentences to send, one a line; made up if not given")
    parser.add_argument("--workers", type=int, default=1, help="of dragoman")
    parser.add_argument("--beam", type=int, default=0, help="of dragoman; LibreTranslate's is 4")
    parser.add_argument("--peer-python", help="a Python that has LibreTranslate installed")
    parser.add_argument("--peer-venv", help="a folder for such a Python; it is made if it is not there")
    parser.add_argument("--soak", action="store_true", help="measure memory instead")
    parser.add_argument("--soak-requests", type=int, nargs=2, default=[10_000, 100_000])
    return parser.parse_args()


def make_texts(path: str | None) -> list[str]:
    if path:
        return [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    texts = [f"{a} {b} {c} {d}." for a in SUBJECTS for b in VERBS for c in OBJECTS for d in ENDINGS]
    random.Random(1).shuffle(texts)
    return texts


# The clients


async def client(port: int, texts: Iterator[str], until: float, tally: Tally, language: tuple[str, str]) -> None:
    """Ask, wait, ask again, until the time is up or the texts are; what was sent by then is waited for."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter | None = None
    try:
        while time.perf_counter() < until and (text := next(texts, None)) is not None:
            begin = time.perf_counter()
            body = json.dumps({"q": text, "source": language[0], "target": language[1], "format": "text"}).encode()
            head = (
                f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            )
            try:
                if writer is None or writer.is_closing():
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head.encode() + b"\r\n\r\n" + body)
                status, closes = await read_answer(reader)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                tally.failed += 1
                if writer is not None:
                    writer.close()
                continue
            if status == 200:
                tally.seconds.append(time.perf_counter() - begin)
            elif status == 503:
                tally.refused += 1
                await asyncio.sleep(0.1)
            else:
                tally.failed += 1
            if closes:
                writer.close()
    finally:
        if writer is not None:
            writer.close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """The status, and whether the server hangs up now."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)).decode("latin-1").lower()
    length = re.search(r"content-length: (\d+)", head)
    if length is None:
        raise ValueError("an answer without a length")
    await reader.readexactly(int(length[1]))
    return int(head.split(" ", 2)[1]), "connection: close" in head


async def run_clients(
    port: int, count: int, texts: Iterator[str], seconds: float, language: tuple[str, str]
) -> tuple[Tally, float]:
    """-> what became of the requests, and how long it took until all were answered."""
    tally, begin = Tally(), time.perf_counter()
    await asyncio.gather(
        *(client(port, texts, begin + seconds, tally, language) for _ in range(count)), return_exceptions=False
    )
    return tally, time.perf_counter() - begin


def varied(texts: list[str], count: int) -> Iterator[str]:
    """Sentences that are never the same: each has names of its own."""
    draw = random.Random(2)
    for number in range(count):
        names = ["".join(draw.choices(SYLLABLES, k=3)).capitalize() for _ in range(2)]
        yield f"{texts[number % len(texts)][:-1]} avec {names[0]} et {names[1]}."


def endless(texts: list[str], count: int | None = None) -> Iterator[str]:
    number = 0
    while count is None or number < count:
        yield texts[number % len(texts)]
        number += 1


# The servers


@contextlib.contextmanager
def dragoman_server(arguments: argparse.Namespace, *options: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "dragoman", "serve", "--model", arguments.model, "--port", "0"]
    command += ["--workers", str(arguments.workers), "--beam", str(arguments.beam), "--access-log", "none", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r":(\d+)$", line.strip())
        if found is None:
            sys.exit("dragoman serve did not start")
        yield Server(int(found[1]), process.pid, direction_of(arguments.model))
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


# What is measured


def measure(
    name: str, server: Server, texts: list[str], arguments: argparse.Namespace
) -> dict[int, tuple[float, float]]:
    """For each number of clients: sentences a second, and p99 in seconds."""
    asyncio.run(run_clients(server.port, 2, endless(texts, 16), PATIENCE_SECONDS, server.language))  # warm
    found = {}
    for count in arguments.clients:
        # Others than those of the last round, in case somebody remembers.
        own = texts[(count * 31) % len(texts) :] + texts[: (count * 31) % len(texts)]
        before = processor_seconds(server.pid)
        tally, seconds = asyncio.run(run_clients(server.port, count, endless(own), arguments.seconds, server.language))
        each = 1000 * (processor_seconds(server.pid) - before) / max(1, len(tally.seconds))
        print(f"{name:<22} {count:4} clients {tally.line(seconds)}   {each:6.1f} ms of processor each", flush=True)
        found[count] = (tally.throughput(seconds), tally.quantile(0.99))
    return found


def compare(found: dict[str, dict[int, tuple[float, float]]]) -> None:
    ours = found.pop("dragoman")
    for count, (throughput, p99) in ours.items():
        best = max(other[count][0] for other in found.values())
        soonest = min(other[count][1] for other in found.values())
        print(f"{count:4} clients: {throughput / best:5.1f} times the throughput, {p99 / soonest:5.2f} of the p99")


def soak(arguments: argparse.Namespace, texts: list[str]) -> None:
    """Resident memory of the server's processes after so many requests."""
    early, late = arguments.soak_requests
    with dragoman_server(arguments) as server:
        found = []
        for count in (early, late - early):
            sent = varied(texts, count)
            tally, seconds = asyncio.run(run_clients(server.port, 64, sent, float("inf"), server.language))
            found.append(memory_of(server.pid))
            print(f"{count:7,} requests {tally.line(seconds)}, {found[-1]:.0f} MiB resident", flush=True)
    print(f"memory after {late:,} requests / after {early:,}: {found[1] / found[0]:.3f}")


def family(pid: int) -> list[str]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return [str(pid), *children]


def processor_seconds(pid: int) -> float:
    """What a process and its children have computed: on a busy machine a steadier measure than time."""
    ticks = 0
    for one in family(pid):
        fields = Path(f"/proc/{one}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """MiB of a process and its children."""
    total = 0
    for one in family(pid):
        status = Path(f"/proc/{one}/status").read_text(encoding="utf-8")
        total += int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
    return total / 1024


if __name__ == "__main__":
    main()
