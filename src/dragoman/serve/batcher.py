"""Requests that arrive together become batches, fairly, and each gets what it would have got alone.

A request is cut into sentences. A batch takes one sentence of each client in turn, and of each client's requests in
turn, until it is full: a huge request gets its share of every batch and no more. Only sentences with the same key
(model, direction, options) go together.

While threads of the engine are idle, what waits is started at once, shared out among them. When all are busy, one more
batch is made ready, so that none has to wait for the next. A batch waits for company, up to `max_wait_seconds`, only
where that is likely to come: when all are busy, and when several requests have just been answered, whose clients may
ask again.

Everything here happens in the event loop; only `run` may use threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dragoman.serve.refusal import Refusal

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

_FIRST_GUESS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Batch:
    """What was run at once: for the counters."""

    num_sentences: int
    num_tokens: int
    num_requests: int
    seconds: float


@dataclass(eq=False)
class _Request(Generic[K, R]):
    """A request under way. `next_place` is the first sentence that is still waiting."""

    client: str
    key: K
    sentences: Sequence[str]
    tokens: Sequence[int]
    answer: asyncio.Future[list[R]]
    since: float
    results: dict[int, R] = field(default_factory=dict)
    next_place: int = 0

    @property
    def is_waiting(self) -> bool:
        return self.next_place < len(self.sentences)


_Taken = list[tuple[_Request[K, R], int]]


class Batcher(Generic[K, R]):
    """Collects sentences and hands them to `run`, which translates sentences of one key, in order."""

    def __init__(
        self,
        run: Callable[[K, Sequence[str]], Awaitable[Sequence[R]]],
        *,
        threads: int,
        batch_tokens: int,
        queue_limit: int,
        max_wait_seconds: float,
        on_batch: Callable[[Batch], None] = lambda batch: None,
        clock: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], asyncio.TimerHandle] | None = None,
    ) -> None:
        """`clock` and `call_later` are the event loop's, unless a test turns the hands itself."""
        self._run = run
        self._threads = threads
        self._batch_tokens = batch_tokens
        self._queue_limit = queue_limit
        self._max_wait_seconds = max_wait_seconds
        self._on_batch = on_batch
        self._clock = clock
        self._call_later = call_later
        self._clients: dict[str, deque[_Request[K, R]]] = {}  # in turn: who is served goes to the end
        self._num_requests = 0
        self._preparing: Counter[str] = Counter()  # requests of each client that have a place, and no sentences yet
        self._waiting_tokens = self._running_tokens = 0
        self._running: set[asyncio.Task[None]] = set()
        self._pump_soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tokens_a_second: float | None = None
        self._expected = 0  # requests, of clients that were answered at that time
        self._expected_since = 0.0

    @property
    def num_requests(self) -> int:
        """Requests that have a place: sentences of theirs wait, or are being made ready."""
        return self._num_requests + sum(self._preparing.values())

    @property
    def num_running(self) -> int:
        """Batches that the engine has."""
        return len(self._running)

    @property
    def wait_seconds(self) -> float:
        """How long a request that came now would wait, at the pace of the last batches."""
        if self._tokens_a_second is None:
            return _FIRST_GUESS_SECONDS
        return self._waiting_tokens / self._tokens_a_second

    @contextlib.contextmanager
    def place(self, client: str) -> Iterator[None]:
        """A place in the queue for a request that is being made ready; refuses when there is none.

        It is given back at the end of the block. Who calls `submit` in the same turn of the loop finds it still there.
        """
        self._check_room(client)
        self._preparing[client] += 1
        try:
            yield
        finally:
            self._preparing[client] -= 1
            if not self._preparing[client]:
                del self._preparing[client]

    async def submit(self, client: str, key: K, sentences: Sequence[str], tokens: Sequence[int]) -> list[R]:
        """What becomes of the sentences, in order; `tokens` are their sizes. Cancelling it gives its place up."""
        if not sentences:
            return []
        self._check_room(client)
        loop = asyncio.get_running_loop()
        request = _Request(client, key, sentences, tokens, loop.create_future(), self._clock())
        self._clients.setdefault(client, deque()).append(request)
        self._num_requests += 1
        self._waiting_tokens += sum(tokens)
        if self._pump_soon is None:
            # Soon, and not at once: what arrives in the same turn of the loop shares a batch.
            self._pump_soon = loop.call_soon(self._pump)
        try:
            return await request.answer
        finally:
            self._withdraw(request)

    def _check_room(self, client: str) -> None:
        own = len(self._clients.get(client, ())) + self._preparing.get(client, 0)
        if self.num_requests >= self._queue_limit or own >= max(1, self._queue_limit // 2):
            raise Refusal(
                503,
                f"{self.num_requests} requests are waiting, that is all this server can take: try again later",
                retry_after_seconds=self.wait_seconds,
            )

    def _withdraw(self, request: _Request[K, R]) -> None:
        """Take what still waits out of the queue; all done or given up, it is the same."""
        if request.is_waiting:
            self._waiting_tokens -= sum(request.tokens[request.next_place :])
            request.next_place = len(request.sentences)
            self._clients[request.client].remove(request)
            self._leave(request.client)

    def _leave(self, client: str) -> None:
        self._num_requests -= 1
        if not self._clients[client]:
            del self._clients[client]

    def _pump(self) -> None:
        """Start what can be started."""
        self._pump_soon = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._clients and len(self._running) <= self._threads:
            remaining = self._hold_until() - self._clock()
            if remaining > 0:
                call_later = self._call_later or asyncio.get_running_loop().call_later
                self._timer = call_later(remaining, self._pump)
                return
            key, taken = self._take()
            task = asyncio.get_running_loop().create_task(self._execute(key, taken))
            self._running.add(task)
            task.add_done_callback(self._finished)

    def _hold_until(self) -> float:
        """Until when to wait for company."""
        is_busy = len(self._running) == self._threads
        if self._waiting_tokens >= self._batch_tokens or (not is_busy and self._num_requests >= self._expected):
            return 0.0
        oldest = min(requests[0].since for requests in self._clients.values())
        return (oldest if is_busy else min(oldest, self._expected_since)) + self._max_wait_seconds

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._pump()

    def _take(self) -> tuple[K, _Taken[K, R]]:
        """A batch: the key of the client whose turn it is, and a sentence of each in turn until it is full."""
        key = next(iter(self._clients.values()))[0].key
        room = self._share()
        taken: _Taken[K, R] = []
        num_tokens = 0
        for request in self._turns(key):
            place = request.next_place
            if taken and num_tokens + request.tokens[place] > room:
                break
            taken.append((request, place))
            num_tokens += request.tokens[place]
            self._served(request)
        self._waiting_tokens -= num_tokens
        self._running_tokens += num_tokens
        return key, taken

    def _share(self) -> int:
        """The tokens of a batch that leaves the other threads their share, of what waits and of what is under way."""
        idle = max(1, self._threads - len(self._running))
        even = -(-(self._waiting_tokens + self._running_tokens) // self._threads)
        return min(self._batch_tokens, even, -(-self._waiting_tokens // idle))

    def _turns(self, key: K) -> Iterator[_Request[K, R]]:
        """The request whose turn it is, again and again, until no sentence of that key is left."""
        found = True
        while found:
            found = False
            for requests in list(self._clients.values()):
                request = next((one for one in requests if one.key == key), None)
                if request is not None:
                    found = True
                    yield request

    def _served(self, request: _Request[K, R]) -> None:
        """A sentence of the request was taken: it and its client go to the end of their queues."""
        request.next_place += 1
        requests = self._clients.pop(request.client)
        requests.remove(request)
        self._clients[request.client] = requests
        if request.is_waiting:
            requests.append(request)
        else:
            self._leave(request.client)

    async def _execute(self, key: K, taken: _Taken[K, R]) -> None:
        begin = self._clock()
        num_tokens = sum(request.tokens[place] for request, place in taken)
        try:
            results = await self._run(key, [request.sentences[place] for request, place in taken])
        except Exception as error:
            await self._execute_apart(key, taken, error)
            return
        finally:
            self._running_tokens -= num_tokens
        self._deliver(taken, results)
        seconds = self._clock() - begin
        pace = num_tokens / max(seconds, 1e-6) * min(self._threads, max(1, len(self._running)))
        self._tokens_a_second = pace if self._tokens_a_second is None else 0.8 * self._tokens_a_second + 0.2 * pace
        num_requests = len({id(request) for request, _ in taken})
        self._expected, self._expected_since = (num_requests if num_requests > 1 else 0), self._clock()
        self._on_batch(Batch(len(taken), num_tokens, num_requests, seconds))

    async def _execute_apart(self, key: K, taken: _Taken[K, R], error: Exception) -> None:
        """A batch failed. One request's trouble must not be another's: each is tried on its own."""
        groups: dict[int, _Taken[K, R]] = {}
        for request, place in taken:
            groups.setdefault(id(request), []).append((request, place))
        for group in groups.values():
            own_error: Exception | None = error
            if len(groups) > 1:
                try:
                    results = await self._run(key, [request.sentences[place] for request, place in group])
                    own_error = None
                except Exception as again:
                    own_error = again
            if own_error is None:
                self._deliver(group, results)
            elif not group[0][0].answer.done():
                group[0][0].answer.set_exception(own_error)

    def _deliver(self, taken: _Taken[K, R], results: Sequence[R]) -> None:
        for (request, place), result in zip(taken, results, strict=True):
            request.results[place] = result
            if len(request.results) == len(request.sentences) and not request.answer.done():
                request.answer.set_result([request.results[place] for place in range(len(request.sentences))])
