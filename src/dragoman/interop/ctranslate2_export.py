"""Our model as CTranslate2's users know one: tokens are the pieces themselves, and the tokenizer lies beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from dragoman.bundle import Bundle
from dragoman.engine.spec import make_spec
from dragoman.engine.without_torch import import_ctranslate2
from dragoman.interop.parity import Greedy
from dragoman.text.sentencepiece_tokenizer import SentencePieceTokenizer

Quantization = Literal["float32", "int8"]

_WITH_TOKENIZERS = """\
import ctranslate2, tokenizers

tokenizer = tokenizers.Tokenizer.from_file("FOLDER/tokenizer.json")
translator = ctranslate2.Translator("FOLDER", compute_type="{quantization}")
tokens = [{head}*tokenizer.encode("...", add_special_tokens=False).tokens, "{end}"]
found = translator.translate_batch([tokens], beam_size={beam}, max_input_length=0, max_decoding_length={longest})
result = found[0].hypotheses[0]
print(tokenizer.decode([tokenizer.token_to_id(token) for token in result]))
"""
_WITH_SENTENCEPIECE = """\
import ctranslate2, sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="FOLDER/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file="FOLDER/target.spm")
translator = ctranslate2.Translator("FOLDER", compute_type="{quantization}")
tokens = [{head}*source.encode("...", out_type=str), "{end}"]
found = translator.translate_batch([tokens], beam_size={beam}, max_input_length=0, max_decoding_length={longest})
result = found[0].hypotheses[0]
print(target.decode(result))
"""


def write_ctranslate2(bundle: Bundle, folder: Path, quantization: Quantization = "float32") -> None:
    """Write the converted model and the tokenizer's files."""
    source, target = _pieces(bundle)
    spec = make_spec(bundle.model_config, bundle.weights(), target, quantization == "int8", source)
    tokenizer = bundle.tokenizer
    if isinstance(tokenizer, SentencePieceTokenizer):
        spec.config.unk_token = tokenizer.piece(tokenizer.unknown_id)
    spec.save(str(folder))
    for name, data in tokenizer.files().items():
        (folder / name).write_bytes(data)


def example(bundle: Bundle, quantization: Quantization) -> str:
    """How to run it, in Python."""
    tokenizer = bundle.tokenizer
    template = _WITH_SENTENCEPIECE if isinstance(tokenizer, SentencePieceTokenizer) else _WITH_TOKENIZERS
    head = "".join(f'"{tokenizer.piece(id)}", ' for id in bundle.head_ids)
    end = tokenizer.piece(tokenizer.end_id)
    longest = bundle.model_config.max_length - 1
    return template.format(quantization=quantization, head=head, end=end, beam=bundle.search.beam, longest=longest)


class CTranslate2Runner:
    """The exported folder, run by CTranslate2 as anybody would."""

    def __init__(self, bundle: Bundle, folder: Path, quantization: Quantization) -> None:
        self._config = bundle.model_config
        self._source, self._target = _pieces(bundle)
        self._ids = {piece: id for id, piece in enumerate(self._target)}
        library = import_ctranslate2()
        self._translator = library.Translator(str(folder), compute_type=quantization, intra_threads=1)

    def decode(self, source: Sequence[int], limit: int) -> Greedy:
        (result,) = self._translator.translate_batch(
            [[self._source[id] for id in source]],
            beam_size=1,
            max_input_length=0,
            max_decoding_length=min(limit, self._config.max_length - 1),
            min_decoding_length=0,
            return_end_token=True,
            return_logits_vocab=True,
        )
        ids = [self._ids[token] for token in result.hypotheses[0]]
        rows = [np.asarray(row, dtype=np.float32).reshape(-1) for row in result.logits[0]]
        if ids and ids[-1] == self._config.end_id:
            ids.pop()
        return Greedy(tuple(ids), np.stack(rows))


def _pieces(bundle: Bundle) -> tuple[list[str], list[str]]:
    """What the ids of each side are called."""
    sides = (bundle.tokenizer, bundle.tokenizer.target_side)
    source, target = (side.pieces(range(side.vocab_size)) for side in sides)
    return source, target
