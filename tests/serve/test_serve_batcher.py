"""The batcher: fair between clients, bounded, and each request gets what it would have got alone."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.serve.batcher import Batch, Batcher
from dragoman.serve.refusal import Refusal


class Engine:
    """Translates a sentence by shouting it, when the test says so; remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.keys: list[Any] = []
        self.waiting: list[asyncio.Event] = []
        self.poison: set[str] = set()

    async def run(self, key: Any, sentences: Sequence[str]) -> list[str]:
        event = asyncio.Event()
        self.batches.append(list(sentences))
        self.keys.append(key)
        self.waiting.append(event)
        await event.wait()
        if self.poison & set(sentences):
            raise ValueError("poison")
        return [f"{sentence.upper()}/{key}" for sentence in sentences]

    def finish(self) -> None:
        """Let the oldest batch end."""
        self.waiting.pop(0).set()


def make(engine: Engine, **changes: Any) -> Batcher[Any, str]:
    chosen: dict[str, Any] = {"threads": 1, "batch_tokens": 7, "queue_limit": 101, "max_wait_seconds": 0.0}
    return Batcher(engine.run, **{**chosen, **changes})


def ask(batcher: Batcher[Any, str], client: str, sentences: Sequence[str], key: Any = "k") -> asyncio.Task[list[str]]:
    """A request of sentences of one token each."""
    return asyncio.create_task(batcher.submit(client, key, sentences, [1] * len(sentences)))


async def settle() -> None:
    """Let everything happen that can happen now."""
    for _ in range(20):
        await asyncio.sleep(0)


async def finish_all(engine: Engine) -> None:
    await settle()
    while engine.waiting:
        engine.finish()
        await settle()


