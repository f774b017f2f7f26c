"""LibreTranslate with a model of ours, for `serve_load.py`: the model as an argos package, and the server on it."""

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATIENCE_SECONDS = 300.0
PEER = "libretranslate==1.9.*"
PEER_SERVER = """
import json, sys
from argostranslate import sbd, tokenizer
told = json.loads(sys.argv.pop(1))
sbd.MiniSBDSentencizer.__init__ = lambda self, package: None
sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
encode = tokenizer.SentencePieceTokenizer.encode
tokenizer.SentencePieceTokenizer.encode = lambda self, text: [*told["head"], *encode(self, text), told["end"]]
from libretranslate.main import main
main()
"""


@dataclass(frozen=True)
class Server:
    """A server that answers, and what it translates."""

    port: int
    pid: int
    language: tuple[str, str]


def direction_of(model: str) -> tuple[str, str]:
    """From French if the model knows it, else its first direction."""
    from dragoman.bundle import Bundle, find

    languages = Bundle.open(find(model)).languages
    return next((pair for pair in languages if pair[0] == "fr"), languages[0])


def find_peer(arguments: argparse.Namespace) -> str | None:
    """The Python that has LibreTranslate."""
    if arguments.peer_python or not arguments.peer_venv:
        return arguments.peer_python
    python = Path(arguments.peer_venv) / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", arguments.peer_venv], check=True)
        # Not the build with CUDA, which is gigabytes; what comes with the same version here is for CPUs.
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch==2.13.0"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch==2.13.0", PEER], check=True)
    return str(python)


@dataclass(frozen=True)
class Package:
    """An argos package that is installed under `home`, and the pieces that go around each source."""

    home: Path
    language: tuple[str, str]
    pieces: str


def pack(arguments: argparse.Namespace, home: Path) -> Package:
    """The model as LibreTranslate reads one."""
    from dragoman.bundle import Bundle, find
    from dragoman.interop.ctranslate2_export import write_ctranslate2
    from dragoman.interop.sentencepiece_model import to_sentencepiece

    bundle = Bundle.open(find(arguments.model))
    source, target = direction_of(arguments.model)
    folder = home / "argos-translate" / "packages" / f"translate-{source}_{target}"
    (folder / "model").mkdir(parents=True)
    write_ctranslate2(bundle, folder / "model", "int8")
    (folder / "sentencepiece.model").write_bytes(to_sentencepiece(bundle.tokenizer))
    metadata = {"package_version": "1.0", "argos_version": "1.0", "from_code": source, "from_name": source,
                "to_code": target, "to_name": target}  # fmt: skip
    (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    tokenizer = bundle.tokenizer
    head = [tokenizer.piece(tokenizer.language_id(target))] if tokenizer.languages else []
    return Package(home, (source, target), json.dumps({"head": head, "end": tokenizer.piece(tokenizer.end_id)}))


@contextlib.contextmanager
def peer_server(python: str, package: Package, tuned: bool, most_clients: int) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    environment = {**os.environ, "ARGOS_COMPUTE_TYPE": "int8", "HOME": str(package.home)}
    environment |= {name: str(package.home) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    threads = []
    if tuned:
        environment |= {"ARGOS_INTER_THREADS": str(os.cpu_count()), "ARGOS_INTRA_THREADS": "1"}
        threads = ["--threads", str(most_clients)]
    command = [
        python,
        "-c",
        PEER_SERVER,
        package.pieces,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--disable-web-ui",
    ]
    log = (package.home / "log.txt").open("w", encoding="utf-8")
    process = subprocess.Popen([*command, *threads], env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/languages") as answer:
                if package.language[0] in {one["code"] for one in json.load(answer)}:
                    break
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"LibreTranslate did not start:\n{(package.home / 'log.txt').read_text(encoding='utf-8')}")
            time.sleep(0.2)
        yield Server(port, process.pid, package.language)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        log.close()
