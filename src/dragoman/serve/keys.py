"""API keys: a file of hashes, so that reading it gives no key away.

A line is `sha256:HEX`, and after a space a name for it in the log, if you like; blank lines and lines that begin with #
are skipped. Keys are long and random (`make_key`), so a plain hash is as good as a slow one, and cannot be used to keep
the server busy.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import ConfigError

_SCHEME = "sha256:"
_SHORTEST = 16
_IDENTITY_DIGITS = 16


@dataclass(frozen=True)
class Known:
    """A key that is let in: its `identity` is its own alone, its `name` is for the log, and may be that of several."""

    identity: str
    name: str


class Keys:
    """The keys that are let in."""

    def __init__(self, names: Mapping[bytes, str]) -> None:
        """`names` has the digest of each key, and what it is called."""
        self._names = dict(names)

    @classmethod
    def read(cls, path: str) -> Keys:
        """The keys of a file."""
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read keys from {path}: {error}") from error
        names: dict[bytes, str] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            hashed, _, name = line.strip().partition(" ")
            digest = _parse(hashed)
            if digest is None:
                # The line itself is not shown: it may be a key that somebody forgot to hash.
                raise ConfigError(
                    f"{path}:{number}: no hashed key, expected a line as `dragoman serve --hash-key` prints"
                )
            names[digest] = name.strip() or f"key {hashed[len(_SCHEME) :][:8]}"
        if not names:
            raise ConfigError(f"{path} has no keys, so nobody could come in: add one with `dragoman serve --hash-key`")
        return cls(names)

    def find(self, key: str) -> Known | None:
        """A key that is let in. Takes the same time for every wrong key."""
        digest = _digest(key)
        found: Known | None = None
        for known, name in self._names.items():
            if hmac.compare_digest(known, digest):
                found = Known(f"key:{known.hex()[:_IDENTITY_DIGITS]}", name)
        return found


def make_key() -> str:
    """A new key that nobody can guess."""
    return secrets.token_urlsafe(24)


def hash_key(key: str) -> str:
    """The line of a keys file for a key."""
    if len(key) < _SHORTEST:
        raise ConfigError(f"a key of {len(key)} characters can be guessed, expected at least {_SHORTEST}")
    return _SCHEME + _digest(key).hex()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _parse(hashed: str) -> bytes | None:
    if not hashed.startswith(_SCHEME):
        return None
    try:
        digest = bytes.fromhex(hashed[len(_SCHEME) :])
    except ValueError:
        return None
    return digest if len(digest) == hashlib.sha256().digest_size else None
