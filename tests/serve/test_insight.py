"""Traces over HTTP: the explainer's own numbers, within bounds, from a server that keeps none of them."""

import asyncio
import gc
import json
import mmap
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import safetensors.numpy
from wire_server import make_tiny_service, model_folder, serving

from dragoman.bundle import Bundle
from dragoman.explain import Explainer, TraceRequest
from dragoman.explain.request import parse_request
from dragoman.serve import insight
from dragoman.serve.insight import LIMITS, Insight
from dragoman.serve.keys import hash_key
from dragoman.serve.models import Models
from dragoman.serve.rate import TABLE_BYTES, Buckets
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service
from tiny_bundle import write_tiny_bundle

TEXT = "Baceba dila gupo."


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving() as address, httpx.Client(base_url=address, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(Bundle.open(model_folder("fr-en", "en-fr")))


@pytest.fixture(scope="module")
def meta(client: httpx.Client) -> dict[str, Any]:
    return ask(client, "trace", {"text": TEXT})


def ask(client: httpx.Client, route: str, body: Any) -> Any:
    answer = client.post(f"/explain/{route}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: httpx.Client, route: str, body: Any) -> tuple[int, str]:
    answer = client.post(f"/explain/{route}", json=body)
    return answer.status_code, answer.json()["error"]


def test_a_trace_is_the_explainers(meta: dict[str, Any], explainer: Explainer) -> None:
    assert meta == json.loads(json.dumps(explainer.trace(TEXT).meta()))


def test_tensors_come_as_one_file(client: httpx.Client, meta: dict[str, Any], explainer: Explainer) -> None:
    names = ["encoder.0.self_attention.weights", "rollout.cross", "decoder.1.cross_attention.w_q"]
    answer = client.post("/explain/tensors", json={"request": meta["request"], "names": names})
    assert answer.headers["content-type"] == "application/octet-stream"
    found = safetensors.numpy.load(answer.content)
    expected = explainer.tensors(parse_request(meta["request"]), names)
    assert set(found) == set(names)
    for name in names:
        np.testing.assert_array_equal(found[name], expected[name])
        assert list(found[name].shape) == {**meta["tensors"], **meta["on_demand"]}[name]


def test_a_request_that_is_sent_again_gives_the_same(client: httpx.Client, meta: dict[str, Any]) -> None:
    again = ask(client, "trace", meta["request"])
    assert {**again, "beam": None} == {**meta, "beam": None}


def test_importance_effects_shuffle_and_replay_are_answered(client: httpx.Client, meta: dict[str, Any]) -> None:
    body = {"request": meta["request"]}
    importance = ask(client, "importance", body)
    assert importance["words"] == TEXT.split()
    assert len(importance["change"]) == 3
    assert len(ask(client, "effects", body)["heads"]) == len(meta["heads"])
    shuffled = ask(client, "shuffle", {**body, "seed": 5})
    assert shuffled["without_positions"]["largest_difference"] < 1e-3
    assert ask(client, "replay", body) == {"checkpoints": []}


def test_versions_are_compared(client: httpx.Client, meta: dict[str, Any]) -> None:
    changed = {**meta["request"], "target_ids": None, "text": "Baceba gupo.", "off": ["decoder.0.cross_attention.1"]}
    found = ask(client, "compare", {"request": meta["request"], "changed": changed})
    assert found["before"]["text"] == meta["translation"]["text"]
    assert found["after"]["target_ids"] == ask(client, "trace", changed)["request"]["target_ids"]
    assert " ".join(word for one in found["difference"] for word in one["after"]) == found["after"]["text"]


def test_another_next_piece_is_forced(client: httpx.Client, meta: dict[str, Any]) -> None:
    prefix = [meta["steps"][0]["top"][1]["id"]]
    found = ask(client, "trace", {**meta["request"], "target_ids": None, "prefix": prefix})
    assert found["target"]["pieces"][0]["id"] == prefix[0]
    assert found["beam"]["nodes"]


def test_the_page_comes_as_a_file(client: httpx.Client, meta: dict[str, Any]) -> None:
    answer = client.post("/explain/page", json={"request": meta["request"]})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="dragoman.html"'
    assert "window.DRAGOMAN_TRACE" in answer.text


def test_the_models_and_the_limits_are_told(client: httpx.Client) -> None:
    told = client.get("/explain/models").json()
    assert (told["ready"], told["why"], told["limits"]) == (True, "", LIMITS)
    assert [(one["source"], one["target"], one["architecture"]) for one in told["models"]] == [
        ("fr", "en", "transformer"),
        ("en", "fr", "transformer"),
    ]


@pytest.mark.parametrize(
    ("route", "body", "status", "message"),
    [
        ("trace", [], 400, "the body is a list, expected an object"),
        ("trace", {"text": "a", "beem": 1}, 400, "unknown key 'beem': did you mean 'beam'?"),
        ("trace", {"text": "a" * 1001}, 413, "characters is 1001, at most 1000 can be explained at once"),
        ("trace", {"text": "a", "beam": 17}, 400, "beam is 17, at most 16 can be explained at once"),
        ("trace", {"text": "a", "top": 51}, 400, "top is 51, at most 50 can be explained at once"),
        ("trace", {"text": "a", "prefix": [5] * 257}, 413, "prefix is too long to explain, at most 256 pieces"),
        ("trace", {"text": "a", "length_penalty": float("nan")}, 400, "length_penalty is"),
        ("trace", {"text": "a", "length_penalty": float("inf")}, 400, "length_penalty is"),
        ("trace", {"text": "a", "length_penalty": 10**400}, 400, "length_penalty is"),
        ("trace", {"text": "a", "length_penalty": 1e308}, 400, "expected a number from -10 to 10"),
        ("trace", {"text": "a", "length_penalty": -1e308}, 400, "expected a number from -10 to 10"),
        ("trace", {"text": "a", "length_penalty": 10}, 200, ""),
        ("trace", {"text": "a", "length_penalty": -10}, 200, ""),
        ("trace", {"text": "a", "off": [f"encoder.{'9' * 4301}.self_attention.0"]}, 400, "does not name a head"),
        ("trace", {"text": "a", "off": ["encoder.999.self_attention.0"]}, 400, "there is no head encoder.999"),
        ("trace", {"text": "a", "off": ["encoder.0.self_attention.0"] * 501}, 413, "off has 501 heads, at most 500"),
        ("trace", {"text": "a", "beam": 10**400}, 400, "at most 16 can be explained at once"),
        ("trace", {"text": "a", "source": "zz"}, 400, "zz is not supported"),
        ("trace", {"text": "a\ud800"}, 400, "text has half a character"),
        ("trace", {"text": "a", "source": "\ud800"}, 400, "is not supported"),
        ("trace", {"text": "\u202e <script>\x00"}, 200, ""),
        ("tensors", {"request": {"text": "a"}}, 400, "names is missing, expected a list of tensors"),
        ("tensors", {"request": {"text": "a"}, "names": ["x"] * 501}, 413, "501 names are too many at once"),
        ("tensors", {"request": {"text": "a"}, "names": ["logit"]}, 400, "did you mean 'logits'?"),
        ("compare", {"request": {"text": "a"}}, 400, "the request is a NoneType, expected an object with a text"),
        ("compare", {"request": {"text": "a"}, "changed": {"text": "a", "source": "en"}}, 400, "different languages"),
        ("shuffle", {"request": {"text": "a"}, "seed": "x"}, 400, "seed is 'x', expected a whole number"),
    ],
)
def test_requests_are_bounded(client: httpx.Client, route: str, body: Any, status: int, message: str) -> None:
    answer = client.post(f"/explain/{route}", content=json.dumps(body))  # as Python writes it, NaN and all
    assert answer.status_code == status, answer.text
    assert message in answer.json().get("error", "")


def test_a_sentence_of_too_many_pieces_is_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "pieces", 7)
    text = "Baceba dila gupo lame ni."
    for route, body in (
        ("trace", {"text": text}),
        ("compare", {"request": {"text": "Ba."}, "changed": {"text": text}}),
    ):
        status, message = refused(client, route, body)
        assert status == 413
        assert message.endswith("is too long to explain, at most 7")


def test_what_is_no_json_is_refused(client: httpx.Client) -> None:
    answer = client.post("/explain/trace", content=b"{")
    assert (answer.status_code, answer.json()) == (400, {"error": "the body is not JSON, expected an object"})


def test_who_comes_too_often_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insight, "PER_MINUTE", 2.0)
    with serving() as address, httpx.Client(base_url=address) as client:
        answers = [client.get("/explain/models") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json() == {"error": "Too many requests for traces: slow down"}
    assert 1 <= int(answers[2].headers["retry-after"]) <= 30


def test_what_is_more_work_costs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insight, "PER_MINUTE", 8.0)
    body = {"request": {"text": "Ba."}}
    with serving() as address, httpx.Client(base_url=address, timeout=120) as client:
        answers = [client.post(f"/explain/{route}", json=body) for route in ("effects", "effects", "importance")]
        assert client.get("/explain/models").status_code == 200
    assert [answer.status_code for answer in answers] == [200, 429, 429]


