"""Our own model, as the others are compared with it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.bundle import Bundle
from dragoman.interop.parity import Greedy, never_written

if TYPE_CHECKING:
    from dragoman.search.searchable import Searchable


class TorchRunner:
    """Greedy decoding in torch."""

    def __init__(self, bundle: Bundle) -> None:
        self._config = bundle.model_config
        self._model: Searchable[Any] = bundle.load_model()

    def decode(self, source: Sequence[int], limit: int) -> Greedy:
        import torch

        config = self._config
        never, ids, rows = list(never_written(config)), [], []
        with torch.inference_mode():
            state = self._model.encode(torch.tensor([list(source)]))
            last = config.begin_id
            for _ in range(min(limit, config.max_length - 1)):
                step = self._model.step(torch.tensor([last]), state)
                logits_V, state = step.logits_BV[0].numpy().astype(np.float32), step.state
                rows.append(logits_V)
                allowed_V = logits_V.copy()
                allowed_V[never] = -np.inf
                last = int(allowed_V.argmax())
                if last == config.end_id:
                    break
                ids.append(last)
        return Greedy(tuple(ids), np.stack(rows))
