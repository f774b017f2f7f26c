"""Traces over HTTP, for the page: one at a time in a thread of its own, bounded in length, number and rate.

    POST /explain/trace         a request -> what JSON holds of its trace
    POST /explain/tensors       {request, names} -> a safetensors file
    POST /explain/importance    {request} -> words left out
    POST /explain/effects       {request} -> heads switched off
    POST /explain/compare       {request, changed} -> two translations side by side
    POST /explain/shuffle       {request, seed} -> the encoder without positions
    POST /explain/replay        {request} -> the sentence over a training run
    POST /explain/page          {request} -> the page in one file
    GET  /explain/models        what can be explained

Kept between requests are the models, which are loaded in torch when they are first asked for, and the last passes of
each: a page asks for a translation's tensors bit by bit.
"""

from __future__ import annotations

import asyncio
import functools
import json
import mmap
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.engine.auto import has_torch
from dragoman.explain.request import TraceRequest, parse_request
from dragoman.serve.gate import bearer_key
from dragoman.serve.rate import TABLE_BYTES, Buckets
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service

if TYPE_CHECKING:
    from dragoman.explain import Explainer
    from dragoman.serve.models import Model

T = TypeVar("T")

LIMITS = {"characters": 1000, "pieces": 128, "beam": 16, "top": 50, "names": 500, "off": 500}
PER_MINUTE = 240.0
"""What one client may ask of a worker's thread: a person who clicks as fast as the page answers stays below it."""
COSTS = {"compare": 2, "importance": 3, "effects": 6, "replay": 6, "page": 15}
"""What a request is worth that is more than a translation: passes for every word, every head, every checkpoint."""
QUEUE = 16
PLACES = 2
"""Of one client in the queue."""
KEPT_PASSES = 2
LATE = "the traces before this one took too long: try again in a moment"
WITHOUT_TORCH = "explaining needs torch: pip install -c constraints.txt '.[train]' in dragoman's folder"


class Insight:
    """The models in torch, and the thread that runs them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._buckets = Buckets(PER_MINUTE, mmap.mmap(-1, TABLE_BYTES))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="explain")
        self._waiting = 0
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._explainers: list[Explainer] = []  # only the one thread reads and writes it

    def admit(self, http: Request, cost: float = 1) -> str:
        """Who this is. Refuses who has no key where one is needed, and who asks for too much."""
        client = self._service.admit(http, bearer_key(http))
        if wait := self._buckets.take(client.name, cost):
            raise Refusal(429, "Too many requests for traces: slow down", retry_after_seconds=wait)
        return client.name

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[None]:
        """One of the client's places in the queue: what else it asks for waits outside, where others can pass it."""
        places = self._places.setdefault(client, asyncio.Semaphore(PLACES))
        try:
            async with asyncio.timeout(self._service.settings.timeout_seconds):
                await places.acquire()
        except TimeoutError as error:
            raise Refusal(503, LATE, retry_after_seconds=2) from error
        try:
            yield
        finally:
            places.release()

    async def run(self, work: Callable[[Explainer], T], request: TraceRequest, *others: TraceRequest) -> T:
        """Do work on requests to one model in the thread; refuses them when too many wait."""
        if not has_torch():
            raise Refusal(503, WITHOUT_TORCH)
        model = self._pick(request)
        if self._waiting >= QUEUE:
            raise Refusal(503, "too many traces are waiting: try again in a moment", retry_after_seconds=2)
        self._waiting += 1
        until = time.monotonic() + self._service.settings.timeout_seconds
        future = asyncio.get_running_loop().run_in_executor(
            self._pool, functools.partial(self._work, work, model, (request, *others), until)
        )
        # Counted down also when nobody waits for the answer any more: unless it has begun, the thread passes it over.
        future.add_done_callback(self._done)
        return await future

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()

    def _work(self, work: Callable[[Explainer], T], model: Model, requests: Sequence[TraceRequest], until: float) -> T:
        if time.monotonic() > until:
            raise Refusal(503, LATE, retry_after_seconds=2)
        explainer = self._explainer(model)
        longest = max(len(explainer.prepare(request).source.pieces) for request in requests)
        if longest > LIMITS["pieces"]:
            raise Refusal(413, f"a sentence of {longest} pieces is too long to explain, at most {LIMITS['pieces']}")
        return work(explainer)

    def _explainer(self, model: Model) -> Explainer:
        """The model's own, loaded if it is not here yet; those of models that are served no longer go."""
        models = self._service.models
        served = [models.pick(*direction).bundle for direction in models.directions]
        self._explainers = [one for one in self._explainers if any(one.bundle is bundle for bundle in served)]
        for explainer in self._explainers:
            if explainer.bundle is model.bundle:
                return explainer
        import torch

        from dragoman.explain import Explainer

        torch.set_num_threads(1)  # the others are busy translating
        self._explainers.append(Explainer(model.bundle, keep=KEPT_PASSES))
        return self._explainers[-1]

    def _pick(self, request: TraceRequest) -> Model:
        for source, target in self._service.models.directions:
            if request.source in (None, source) and request.target in (None, target):
                return self._service.models.pick(source, target)
        return self._service.models.pick(request.source or "any language", request.target or "any language")


