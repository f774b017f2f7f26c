"""What `dragoman serve` may be told: one table, of which the command line makes its options and help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dragoman.errors import ConfigError
from dragoman.settings import at_least, option


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to serve; a limit of 0 is none."""

    model: tuple[str, ...] = option(
        (), "A model's folder, or its name in the box; several times for several. [the box]"
    )
    memory: tuple[str, ...] = option(
        (), "Pairs to translate by, whose name tells their languages (NAME.fr-en.tsv); several times for several."
    )
    host: str = option("127.0.0.1", "The address to listen on; 0.0.0.0 is all of this machine's.")
    port: int = option(5000, "The port to listen on; 0 takes a free one.")
    workers: int = option(1, "Processes; a supervisor replaces one that dies. Each has the models in memory.")
    threads: int = option(0, "Batches that a worker translates at once; 0 shares the cores among the workers.")
    compute_type: Literal["int8", "float32"] = option("int8", "CTranslate2's numbers.")
    beam: int = option(0, "Hypotheses kept open in the search; 0 is the model's own number, 1 is fastest.")

    api_keys: str | None = option(None, "Serve only who has a key: a file of hashed keys, as --hash-key prints them.")
    rate: float = option(0.0, "Requests a minute of each key, and of each address that gives none.")
    quota: int = option(
        0, "Characters of each key, and of each address that gives none, until a restart; then it is 456."
    )
    cors: str = option("*", "The origin whose pages may call this server; * is any, none is none.")
    trusted_proxies: str = option("127.0.0.1", "Proxies whose X-Forwarded-For is believed, comma-separated.")

    char_limit: int = option(50_000, "Characters of a request.")
    batch_limit: int = option(500, "Texts of a request.")
    alternatives_limit: int = option(10, "Alternatives that a request may ask for.")
    body_bytes: int = option(4 << 20, "Bytes of a request's body.")
    file_bytes: int = option(10 << 20, "Bytes of a file to translate.")

    max_wait_ms: float = option(
        10.0, "How long a batch waits for company while others are served; a first request never waits."
    )
    batch_tokens: int = option(1024, "Source pieces of a batch.")
    queue_limit: int = option(1024, "Requests that may wait; one client may be half of them. Then it is 503.")
    timeout_seconds: float = option(60.0, "How long a request may take, and to send it.")
    file_seconds: float = option(600.0, "How long the translation of a file may take.")
    shutdown_seconds: float = option(
        0.0, "How long SIGTERM waits for requests that were accepted; 0 is as long as they may take."
    )

    suggestions: str | None = option(
        None, "Keep better translations (/suggest): of NAME.tsv, in NAME.fr-en.tsv and so on."
    )
    glossary_dir: str | None = option(None, "Keep glossaries (/v2/glossaries) in this folder.")
    files: bool = option(True, "Translate files (/translate_file).")
    explain: bool = option(True, "Show how a translation came about (/explain), with torch, loaded when first asked.")
    access_log: str = option("-", "A JSON line a request: to this file; - is standard error, none is nowhere.")
    log_text: bool = option(False, "Put texts and translations into the access log.")

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"port is {self.port}, expected 0 to 65535")
        for name in ("workers", "batch_tokens", "queue_limit", "body_bytes", "file_bytes"):
            at_least(1, name, getattr(self, name))
        for name in (
            "threads",
            "beam",
            "rate",
            "char_limit",
            "batch_limit",
            "alternatives_limit",
            "quota",
            "max_wait_ms",
            "shutdown_seconds",
        ):
            at_least(0, name, getattr(self, name))
        for name in ("timeout_seconds", "file_seconds"):
            at_least(0.1, name, getattr(self, name))

    @property
    def patience_seconds(self) -> float:
        """How long SIGTERM waits: by default for the slowest request, which was still being sent when it came."""
        longest = max(self.timeout_seconds, self.file_seconds) if self.files else self.timeout_seconds
        return self.shutdown_seconds or self.timeout_seconds + longest
