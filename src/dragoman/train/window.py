"""What a log line sums up: the steps since the last one."""

import time

from dragoman.text.batches import Batch


class Window:
    """Sums over the steps since the last log line."""

    def __init__(self) -> None:
        self._reset()

    def add(self, loss: float | None, num_tokens: int, parts: list[Batch]) -> None:
        if loss is not None:
            self.losses.append(loss)
        self.tokens += num_tokens
        for part in parts:
            self.cells += part.source_BS.size + part.target_in_BT.size
            self.real += part.num_source_tokens + part.num_target_tokens

    def skip_time(self, seconds: float) -> None:
        self.started += seconds

    def summary(self) -> dict[str, float | None]:
        values = {
            "loss": sum(self.losses) / len(self.losses) if self.losses else None,
            "target_tokens_per_second": self.tokens / max(1e-9, time.monotonic() - self.started),
            "padding": 1 - self.real / max(1, self.cells),
        }
        self._reset()
        return values

    def _reset(self) -> None:
        self.losses: list[float] = []
        self.tokens = self.cells = self.real = 0
        self.started = time.monotonic()
