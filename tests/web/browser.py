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
import torch
import uvicorn
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, Route, sync_playwright

from dragoman.serve import metrics, rate
from dragoman.serve.app import build
from dragoman.serve.protocol import uvicorn_options
from dragoman.serve.settings import Settings
from dragoman.serve.worker import Shared, make_service
from lively_model import SENTENCES, write_lively_bundle
from tiny_bundle import write_tiny_bundle

TEXT = SENTENCES[1]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STEPS = (3, 11)
"""Of the checkpoints that the small model keeps."""


def write_models(folder: Path) -> tuple[str, ...]:
    """A small model for both ways between fr and en with checkpoints, one as deep as the paper's for de to en, an RNN
    with attention for it to en, and one without for es to en.
    """
    torch.set_num_threads(1)
    write_lively_bundle(folder / "small", num_sentences=5, steps=70, seed=5, kept_steps=STEPS, max_length=211)
    deep = {"encoder_layers": 6, "decoder_layers": 6, "num_heads": 8, "d_model": 64, "max_length": 211}
    write_tiny_bundle(folder / "deep", directions=("de-en",), seed=3, **deep)
    recurrent = {"architecture": "recurrent", "d_ff": 37, "num_heads": 1, "d_k": 11}
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    write_lively_bundle(folder / "recurrent", directions=("it-en",), **recurrent, **layers)
    fixed = {**recurrent, "recurrent_attention": "none"}
    write_lively_bundle(folder / "fixed", directions=("es-en",), **fixed, **layers)
    return tuple(str(folder / name) for name in ("small", "deep", "recurrent", "fixed"))


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


def shown_weights(page: Page, side: str) -> list[float]:
    return page.eval_on_selector_all(f".column.{side} .weight", "all => all.map(one => Number(one.dataset.value))")
