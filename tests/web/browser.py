"""A real server with tiny models, and a real browser that looks at its page."""

import asyncio
import contextlib
import mmap
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
import uvicorn
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, Route, sync_playwright

from dragoman.bundle import Bundle, state_to_weights
from dragoman.model.transformer import Transformer
from dragoman.recipe import SearchConfig
from dragoman.serve import metrics, rate
from dragoman.serve.app import build
from dragoman.serve.protocol import uvicorn_options
from dragoman.serve.settings import Settings
from dragoman.serve.worker import Shared, make_service
from dragoman.text.tokenizer import Tokenizer
from tiny_bundle import tiny_config, tiny_texts, tiny_tokenizer, write_tiny_bundle

SOURCES = [text for text in tiny_texts() if 3 <= len(text.split()) <= 5][:5]
TARGETS = [text for text in tiny_texts(seed=2) if 3 <= len(text.split()) <= 5][:5]
TEXT = SOURCES[1]
LESSONS = 70
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STEPS = (3, 11)
"""Of the checkpoints that the small model keeps."""


def write_models(folder: Path) -> tuple[str, str]:
    """A small model for both ways between fr and en with checkpoints, and one as deep as the paper's for de to en."""
    write_taught_bundle(folder / "small")
    deep = {"encoder_layers": 6, "decoder_layers": 6, "num_heads": 8, "d_model": 64, "max_length": 211}
    write_tiny_bundle(folder / "deep", directions=("de-en",), seed=3, **deep)
    return str(folder / "small"), str(folder / "deep")


def write_taught_bundle(folder: Path) -> None:
    """A model that learned a few sentences by heart, so that its translations have words; it keeps checkpoints."""
    torch.set_num_threads(1)
    torch.manual_seed(5)
    tokenizer = tiny_tokenizer(("en", "fr"))
    config = tiny_config(vocab_size=tokenizer.vocab_size, max_length=211, dropout=0.0)
    model = Transformer(config)
    source_BS = as_batch(tokenizer, SOURCES, tokenizer.language_id("en"))
    target_BT = as_batch(tokenizer, TARGETS, config.begin_id)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    (folder / "checkpoints").mkdir(parents=True)
    for step in range(1, LESSONS + 1):
        logits_BTV = model(source_BS, target_BT[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits_BTV.flatten(0, 1), target_BT[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in STEPS:
            state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            safetensors.torch.save_file(state, folder / "checkpoints" / f"step-{step}.safetensors")
    weights = state_to_weights(model)
    directions, search = ("fr-en", "en-fr"), SearchConfig(extra_length=13)
    Bundle.write(
        folder, model_config=config, search=search, tokenizer=tokenizer, weights=weights, directions=directions
    )


def as_batch(tokenizer: Tokenizer, texts: list[str], first: int) -> torch.Tensor:
    rows = [torch.tensor([first, *ids, tokenizer.end_id]) for ids in tokenizer.ids_batch(texts)]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


@contextlib.contextmanager
def serving(folder: Path, **options: Any) -> Iterator[str]:
    """The address of the server."""
    settings = Settings(model=write_models(folder), threads=1, access_log="none", compute_type="float32", **options)
    shared = Shared(socket.socket(), mmap.mmap(-1, metrics.table_bytes(1)), mmap.mmap(-1, rate.TABLE_BYTES))
    service = make_service(settings, shared, 0)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build(service), **uvicorn_options()))
    thread = threading.Thread(target=asyncio.run, args=(server.serve(sockets=[listener]),))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        service.close()
        shared.listener.close()
        listener.close()


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Chromium, without a window."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        leave = pytest.fail if os.environ.get("DRAGOMAN_TEST_BROWSER") == "required" else pytest.skip
        leave("the page's tests need chromium, and there is none on the PATH: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


class Reader:
    """Somebody who reads the page, and what they see of it; errors in its console fail the test."""

    def __init__(self, browser: Browser, address: str, **context: Any) -> None:
        self.address = address
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **context}
        )
        self.context.set_default_timeout(30_000)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, text: str | None = TEXT, **state: str | int) -> Page:
        """The page, when its translation is there."""
        hash = urlencode({**({} if text is None else {"text": text}), **state})
        self.page.goto(f"{self.address}/#{hash}")
        self.page.wait_for_selector(".line.target .chip")
        return self.page

    def cut_off(self) -> None:
        """No network from here on."""
        self.context.set_offline(True)
        self.context.route("http*://**", lambda route: self._refuse(route))

    def _refuse(self, route: Route) -> None:
        self.errors.append(f"asked the network for {route.request.url}")
        route.abort()


class Asker:
    """Asks the server for the numbers that the page should show."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=address, timeout=120)

    def trace(self, text: str = TEXT, **fields: Any) -> dict[str, Any]:
        body = {"text": text, "source": "fr", "target": "en", "beam": 4, **fields}
        return self.client.post("/explain/trace", json=body).raise_for_status().json()  # type: ignore[no-any-return]

    def tensor(self, meta: dict[str, Any], name: str) -> NDArray[np.float32]:
        answer = self.client.post("/explain/tensors", json={"request": meta["request"], "names": [name]})
        return safetensors.numpy.load(answer.raise_for_status().content)[name]

    def ask(self, what: str, meta: dict[str, Any], **fields: Any) -> Any:
        return (
            self.client.post(f"/explain/{what}", json={"request": meta["request"], **fields}).raise_for_status().json()
        )
