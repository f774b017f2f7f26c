"""The exported graphs, run by onnxruntime."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.errors import require
from dragoman.interop.onnx_export import DECODER, ENCODER, ENCODER_OUTPUTS, IDS
from dragoman.interop.parity import Greedy


class OnnxRunner:
    """Greedy decoding with an exported folder, and nothing but it."""

    def __init__(self, folder: Path) -> None:
        library = require("onnxruntime", "onnx", "running an ONNX model")
        options = library.SessionOptions()
        options.intra_op_num_threads = 1
        self._facts = json.loads((folder / IDS).read_bytes())
        self._encoder, self._decoder = (
            library.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
            for name in (ENCODER, DECODER)
        )

    def decode(self, source: Sequence[int], limit: int) -> Greedy:
        facts = self._facts
        found = self._encoder.run(list(ENCODER_OUTPUTS), {"source": np.array([list(source)], dtype=np.int64)})
        memory = dict(zip(ENCODER_OUTPUTS, found, strict=True))
        layers, _, heads, _, d_k = memory["memory_keys"].shape
        keys, values = (
            np.zeros((layers, 1, heads, 0, width), dtype=np.float32)
            for width in (d_k, memory["memory_values"].shape[-1])
        )
        last, ids, rows = facts["begin_id"], [], []
        for _ in range(min(limit, facts["max_length"] - 1)):
            inputs = {"last": np.array([last], dtype=np.int64), **memory, "keys": keys, "values": values}
            logits, keys, values = self._decoder.run(None, inputs)
            rows.append(logits[0])
            allowed_V = logits[0].copy()
            allowed_V[facts["never_written"]] = -np.inf
            last = int(allowed_V.argmax())
            if last == facts["end_id"]:
                break
            ids.append(last)
        return Greedy(tuple(ids), np.stack(rows))
