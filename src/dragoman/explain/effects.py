"""What heads are worth to a translation: measured by `switches`, and read without torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HeadEffect:
    """How much log-probability the translation loses without the head; below 0 it gains."""

    kind: str
    layer: int
    head: int
    name: str
    effect: float


@dataclass(frozen=True)
class Effects:
    """The translation's log-probability with all heads, and what each one's absence costs."""

    before: float
    heads: tuple[HeadEffect, ...]

    def telling(self, count: int) -> tuple[HeadEffect, ...]:
        """The heads whose absence costs most, first the dearest."""
        return tuple(sorted(self.heads, key=lambda head: -head.effect)[:count])
