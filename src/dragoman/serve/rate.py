"""How often somebody may come, and how much they had: by name, in memory that all workers share.

The table has a fixed size, whoever knocks: a name has a few places that it may stand in, and the one there that was
quiet for longest makes room. Two workers that serve one name in the same microsecond may count one request instead of
two; no lock is worth that.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
import time
from collections.abc import Callable

_ENTRY = struct.Struct("=Qddd")  # name's hash, requests left, when that was, characters translated
_WAYS = 8
_SETS = 1 << 12
TABLE_BYTES = _SETS * _WAYS * _ENTRY.size


class Buckets:
    """`per_minute` requests for each name, which may come all at once; 0 is no limit."""

    def __init__(self, per_minute: float, table: mmap.mmap, clock: Callable[[], float] = time.monotonic) -> None:
        """`table` has `TABLE_BYTES`, zero at first."""
        self._per_minute = per_minute
        self._table = table
        self._clock = clock

    def take(self, name: str, cost: float = 1) -> float:
        """Count one request, or one that is worth several: 0 if it may pass, else the seconds until it may."""
        if self._per_minute == 0:
            return 0.0
        cost = min(cost, max(1.0, self._per_minute))  # more than all there ever is could never pass
        place, identity, tokens, characters = self._find(name)
        passes = tokens >= cost
        _ENTRY.pack_into(self._table, place, identity, tokens - cost if passes else tokens, self._clock(), characters)
        return 0.0 if passes else (cost - tokens) * 60 / self._per_minute

    def spend(self, name: str, characters: int) -> None:
        """Count characters that were translated."""
        place, identity, tokens, before = self._find(name)
        _ENTRY.pack_into(self._table, place, identity, tokens, self._clock(), before + characters)

    def spent(self, name: str) -> int:
        """The characters that were translated for a name."""
        return int(self._find(name)[3])

    def _find(self, name: str) -> tuple[int, int, float, float]:
        """Where a name stands, or may stand; its hash; the requests that it has left by now; its characters."""
        identity = int.from_bytes(hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest()) or 1
        most, now = max(1.0, self._per_minute), self._clock()
        first = identity % _SETS * _WAYS * _ENTRY.size
        quietest, since = first, float("inf")
        for place in range(first, first + _WAYS * _ENTRY.size, _ENTRY.size):
            known, tokens, then, characters = _ENTRY.unpack_from(self._table, place)
            if known == identity:
                return place, identity, min(most, tokens + max(0.0, now - then) * self._per_minute / 60), characters
            if then < since:
                quietest, since = place, then
        return quietest, identity, most, 0.0
