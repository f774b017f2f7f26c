"""Our model as two ONNX graphs: one reads a source, the other writes a piece; the cache goes in and comes out.

    encoder.onnx    source (B, S)  ->  mask (B, 1, 1, S), memory_keys and memory_values (L, B, H, S, C)
    decoder.onnx    last (B), mask, memory_keys, memory_values, keys and values (L, B, H, T, C)
                    ->  logits (B, V), new_keys and new_values (L, B, H, T + 1, C)

L are the decoder's layers; before the first piece the cache has T = 0 positions. `model.json` has the ids.
"""

import json
import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.bundle import Bundle
from dragoman.errors import require
from dragoman.model.decoder import Memory
from dragoman.model.multi_head import KeyValue
from dragoman.model.transformer import State, Transformer

ENCODER, DECODER, IDS = "encoder.onnx", "decoder.onnx", "model.json"
ENCODER_OUTPUTS = ("mask", "memory_keys", "memory_values")
DECODER_INPUTS = ("last", *ENCODER_OUTPUTS, "keys", "values")
DECODER_OUTPUTS = ("logits", "new_keys", "new_values")

EXAMPLE = """\
import json, numpy as np, onnxruntime

encoder, decoder = (onnxruntime.InferenceSession(f"FOLDER/{name}.onnx") for name in ("encoder", "decoder"))
facts = json.load(open("FOLDER/model.json"))
source = np.array([[*facts["head_ids"], ..., facts["end_id"]]])  # between them those of the text, by the tokenizer
mask, memory_keys, memory_values = encoder.run(None, {"source": source})
layers, _, heads, _, d_k, d_v = *memory_keys.shape, memory_values.shape[-1]
keys, values = (np.zeros((layers, 1, heads, 0, width), np.float32) for width in (d_k, d_v))
last, written = facts["begin_id"], []
while len(written) < facts["max_length"] - 1:
    logits, keys, values = decoder.run(None, {"last": np.array([last]), "mask": mask, "memory_keys": memory_keys,
        "memory_values": memory_values, "keys": keys, "values": values})
    logits[0, facts["never_written"]] = -np.inf
    last = int(logits[0].argmax())
    if last == facts["end_id"]:
        break
    written.append(last)
"""


class _Reader(nn.Module):
    """The source as the decoder sees it, all layers in one tensor."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        memory = self.model.encode(source).memory
        keys = torch.stack([block.key_BHKC for block in memory.blocks])
        return memory.mask_B11S, keys, torch.stack([block.value_BHKC for block in memory.blocks])


class _Writer(nn.Module):
    """One step, the cache of all layers in one tensor."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, last: Tensor, mask: Tensor, memory_keys: Tensor, memory_values: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        pairs = zip(memory_keys.unbind(), memory_values.unbind(), strict=True)
        memory = Memory(tuple(KeyValue(key, value) for key, value in pairs), mask)
        cache = tuple(KeyValue(key, value) for key, value in zip(keys.unbind(), values.unbind(), strict=True))
        # The newest position sees all, so one query needs no mask, however many keys there are.
        step = self.model.step(last, State(memory, cache, keys.shape[3]))
        new_keys = torch.stack([block.key_BHKC for block in step.state.cache])
        return step.logits_BV, new_keys, torch.stack([block.value_BHKC for block in step.state.cache])


def write_onnx(bundle: Bundle, folder: Path) -> None:
    """Write both graphs, the ids they need, and the tokenizer's files."""
    for module in ("onnx", "onnxscript", "onnxruntime"):
        require(module, "onnx", "an export to ONNX")
    model, config = bundle.load_model(), bundle.model_config
    assert isinstance(model, Transformer)  # `export` has refused others
    reader, writer = _Reader(model).eval(), _Writer(model).eval()
    source = torch.randint(3, config.num_source_pieces, (2, min(5, config.max_length)))
    batch, length, past = (torch.export.Dim(name) for name in ("batch", "length", "past"))
    with torch.no_grad():
        mask, memory_keys, memory_values = reader(source)
        layers, num, heads, _, d_k = memory_keys.shape
        keys, values = (torch.zeros(layers, num, heads, 3, width) for width in (d_k, memory_values.shape[-1]))
        last = torch.full((num,), config.begin_id)
        _save(reader, (source,), folder / ENCODER, ("source",), ENCODER_OUTPUTS, ({0: batch, 1: length},))
        memory_axes: dict[int, object] = {1: batch, 3: length}
        _save(
            writer,
            (last, mask, memory_keys, memory_values, keys, values),
            folder / DECODER,
            DECODER_INPUTS,
            DECODER_OUTPUTS,
            ({0: batch}, {0: batch, 3: length}, memory_axes, memory_axes, {1: batch, 3: past}, {1: batch, 3: past}),
        )
    facts = {
        "head_ids": bundle.head_ids,
        "padding_id": config.padding_id,
        "begin_id": config.begin_id,
        "end_id": config.end_id,
        "max_length": config.max_length,
        "never_written": sorted({config.padding_id, config.begin_id} - {config.end_id}),
    }
    (folder / IDS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    for name, data in bundle.tokenizer.files().items():
        (folder / name).write_bytes(data)


def _save(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    path: Path,
    names: tuple[str, ...],
    outputs: tuple[str, ...],
    axes: tuple[dict[int, object], ...],
) -> None:
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's own making, and no concern of whoever exports
            torch.onnx.export(
                module,
                inputs,
                str(path),
                input_names=list(names),
                output_names=list(outputs),
                dynamic_shapes=axes,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
    finally:
        logger.setLevel(level)