def in_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A test that runs in an event loop."""

    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    run.__name__ = test.__name__
    return run


# Batches


class Clock:
    """Hands that a test turns itself: the time in `now`, and what was to be called when in `timers`."""

    def __init__(self) -> None:
        self.now = [0.0]
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        self.timers.append((seconds, callback))
        return asyncio.get_running_loop().call_later(1e9, callback)


@in_loop
async def test_what_arrives_together_is_one_batch() -> None:
    engine = Engine()
    batcher = make(engine)
    requests = [ask(batcher, client, [client]) for client in ("anna", "ben", "cleo")]
    await finish_all(engine)
    assert engine.batches == [["anna", "ben", "cleo"]]
    assert [request.result() for request in requests] == [["ANNA/k"], ["BEN/k"], ["CLEO/k"]]


@in_loop
async def test_an_idle_engine_is_not_kept_waiting_for_company() -> None:
    engine = Engine()
    batcher = make(engine, threads=2, max_wait_seconds=1e9)
    for number, client in enumerate(("anna", "ben"), start=1):
        ask(batcher, client, [client])
        await settle()
        assert len(engine.batches) == number
    await finish_all(engine)


@in_loop
async def test_a_busy_engine_gets_one_more_batch_when_it_is_full_or_has_waited_long_enough() -> None:
    engine, clock = Engine(), Clock()
    now, timers = clock.now, clock.timers
    batcher = make(engine, max_wait_seconds=3.0, clock=lambda: now[0], call_later=clock.call_later)
    ask(batcher, "anna", ["first"])
    await settle()
    ask(batcher, "ben", ["b"])
    await settle()
    assert len(engine.batches) == 1
    assert timers[-1][0] == 3.0
    now[0] = 1.0
    ask(batcher, "cleo", ["c"])
    await settle()
    assert timers[-1][0] == 2.0  # it is the oldest that must not wait for longer
    now[0] = 3.0
    timers[-1][1]()
    await settle()
    assert engine.batches == [["first"], ["b", "c"]]
    engine.finish()
    await settle()
    ask(batcher, "ben", list("defghij"))
    await settle()
    assert engine.batches[2:] == [list("defghij")]  # full: no need to wait
    ask(batcher, "ben", list("klmnopq"))
    await settle()
    assert len(engine.batches) == 3  # and no more than one batch waits at the engine
    await finish_all(engine)


@in_loop
async def test_idle_threads_share_what_waits() -> None:
    engine = Engine()
    batcher = make(engine, threads=3, batch_tokens=101)
    request = ask(batcher, "anna", list("abcdefghij"))
    await settle()
    assert engine.batches == [list("abcd"), list("efg"), list("hij")]
    await finish_all(engine)
    assert request.result() == [f"{letter}/k" for letter in "ABCDEFGHIJ"]


@in_loop
async def test_clients_that_were_answered_together_are_waited_for_but_not_a_single_one() -> None:
    engine, clock = Engine(), Clock()
    now, timers = clock.now, clock.timers
    batcher = make(engine, max_wait_seconds=3.0, clock=lambda: now[0], call_later=clock.call_later)
    ask(batcher, "anna", ["a"])
    await settle()
    await finish_all(engine)
    ask(batcher, "anna", ["again"])
    await settle()
    assert (len(engine.batches), timers) == (2, [])
    await finish_all(engine)
    for client in ("anna", "ben"):
        ask(batcher, client, [client])
    await finish_all(engine)
    now[0] = 1.0
    ask(batcher, "anna", ["third"])
    await settle()
    assert (len(engine.batches), timers[-1][0]) == (3, 2.0)
    ask(batcher, "ben", ["fourth"])
    await settle()
    assert engine.batches[3] == ["third", "fourth"]
    await finish_all(engine)


@in_loop
async def test_a_batch_holds_no_more_tokens_than_it_may_but_always_a_sentence() -> None:
    engine = Engine()
    batcher = make(engine)
    request = asyncio.create_task(batcher.submit("anna", "k", ["a", "b", "c", "d"], [3, 3, 3, 11]))
    await finish_all(engine)
    assert engine.batches == [["a", "b"], ["c"], ["d"]]
    assert request.result() == ["A/k", "B/k", "C/k", "D/k"]


@in_loop
async def test_only_what_has_the_same_key_goes_together_and_no_key_waits_for_ever() -> None:
    engine = Engine()
    batcher = make(engine, batch_tokens=2)
    requests = [
        ask(batcher, "anna", list("abcdef"), key="fr-en"),
        ask(batcher, "ben", ["x"], key="en-fr"),
        ask(batcher, "cleo", ["y"], key="fr-en"),
    ]
    await finish_all(engine)
    assert engine.batches[:2] == [["a", "y"], ["x"]]
    assert engine.keys[:2] == ["fr-en", "en-fr"]
    assert [request.result()[0] for request in requests] == ["A/fr-en", "X/en-fr", "Y/fr-en"]


@in_loop
async def test_a_request_of_nothing_is_answered_at_once() -> None:
    assert await make(Engine()).submit("anna", "k", [], []) == []


# Fairness


@in_loop
async def test_a_huge_request_cannot_starve_a_small_one() -> None:
    engine = Engine()
    batcher = make(engine)
    huge = ask(batcher, "anna", [f"huge {number}" for number in range(997)])
    await settle()
    small = ask(batcher, "ben", ["small"])
    await settle()
    started = len(engine.batches)
    engine.finish()
    await settle()
    assert "small" in engine.batches[started]
    await finish_all(engine)
    assert small.result() == ["SMALL/k"]
    assert huge.result() == [f"HUGE {number}/k" for number in range(997)]


@in_loop
async def test_requests_of_one_client_take_turns_too() -> None:
    engine = Engine()
    batcher = make(engine)
    ask(batcher, "anna", [f"huge {number}" for number in range(97)])
    await settle()
    ask(batcher, "anna", ["small"])
    await settle()
    started = len(engine.batches)
    engine.finish()
    await settle()
    assert "small" in engine.batches[started]
    await finish_all(engine)


@in_loop
async def test_clients_get_equal_shares_however_many_requests_they_make() -> None:
    engine = Engine()
    batcher = make(engine, batch_tokens=6)
    ask(batcher, "starter", ["s"])
    await settle()
    for number in range(20):
        ask(batcher, "anna", [f"anna {number}"])
    ask(batcher, "ben", [f"ben {number}" for number in range(20)])
    ask(batcher, "cleo", [f"cleo {number}" for number in range(20)])
    await finish_all(engine)
    full = [batch for batch in engine.batches if len(batch) == 6][:8]
    assert len(full) == 8
    for batch in full:
        assert [sum(sentence.startswith(name) for sentence in batch) for name in ("anna", "ben", "cleo")] == [2, 2, 2]


# The same as alone


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["anna", "ben", "cleo"]),
            st.sampled_from(["fr-en", "en-fr"]),
            st.lists(st.tuples(st.text(max_size=3), st.integers(1, 9)), max_size=7),
        ),
        max_size=11,
    ),
    st.integers(1, 3),
    st.integers(1, 13),
    st.randoms(use_true_random=False),
)
def test_whatever_comes_together_each_gets_what_it_would_have_got_alone(
    requests: list[tuple[str, str, list[tuple[str, int]]]], threads: int, batch_tokens: int, draw: Any
) -> None:
    async def run() -> None:
        engine = Engine()
        batcher = make(engine, threads=threads, batch_tokens=batch_tokens)
        tasks = []
        for client, key, sentences in requests:
            texts, tokens = [text for text, _ in sentences], [size for _, size in sentences]
            tasks.append(asyncio.create_task(batcher.submit(client, key, texts, tokens)))
            if draw.random() < 0.5:
                await settle()
            if engine.waiting and draw.random() < 0.3:
                engine.waiting.pop(draw.randrange(len(engine.waiting))).set()
        await finish_all(engine)
        for task, (_, key, sentences) in zip(tasks, requests, strict=True):
            assert task.result() == [f"{text.upper()}/{key}" for text, _ in sentences]
        assert (batcher.num_requests, batcher.num_running) == (0, 0)
        assert sum(map(len, engine.batches)) == sum(len(sentences) for _, _, sentences in requests)

    asyncio.run(run())


@in_loop
async def test_one_request_that_fails_does_not_take_others_with_it() -> None:
    engine = Engine()
    engine.poison = {"bad"}
    batcher = make(engine)
    good, bad = ask(batcher, "anna", ["good"]), ask(batcher, "ben", ["fine", "bad", *"abcdefgh"])
    await finish_all(engine)
    assert good.result() == ["GOOD/k"]
    assert isinstance(bad.exception(), ValueError)
    assert batcher.num_requests == 0


# Giving up


@in_loop
async def test_who_gives_up_leaves_the_queue() -> None:
    engine = Engine()
    batcher = make(engine)
    first = ask(batcher, "anna", ["first"])
    extra = ask(batcher, "anna", list("abcdefghijklm"))
    await settle()
    gone, stays = ask(batcher, "ben", ["gone", "away"]), ask(batcher, "cleo", ["stays"])
    await settle()
    gone.cancel()
    extra.cancel()
    await settle()
    assert batcher.num_requests == 1
    await finish_all(engine)
    assert (first.result(), stays.result()) == (["FIRST/k"], ["STAYS/k"])
    assert not {"gone", "away"} & {sentence for batch in engine.batches for sentence in batch}
    assert gone.cancelled()
    assert batcher.wait_seconds == 0.0


@in_loop
async def test_a_full_queue_refuses_with_a_time_to_come_again() -> None:
    engine = Engine()
    batcher = make(engine, queue_limit=4, batch_tokens=1)
    for number in range(4 + 2):  # two are at the engine
        ask(batcher, f"client {number}", ["waits"])
        await settle()
    with pytest.raises(
        Refusal, match=r"^4 requests are waiting, that is all this server can take: try again"
    ) as refused:
        await batcher.submit("late", "k", ["late"], [1])
    assert refused.value.status == 503
    assert refused.value.headers == {"Retry-After": "1"}
    engine.finish()
    await settle()
    late = ask(batcher, "late", ["late"])
    await finish_all(engine)
    assert late.result() == ["LATE/k"]


@in_loop
async def test_one_client_cannot_take_all_places_of_the_queue() -> None:
    engine = Engine()
    batcher = make(engine, queue_limit=4, batch_tokens=1)
    for _ in range(2 + 2):
        ask(batcher, "anna", ["waits"])
        await settle()
    with pytest.raises(Refusal):
        await batcher.submit("anna", "k", ["one too many"], [1])
    other = ask(batcher, "ben", ["fits"])
    await finish_all(engine)
    assert other.result() == ["FITS/k"]


@in_loop
async def test_what_is_made_ready_has_a_place_of_the_queue_and_keeps_it() -> None:
    engine = Engine()
    batcher = make(engine, queue_limit=2)
    with batcher.place("anna"):
        assert batcher.num_requests == 1
        with pytest.raises(Refusal), batcher.place("anna"):  # half of the queue is anna's
            pass
        with batcher.place("ben"):
            with pytest.raises(Refusal, match=r"^2 requests are waiting"), batcher.place("cleo"):
                pass
            with pytest.raises(Refusal, match=r"^2 requests are waiting"):
                await batcher.submit("cleo", "k", ["c"], [1])
        assert batcher.num_requests == 1
    own = ask(batcher, "anna", ["a"])
    await finish_all(engine)
    assert own.result() == ["A/k"]
    assert batcher.num_requests == 0


@in_loop
async def test_batches_are_counted() -> None:
    engine, counted, now = Engine(), [], [0.0]
    batcher = make(engine, on_batch=counted.append, clock=lambda: now[0])
    own = asyncio.create_task(batcher.submit("anna", "k", ["a", "b"], [2, 3]))
    ask(batcher, "ben", ["c"])
    await settle()
    now[0] = 0.5
    await finish_all(engine)
    assert own.done()
    assert counted == [Batch(num_sentences=3, num_tokens=6, num_requests=2, seconds=0.5)]
