"""Random MarianMT models as transformers saves them, with SentencePiece models learned on a language nobody speaks."""

import functools
import io
import json
import random
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers

SYLLABLES = ("ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru", "à", "é", "ß")


def texts(count: int, seed: int = 1) -> list[str]:
    """Sentences with capitals, digits, commas and apostrophes."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(97)] + ["17", "l'eau", "2024,"]
    return [" ".join(draw.choices(words, k=draw.randint(1, 9))).capitalize() + "." for _ in range(count)]


@functools.cache
def spm_model(seed: int, vocab_size: int = 101) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts(499, seed)),
        model_writer=model,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return [processor.id_to_piece(id) for id in range(processor.get_piece_size())]


def vocabulary(*models: bytes, languages: tuple[str, ...] = ()) -> dict[str, int]:
    """As OPUS-MT lays it out: end, unknown, tags, pieces, and the padding last."""
    pieces = ["</s>", "<unk>", *(f">>{language}<<" for language in languages)]
    pieces += [piece for model in models for piece in pieces_of(model) if piece not in ("</s>", "<unk>", "<s>")]
    return {piece: id for id, piece in enumerate([*dict.fromkeys(pieces), "<pad>"])}


def marian_config(source_size: int, target_size: int, **changes: Any) -> transformers.MarianConfig:
    settings: dict[str, Any] = {
        "d_model": 22,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37,
        "activation_function": "swish",
        "max_position_embeddings": 67,
        "scale_embedding": True,
        "vocab_size": source_size,
        "decoder_vocab_size": target_size,
        "pad_token_id": source_size - 1,
        "decoder_start_token_id": source_size - 1,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    return transformers.MarianConfig(**{**settings, **changes})


def lively_model(config: transformers.MarianConfig, seed: int = 1, pull: float = 9.0) -> transformers.MarianMTModel:
    """Random weights that make translations that vary, end, and have clear winners."""
    torch.manual_seed(seed)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            if "embed_tokens" in name or "shared" in name or "lm_head" in name:
                parameter.normal_(std=config.d_model**-0.5)
            elif parameter.dim() == 2:
                parameter.normal_(std=3.0 * parameter.shape[1] ** -0.5)
            elif "norm" in name and name.endswith("weight"):
                parameter.normal_(mean=1.0, std=0.2)
            else:
                parameter.normal_(std=0.2)
        model.model.decoder.layers[-1].final_layer_norm.weight.mul_(4.0)
        model.final_logits_bias.normal_(std=0.3)
        _end_in_time(model, pull)
    return model


def _end_in_time(model: transformers.MarianMTModel, pull: float) -> None:
    """Lay the end's row along what the decoder's output has in common wherever it writes, so that it is never far."""
    source, target = torch.randint(3, model.config.pad_token_id, (2, 29, 11))
    mean_D = model.model(input_ids=source, decoder_input_ids=target).last_hidden_state.mean((0, 1))
    model.lm_head.weight[model.config.eos_token_id] += pull * mean_D / mean_D.dot(mean_D)


def write_marian(
    folder: Path,
    *,
    languages: tuple[str, ...] = (),
    separate: bool = False,
    seed: int = 2,
    pull: float = 9.0,
    pickled: bool = False,
    **changes: Any,
) -> transformers.MarianMTModel:
    """A MarianMT folder with everything in it, and the model."""
    source, target = spm_model(1), spm_model(2, 113)
    vocabularies = [vocabulary(source, target, languages=languages)]
    if separate:
        # Both sides need the padding at one id, so the source's vocabulary is filled up.
        small, large = vocabulary(source, languages=languages), vocabulary(target)
        padding = min(len(small), len(large)) - 1
        vocabularies = [_with_padding_at(padding, one) for one in (small, large)]
        changes = {"share_encoder_decoder_embeddings": False, "pad_token_id": padding, **changes}
        changes.setdefault("decoder_start_token_id", padding)
    config = marian_config(len(vocabularies[0]), len(vocabularies[-1]), **changes)
    model = lively_model(config, seed, pull)
    model.generation_config = transformers.GenerationConfig(
        num_beams=3,
        length_penalty=1.0,
        max_length=61,
        bad_words_ids=[[config.pad_token_id]],
        renormalize_logits=True,
        pad_token_id=config.pad_token_id,
        eos_token_id=0,
        decoder_start_token_id=config.decoder_start_token_id,
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    if pickled:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    for name, one in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        (folder / name).write_text(json.dumps(one), encoding="utf-8")
    settings = {"source_lang": "fr", "target_lang": "en", "separate_vocabs": separate}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return model


def _with_padding_at(id: int, known: dict[str, int]) -> dict[str, int]:
    pieces = [piece for piece in known if piece != "<pad>"]
    pieces.insert(id, "<pad>")
    return {piece: number for number, piece in enumerate(pieces)}
