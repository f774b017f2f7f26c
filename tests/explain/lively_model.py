"""A tiny model that has learned seven sentences by heart: its translations have words, vary, and end."""

from pathlib import Path
from typing import Any

import torch

from dragoman.bundle import Bundle, state_to_weights
from dragoman.model.build import build_model
from dragoman.recipe import SearchConfig
from dragoman.text.tokenizer import Tokenizer
from tiny_bundle import tiny_config, tiny_texts, tiny_tokenizer

SENTENCES = [text for text in tiny_texts() if 3 <= len(text.split()) <= 5][:7]
TRANSLATIONS = [text for text in tiny_texts(seed=2) if 3 <= len(text.split()) <= 5][:7]
STEPS = 60


def write_lively_bundle(folder: Path, **changes: Any) -> Bundle:
    """A bundle for fr-en and en-fr, that was taught the first."""
    tokenizer = tiny_tokenizer(("en", "fr"))
    config = tiny_config(vocab_size=tokenizer.vocab_size, dropout=0.0, **changes)
    torch.manual_seed(7)
    model = build_model(config)
    source, target = _batch(tokenizer, SENTENCES, [tokenizer.language_id("en")]), _batch(tokenizer, TRANSLATIONS, [1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        logits = model(source, target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return Bundle.write(
        folder,
        model_config=config,
        search=SearchConfig(extra_length=13),
        tokenizer=tokenizer,
        weights=state_to_weights(model),
        directions=("fr-en", "en-fr"),
    )


def _batch(tokenizer: Tokenizer, texts: list[str], head: list[int]) -> torch.Tensor:
    rows = [[*head, *ids, tokenizer.end_id] for ids in tokenizer.ids_batch(texts)]
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