def test_a_person_who_clicks_and_looks_is_not_refused() -> None:
    now = [5.0]
    buckets = Buckets(insight.PER_MINUTE, mmap.mmap(-1, TABLE_BYTES), lambda: now[0])
    for click in range(600):
        now[0] += 2
        # More than a page asks for at a click: a translation, its tensors in two parts, and one answer.
        for route in ("trace", "tensors", "tensors", ("importance", "compare", "effects")[click % 3]):
            assert buckets.take("anna", insight.COSTS.get(route, 1)) == 0


def test_what_costs_more_than_there_ever_is_costs_all_of_it() -> None:
    now = [5.0]
    two = Buckets(2, mmap.mmap(-1, TABLE_BYTES), lambda: now[0])
    assert [two.take("anna", 15), two.take("anna", 15)] == [0, 60]


def test_a_key_is_asked_for_where_one_is_needed(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{hash_key('open sesame, open')} anna\n", encoding="utf-8")
    with serving(api_keys=str(tmp_path / "keys")) as address, httpx.Client(base_url=address) as client:
        without = client.get("/explain/models")
        given = client.get("/explain/models", headers={"Authorization": "Bearer open sesame, open"})
    assert (without.status_code, given.status_code) == (400, 200)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insight, "has_torch", lambda: False)
    with serving() as address, httpx.Client(base_url=address) as client:
        assert refused(client, "trace", {"text": TEXT}) == (503, insight.WITHOUT_TORCH)
        told = client.get("/explain/models").json()
    assert (told["ready"], told["why"]) == (
        False,
        "explaining needs torch: pip install -c constraints.txt '.[train]' in dragoman's folder",
    )


