"""`Service`: all that the wire protocols call. See the room's docstring for the order of things."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request

from dragoman.serve.access_log import AccessLog, note
from dragoman.serve.batcher import Batch, Batcher
from dragoman.serve.keys import Keys
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import Model, Models, Options, make_ready, put_together
from dragoman.serve.rate import Buckets
from dragoman.serve.refusal import DEEPL_PREFIX, Refusal
from dragoman.serve.settings import Settings
from dragoman.text.detect import detect
from dragoman.translator import Glossary, SentenceTranslation, Translation

if TYPE_CHECKING:
    from dragoman.translator.markup import Markup

T = TypeVar("T")

_AT_ONCE_CHARACTERS = 2000
"""Shorter texts are split faster than a thread is asked to do it."""
_PREPARING_THREADS = 3
"""Two files may be under way, which take long: one more, for requests."""


@dataclass(frozen=True)
class Client:
    """Who asks: `name` is shared by all requests of a key, or of an address that gave none, and by nobody else's,
    whatever a key is called in the log. Never the key itself.
    """

    name: str
    has_key: bool


class Service:
    """Admits clients and translates for them."""

    def __init__(
        self,
        settings: Settings,
        models: Models,
        *,
        threads: int,
        metrics: Metrics,
        buckets: Buckets,
        log: AccessLog,
        keys: Keys | None = None,
    ) -> None:
        self.settings = settings
        self.models = models
        self.metrics = metrics
        self.log = log
        self.keys = keys
        self._buckets = buckets
        # One thread a batch that the batcher may have under way; long texts wait for threads of their own.
        self._pool = ThreadPoolExecutor(threads + 1, thread_name_prefix="translate")
        self._preparers = ThreadPoolExecutor(_PREPARING_THREADS, thread_name_prefix="prepare")
        self._batcher: Batcher[tuple[Model, Options], SentenceTranslation] = Batcher(
            self._run,
            threads=threads,
            batch_tokens=settings.batch_tokens,
            queue_limit=settings.queue_limit,
            max_wait_seconds=settings.max_wait_ms / 1000,
            on_batch=self._count,
        )

    def admit(self, request: Request, key: str | None) -> Client:
        """Who this is. Refuses 400 without a key where one is needed, 403 a wrong one, 429 who comes too often."""
        known = self.keys.find(key) if self.keys is not None and key else None
        address = address_of(request)
        client = Client(known.identity, True) if known is not None else Client(f"address:{address}", False)
        note(client=known.name if known is not None else address)
        if wait := self._buckets.take(client.name):
            raise Refusal(429, "Too many requests: slow down, or ask for a higher limit", retry_after_seconds=wait)
        if self.keys is not None and known is None:
            if not key:
                # What LibreTranslate answers, and what DeepL does.
                status = 403 if request.url.path.startswith(DEEPL_PREFIX) else 400
                raise Refusal(status, "Please contact the server operator to get an API key")
            raise Refusal(403, "Invalid API key")
        return client

    async def translate(
        self,
        texts: Sequence[str],
        source: str,
        target: str,
        *,
        client: Client,
        alternatives: int = 0,
        beam: int | None = None,
        glossary: Glossary | None = None,
        align: bool = False,
        markup: Callable[[str], Markup] | None = None,
        split_sentences: bool = True,
        limited: bool = True,
    ) -> list[Translation]:
        """Translate texts, together with what others asked for meanwhile.

        With `markup`, which reads them (`translator/markup.py`), texts are HTML or XML, and so are the translations.
        `source` and `target` are languages (find `auto` out first, with `detect`). `limited` False passes over
        char_limit and batch_limit, and allows file_seconds: for texts out of a file, whose size was bounded before.
        Refuses 400 a pair that no model does or what is over a limit, 503 when the queue is full or time is up.
        """
        model = self.models.pick(source, target)
        if limited:
            self.check_sizes(texts)
        if self.settings.alternatives_limit and alternatives > self.settings.alternatives_limit:
            raise Refusal(
                400, f"Invalid request: {alternatives} alternatives, at most {self.settings.alternatives_limit}"
            )
        options = Options(
            source, target, alternatives, beam or self.settings.beam or None, glossary, align, split_sentences
        )
        num_characters = sum(map(len, texts))
        self._check_quota(client, num_characters)
        # Spent at once, so that requests at the same time do not pass the quota together, and given back in trouble.
        self._buckets.spend(client.name, num_characters)
        try:
            async with self.within(self.settings.timeout_seconds if limited else self.settings.file_seconds):
                translations = await self._translate(model, texts, options, client, markup)
        except BaseException:
            self._buckets.spend(client.name, -num_characters)
            raise
        self.metrics.count("dragoman_characters_total", num_characters)
        return translations

    @contextlib.asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Refuse (503) what takes longer."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise Refusal(
                503, f"this took more than {seconds:g} seconds: try again later, or send less at once",
                retry_after_seconds=self._batcher.wait_seconds,
            ) from error  # fmt: skip

    def check_sizes(self, texts: Sequence[str], status: int = 400) -> None:
        """Refuse what is too much for one request."""
        num_characters, settings = sum(map(len, texts)), self.settings
        if settings.batch_limit and len(texts) > settings.batch_limit:
            raise Refusal(
                status, f"Invalid request: request ({len(texts)}) exceeds batch limit ({settings.batch_limit})"
            )
        if settings.char_limit and num_characters > settings.char_limit:
            raise Refusal(
                status, f"Invalid request: request ({num_characters}) exceeds text limit ({settings.char_limit})"
            )

    def characters(self, client: Client) -> int:
        """The characters that were translated for a client since the server was started."""
        return self._buckets.spent(client.name)

    async def detect(self, text: str) -> list[tuple[str, float]]:
        """The languages that a text may be in, likeliest first, with confidences from 0 to 1; only those that are
        served, as sources or targets.
        """
        return detect(text, self._languages)

    async def detect_each(self, texts: Sequence[str], client: Client) -> list[list[tuple[str, float]]]:
        """The same for several texts; like `translate`, it refuses (503) when the queue is full or time is up."""
        languages = self._languages

        def detect_all() -> list[list[tuple[str, float]]]:
            return [detect(text, languages) for text in texts]

        async with self.within(self.settings.timeout_seconds):
            with self._batcher.place(client.name):
                return await self._in_thread(sum(map(len, texts)), detect_all)

    def update_gauges(self) -> None:
        """Note the queue's length."""
        self.metrics.gauge("dragoman_queue_requests", self._batcher.num_requests)
        self.metrics.gauge("dragoman_batches_running", self._batcher.num_running)

    def close(self) -> None:
        """Let the threads go; nothing is under way any more."""
        for pool in (self._preparers, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)

    @property
    def _languages(self) -> set[str]:
        return {language for direction in self.models.directions for language in direction}

    async def _translate(
        self,
        model: Model,
        texts: Sequence[str],
        options: Options,
        client: Client,
        markup: Callable[[str], Markup] | None,
    ) -> list[Translation]:
        num_characters = sum(map(len, texts))
        # In a place of the queue, so that no more can wait to be made ready than can wait for the engine.
        with self._batcher.place(client.name):
            ready = await self._in_thread(num_characters, make_ready, model, texts, options, markup)
        asked = [sentence for sentence in ready.prepared.sentences if sentence.ids]
        found = await self._batcher.submit(
            client.name,
            # How texts are split matters no more.
            (model, replace(ready.options, split_sentences=True)),
            # As they were written: the model's own reading comes with translating.
            [sentence.source for sentence in asked],
            [len(sentence.ids) for sentence in asked],
        )
        return await self._in_thread(num_characters, put_together, ready, found)

    def _check_quota(self, client: Client, num_characters: int) -> None:
        if self.settings.quota and self.characters(client) + num_characters > self.settings.quota:
            raise Refusal(456, f"Quota exceeded: {self.settings.quota} characters are what each client gets")

    async def _in_thread(self, num_characters: int, function: Callable[..., T], *arguments: object) -> T:
        if num_characters <= _AT_ONCE_CHARACTERS:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(
            self._preparers, functools.partial(function, *arguments)
        )

    async def _run(self, key: tuple[Model, Options], sentences: Sequence[str]) -> Sequence[SentenceTranslation]:
        model, options = key
        return await asyncio.get_running_loop().run_in_executor(self._pool, model.translate, sentences, options)

    def _count(self, batch: Batch) -> None:
        self.metrics.count("dragoman_sentences_total", batch.num_sentences)
        self.metrics.count("dragoman_source_tokens_total", batch.num_tokens)
        self.metrics.observe("dragoman_batch_sentences", batch.num_sentences)
        self.metrics.observe("dragoman_batch_requests", batch.num_requests)
        self.metrics.observe("dragoman_batch_seconds", batch.seconds)


def address_of(request: Request) -> str:
    """The address that a request came from; of IPv6 the network, as one customer has that many addresses."""
    host = request.client.host if request.client is not None else "unknown"
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network(f"{host.partition('%')[0]}/64", strict=False))
    except ValueError:
        return host
