"""A tiny model that has learned a few sentences by heart: its translations have words, vary, and end."""

from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from dragoman.bundle import Bundle, state_to_weights
from dragoman.model.build import build_model
from dragoman.recipe import SearchConfig
from dragoman.text.tokenizer import Tokenizer
from tiny_bundle import tiny_config, tiny_texts, tiny_tokenizer

SENTENCES = [text for text in tiny_texts() if 3 <= len(text.split()) <= 5][:7]
TRANSLATIONS = [text for text in tiny_texts(seed=2) if 3 <= len(text.split()) <= 5][:7]


def write_lively_bundle(
    folder: Path,
    *,
    directions: tuple[str, ...] = ("fr-en", "en-fr"),
    num_sentences: int = len(SENTENCES),
    steps: int = 60,
    seed: int = 7,
    kept_steps: tuple[int, ...] = (),
    **changes: Any,
) -> Bundle:
    """A bundle that was taught the way to en, and keeps the checkpoints of some steps; `changes` go to the model."""
    tokenizer = tiny_tokenizer(("en", "fr"))
    config = tiny_config(vocab_size=tokenizer.vocab_size, dropout=0.0, **changes)
    torch.manual_seed(seed)
    model = build_model(config)
    source = _batch(tokenizer, SENTENCES[:num_sentences], [tokenizer.language_id("en")])
    target = _batch(tokenizer, TRANSLATIONS[:num_sentences], [config.begin_id])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        logits = model(source, target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in kept_steps:
            (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            safetensors.torch.save_file(state, folder / "checkpoints" / f"step-{step}.safetensors")
    return Bundle.write(
        folder,
        model_config=config,
        search=SearchConfig(extra_length=13),
        tokenizer=tokenizer,
        weights=state_to_weights(model),
        directions=directions,
    )


def _batch(tokenizer: Tokenizer, texts: list[str], head: list[int]) -> torch.Tensor:
    rows = [[*head, *ids, tokenizer.end_id] for ids in tokenizer.ids_batch(texts)]
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