@pytest.fixture
def service() -> Iterator[Service]:
    service = make_tiny_service()
    yield service
    service.close()


def test_a_full_queue_is_told(service: Service) -> None:
    full = Insight(service)
    full._waiting = insight.QUEUE
    with pytest.raises(Refusal, match="too many traces are waiting") as caught:
        asyncio.run(full.run(lambda explainer: None, TraceRequest(text="a")))
    assert caught.value.status == 503


def test_who_asks_for_much_does_not_keep_others_waiting(service: Service) -> None:
    order: list[str] = []
    begin = threading.Event()

    async def ask_for(shared: Insight, name: str) -> None:
        def work(explainer: Explainer) -> None:
            begin.wait(timeout=60)
            order.append(name)

        async with shared.place(name):
            await shared.run(work, TraceRequest(text="Ba."))

    async def ask_all() -> int:
        shared = Insight(service)
        asked = [asyncio.create_task(ask_for(shared, "anna")) for _ in range(insight.QUEUE + 7)]
        await asyncio.sleep(0.05)
        asked.append(asyncio.create_task(ask_for(shared, "ben")))
        await asyncio.sleep(0.05)
        waiting = shared._waiting
        begin.set()
        await asyncio.gather(*asked)
        assert not shared._places
        return waiting

    assert asyncio.run(ask_all()) == insight.PLACES + 1
    assert order.index("ben") == insight.PLACES
    assert len(order) == insight.QUEUE + 8


def test_who_waits_too_long_is_told(service: Service) -> None:
    begun, end = threading.Event(), threading.Event()

    def work(explainer: Explainer) -> None:
        begun.set()
        end.wait(timeout=60)

    async def ask_for(shared: Insight) -> None:
        async with shared.place("anna"):
            await shared.run(work, TraceRequest(text="Ba."))

    async def ask_all() -> list[Any]:
        shared = Insight(service)
        # The first is under way, the second waits for the thread, the third for a place.
        asked = [asyncio.create_task(ask_for(shared))]
        await asyncio.to_thread(begun.wait, 60)
        service.settings = replace(service.settings, timeout_seconds=0.2)
        asked += [asyncio.create_task(ask_for(shared)) for _ in range(insight.PLACES)]
        await asyncio.sleep(0.4)
        end.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    first, *others = asyncio.run(ask_all())
    assert first is None
    assert [(one.status, str(one)) for one in others] == [(503, insight.LATE)] * insight.PLACES


def test_each_model_is_explained_by_its_own_weights(service: Service, tmp_path: Path) -> None:
    """Two folders of one name, and the same folders again, as SIGHUP reads them."""
    folders = [tmp_path / run / "model" for run in ("a", "b")]
    for seed, (folder, direction) in enumerate(zip(folders, ("fr-en", "en-fr"), strict=True), start=1):
        write_tiny_bundle(folder, directions=(direction,), seed=seed)
    shared = Insight(service)

    def explainers() -> list[Explainer]:
        asked = [TraceRequest(text="Ba.", source=source) for source in ("fr", "en")]
        return [asyncio.run(shared.run(lambda explainer: explainer, request)) for request in asked]

    def load() -> None:
        service.models = Models.load([str(folder) for folder in folders], "float32", 1)

    def largest(explainer: Explainer) -> float:
        return explainer.model.target_embedding.pieces.weight.max().item()

    load()
    first, second = explainers()
    assert first.bundle is service.models.pick("fr", "en").bundle
    assert second.bundle is service.models.pick("en", "fr").bundle
    assert [id(one) for one in explainers()] == [id(first), id(second)]
    before, gone = largest(first), weakref.ref(first)
    del first
    write_tiny_bundle(folders[0], directions=("fr-en",), seed=5)
    load()
    reloaded, _ = explainers()
    assert reloaded.bundle is service.models.pick("fr", "en").bundle
    assert largest(reloaded) != before
    gc.collect()
    assert gone() is None