def routes(service: Service) -> list[BaseRoute]:
    """The routes of this protocol."""
    insight = Insight(service)
    handlers: dict[str, Callable[[Insight, Any], Awaitable[Response]]] = {
        "trace": _trace,
        "tensors": _tensors,
        "importance": _answer("importance"),
        "effects": _answer("effects"),
        "replay": _answer("replayed"),
        "compare": _compare,
        "shuffle": _shuffle,
        "page": _page,
    }
    found: list[BaseRoute] = [Route("/explain/models", _models(insight, service), methods=["GET"])]
    for name, handler in handlers.items():
        found.append(Route(f"/explain/{name}", _bounded(insight, name, handler), methods=["POST"]))
    return found


def _bounded(insight: Insight, name: str, handler: Callable[[Insight, Any], Awaitable[Response]]) -> Any:
    async def handle(http: Request) -> Response:
        client = insight.admit(http, COSTS.get(name, 1))
        try:
            body = json.loads(await http.body())
        except ValueError as error:
            raise Refusal(400, "the body is not JSON, expected an object") from error
        if not isinstance(body, Mapping):
            raise Refusal(400, f"the body is a {type(body).__name__}, expected an object")
        async with insight.place(client):
            return await handler(insight, body)

    return handle


def _models(insight: Insight, service: Service) -> Any:
    async def models(http: Request) -> Response:
        insight.admit(http)
        known = [(pair, service.models.pick(*pair)) for pair in service.models.directions]
        return JSONResponse(
            {
                "models": [
                    {
                        "name": model.name,
                        "source": source,
                        "target": target,
                        "architecture": model.bundle.model_config.architecture,
                    }
                    for (source, target), model in known
                ],
                "ready": has_torch(),
                "why": "" if has_torch() else WITHOUT_TORCH,
                "limits": LIMITS,
            }
        )

    return models


async def _trace(insight: Insight, body: Any) -> Response:
    request = checked(body)
    return JSONResponse(await insight.run(lambda explainer: explainer.explain(request).meta(), request))


async def _tensors(insight: Insight, body: Any) -> Response:
    request, names = checked(body.get("request")), body.get("names")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise Refusal(400, "names is missing, expected a list of tensors, as a trace names them")
    if len(names) > LIMITS["names"]:
        raise Refusal(413, f"{len(names)} names are too many at once, at most {LIMITS['names']}")

    def work(explainer: Explainer) -> bytes:
        from dragoman.explain.trace import pack

        return pack(explainer.tensors(request, names))

    return Response(await insight.run(work, request), media_type="application/octet-stream")


def _answer(name: str) -> Callable[[Insight, Any], Awaitable[Response]]:
    async def answer(insight: Insight, body: Any) -> Response:
        request = checked(body.get("request"))
        return JSONResponse(await insight.run(_of_answers(name, request), request))

    return answer


async def _compare(insight: Insight, body: Any) -> Response:
    request, changed = checked(body.get("request")), checked(body.get("changed"))
    if (request.source, request.target) != (changed.source, changed.target):
        raise Refusal(400, "request and changed have different languages, expected the same")
    return JSONResponse(await insight.run(_of_answers("compare", request, changed), request, changed))


async def _shuffle(insight: Insight, body: Any) -> Response:
    request, seed = checked(body.get("request")), body.get("seed", 1)
    if type(seed) is not int:
        raise Refusal(400, f"seed is {seed!r}, expected a whole number")
    return JSONResponse(await insight.run(_of_answers("shuffle", request, seed), request))


async def _page(insight: Insight, body: Any) -> Response:
    request = checked(body.get("request"))
    text = await insight.run(_of_answers("whole_page", request), request)
    headers = {"Content-Disposition": 'attachment; filename="dragoman.html"'}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def checked(values: Any) -> TraceRequest:
    """A request within the limits."""
    request = parse_request(values)
    if any("\ud800" <= character <= "\udfff" for character in request.text):
        raise Refusal(400, "text has half a character (a lone surrogate), expected text that UTF-8 can write")
    for name, size in (("characters", len(request.text)), ("beam", request.beam or 0), ("top", request.top)):
        if size > LIMITS[name]:
            status = 413 if name == "characters" else 400
            raise Refusal(status, f"{name} is {size}, at most {LIMITS[name]} can be explained at once")
    for name in ("prefix", "target_ids"):
        if len(getattr(request, name) or ()) > 2 * LIMITS["pieces"]:
            raise Refusal(413, f"{name} is too long to explain, at most {2 * LIMITS['pieces']} pieces")
    if len(request.off) > LIMITS["off"]:
        raise Refusal(413, f"off has {len(request.off)} heads, at most {LIMITS['off']} can be switched off at once")
    return request


def _of_answers(name: str, *arguments: object) -> Callable[[Explainer], Any]:
    """A function of `explain.answers`, which needs torch, so it is imported in the thread."""

    def work(explainer: Explainer) -> Any:
        from dragoman.explain import answers

        return getattr(answers, name)(explainer, *arguments)

    return work
