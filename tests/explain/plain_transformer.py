"""The Transformer once more, in plain numpy loops over heads, from a bundle's weights: what every trace is held
against. Written apart from `dragoman.model`, and sharing no code with it.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Bundle

Matrix = NDArray[np.float64]


class PlainTransformer:
    """`run` gives every number of one pass by the name that a trace has it under."""

    def __init__(self, bundle: Bundle, off: tuple[str, ...] = ()) -> None:
        self.config = bundle.model_config
        self.weights = {name: array.astype(np.float64) for name, array in bundle.weights().items()}
        self.off = off
        self.numbers: dict[str, Matrix] = {}

    def run(self, source_ids: list[int], target_ids: list[int]) -> dict[str, Matrix]:
        self.numbers = {}
        encoded = self.stack("encoder", self.embed("source", source_ids))
        self.numbers["encoder.output"] = encoded
        inputs = [self.config.begin_id, *target_ids[:-1]]
        decoded = self.stack("decoder", self.embed("target", inputs), encoded)
        self.numbers["decoder.output"] = decoded
        self.numbers["logits"] = decoded @ self.weights["target_embedding.pieces.weight"].T
        return self.numbers

    def embed(self, side: str, ids: list[int]) -> Matrix:
        shared = self.config.share_embeddings or side == "target"
        table = self.weights[f"{'target' if shared else 'source'}_embedding.pieces.weight"]
        pieces = table[ids] * math.sqrt(self.config.d_model)
        position = self.positions(side, len(ids))
        self.numbers |= {f"{side}.pieces": pieces, f"{side}.position": position, f"{side}.embedded": pieces + position}
        return pieces + position

    def positions(self, side: str, length: int) -> Matrix:
        if self.config.position == "learned":
            return self.weights[f"{side}_embedding.position.table_TD"][:length]
        width = self.config.d_model
        table = np.zeros((length, width))
        for place in range(length):
            for pair in range(width // 2):
                angle = place / self.config.position_base ** (2 * pair / width)
                table[place, 2 * pair], table[place, 2 * pair + 1] = math.sin(angle), math.cos(angle)
        return table

    def stack(self, part: str, x: Matrix, memory: Matrix | None = None) -> Matrix:
        num_layers = self.config.encoder_layers if part == "encoder" else self.config.decoder_layers
        for layer in range(num_layers):
            name = f"{part}.{layer}"
            x = self.residual(name, "self_attention", x, None, causal=part == "decoder")
            if memory is not None:
                x = self.residual(name, "cross_attention", x, memory)
            x = self.residual(name, "feed_forward", x, None)
        return self.norm(f"{part}.norm", x) if self.config.norm_order == "pre" else x

    def residual(self, block: str, kind: str, x: Matrix, memory: Matrix | None, causal: bool = False) -> Matrix:
        name, norm = f"{block}.{kind}", f"{self.stored(block)}.{kind}_residual.norm"
        pre = self.config.norm_order == "pre"
        given = self.norm(norm, x) if pre else x
        y = self.feed_forward(block, given) if kind == "feed_forward" else self.attention(name, given, memory, causal)
        summed = x + y
        result = summed if pre else self.norm(norm, summed)
        self.numbers |= {
            f"{name}.input": given,
            f"{name}.output": y,
            f"{name}_residual.input": x,
            f"{name}_residual.sum": summed,
            f"{name}_residual.output": result,
        }
        return result

    def attention(self, name: str, x: Matrix, memory: Matrix | None, causal: bool) -> Matrix:
        config, stored = self.config, self.stored(name)
        keys = x if memory is None else memory
        w_qkv, w_o = self.weights[f"{stored}.w_qkv"], self.weights[f"{stored}.w_o.weight"]
        b_qkv = self.weights.get(f"{stored}.b_qkv", np.zeros(len(w_qkv)))
        d_k, d_v, heads = config.d_k or 0, config.d_v or 0, config.num_heads
        noted: dict[str, list[Any]] = {
            part: [] for part in ("query", "key", "value", "scores", "weights", "mixed", "value_norm", "contribution")
        }
        for head in range(heads):
            q = self.rows(w_qkv, b_qkv, head * d_k, d_k, x)
            k = self.rows(w_qkv, b_qkv, (heads + head) * d_k, d_k, keys)
            v = self.rows(w_qkv, b_qkv, 2 * heads * d_k + head * d_v, d_v, keys)
            scores = q @ k.T / math.sqrt(d_k)
            seen = np.tril(np.ones_like(scores)) if causal else np.ones_like(scores)
            lifted = np.exp(scores - scores.max(axis=1, keepdims=True)) * seen
            weights = lifted / lifted.sum(axis=1, keepdims=True)
            part = w_o[:, head * d_v : (head + 1) * d_v] * (f"{name}.{head}" not in self.off)
            values = (q, k, v, scores, weights, weights @ v, np.linalg.norm(v @ part.T, axis=1), weights @ v @ part.T)
            for what, value in zip(noted, values, strict=True):
                noted[what].append(value)
        self.numbers |= {f"{name}.{what}": np.stack(value) for what, value in noted.items()}
        bias: Matrix = self.weights.get(f"{stored}.w_o.bias", np.zeros(config.d_model))
        return np.stack(noted["contribution"]).sum(axis=0) + bias

    def rows(self, matrix: Matrix, bias: Matrix, first: int, count: int, x: Matrix) -> Matrix:
        product: Matrix = x @ matrix[first : first + count].T + bias[first : first + count]
        return product

    def feed_forward(self, block: str, x: Matrix) -> Matrix:
        stored = f"{self.stored(block)}.feed_forward"
        inner = x @ self.weights[f"{stored}.w_1.weight"].T + self.weights[f"{stored}.w_1.bias"]
        if self.config.activation == "swiglu":
            gate = x @ self.weights[f"{stored}.w_gate.weight"].T
            inner = gate / (1 + np.exp(-gate)) * inner
        else:
            inner = np.maximum(inner, 0)
        output: Matrix = inner @ self.weights[f"{stored}.w_2.weight"].T + self.weights[f"{stored}.w_2.bias"]
        return output

    def norm(self, stored: str, x: Matrix) -> Matrix:
        weight = self.weights[f"{stored}.weight"]
        if self.config.norm == "rms":
            scaled: Matrix = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + np.finfo(np.float32).eps) * weight
            return scaled
        centred = x - x.mean(axis=1, keepdims=True)
        shifted: Matrix = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight
        return shifted + self.weights[f"{stored}.bias"]

    @staticmethod
    def stored(name: str) -> str:
        """encoder.0.self_attention -> encoder.blocks.0.self_attention, as the weights are called."""
        part, _, rest = name.partition(".")
        return f"{part}.blocks.{rest}"


def log_softmax(logits: Matrix) -> Matrix:
    lifted: Matrix = logits - logits.max(axis=-1, keepdims=True)
    return lifted - np.log(np.exp(lifted).sum(axis=-1, keepdims=True))
