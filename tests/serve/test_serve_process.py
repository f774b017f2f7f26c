"""The server as a process: it starts, drains, reloads, replaces the dead, and says no when it is full."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_process import PATIENCE_SECONDS, Answer, Server, eventually, serving

from tiny_bundle import tiny_texts, write_tiny_bundle

TEXT = "Baceba dila. Lame ni!"
LONG = tiny_texts(397, seed=7)
HUGE = [
    f"{text[:-1]} {word}." for word in ("ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru") for text in LONG
]
SLOWLY = ("--batch-tokens", "1", "--threads", "1")
"""A sentence at a time: long requests then wait long enough to be seen waiting."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp("process") / "model").path


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    """One that is only asked."""
    with serving(model) as running:
        yield running


class Asking(threading.Thread):
    """A request under way."""

    def __init__(self, server: Server, texts: list[str]) -> None:
        super().__init__(daemon=True)
        self._server, self._texts = server, texts
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self._server.translate(self._texts)
        except Exception as error:
            self.error = error

    def finish(self) -> Answer:
        self.join(PATIENCE_SECONDS)
        assert self.answer is not None, self.error
        return self.answer


# Starting and answering


def test_it_says_what_it_serves_and_where(server: Server, model: Path) -> None:
    assert server.request("/health").json == {"status": "ok"}
    assert server.translate(TEXT).status == 200


def test_a_long_request_and_many_short_ones_are_answered_as_alone(server: Server) -> None:
    alone = [server.translate(text).json["translatedText"] for text in LONG[:7]]
    long = Asking(server, LONG)
    short = [Asking(server, [text]) for text in LONG[:7]]
    together = long.finish().json["translatedText"]
    assert [one.finish().json["translatedText"][0] for one in short] == alone
    assert together[:7] == alone


def test_the_log_tells_of_each_request_and_nothing_of_its_text(server: Server) -> None:
    before = len(server.access_log())

    def told() -> list[dict[str, Any]]:
        """Of short texts: a long one that another test gave up may be told of late."""
        return [line for line in server.access_log()[before:] if line["characters"] < 10]

    server.request(f"/translate?q={'Poru'}&source=fr&target=en", body=b"")
    server.translate("Poru.", api_key="poru-key")
    lines = eventually(lambda: len(told()) >= 2 and told())
    assert "oru" not in json.dumps(lines)
    assert {(line["route"], line["status"], line["method"], line["characters"]) for line in lines} == {
        ("/translate", 200, "POST", 4), ("/translate", 200, "POST", 5),
    }  # fmt: skip


def test_metrics_count_what_was_done(server: Server) -> None:
    before = server.metric("dragoman_sentences_total")
    server.translate(["Gulafo.", "Lame. Poru."])
    assert server.metric("dragoman_sentences_total") == before + 3
    assert server.metric("dragoman_queue_requests") == 0
    text = server.request("/metrics").body.decode()
    assert re.search(r'dragoman_requests_total\{route="/translate",status="200"\} \d+', text)


def test_it_starts_without_torch(model: Path) -> None:
    code = """
import sys
from dragoman.serve.settings import Settings
from dragoman.serve import run, worker
def work(settings, shared, number, on_ready):
    on_ready(worker.make_service(settings, shared, number))
run.work = work
run.run(Settings(model=(sys.argv[1],), port=0), print)
print([name for name in sys.modules if name == "torch"])
"""
    environment = {**os.environ, "DRAGOMAN_CACHE": str(model.parent / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", code, str(model)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=True,
    )
    announcement, torch = result.stdout.splitlines()
    assert re.fullmatch(r"dragoman serves fr-en \(model\) on http://127\.0\.0\.1:\d+", announcement)
    assert torch == "[]"


def test_keys_are_asked_for_and_never_logged(model: Path, tmp_path: Path) -> None:
    from dragoman.serve.keys import hash_key

    key = "a-key-of-many-letters"
    (tmp_path / "keys").write_text(f"{hash_key(key)} ours\n", encoding="utf-8")
    with serving(model, "--api-keys", str(tmp_path / "keys")) as server:
        assert server.translate(TEXT).status == 400
        assert server.translate(TEXT, api_key="another-key-of-many-letters").status == 403
        assert server.translate(TEXT, api_key=key).status == 200
        assert server.request("/metrics").status == 400
        assert server.request("/metrics", headers={"Authorization": f"Bearer {key}"}).status == 200
        assert server.stop() == 0
        eventually(lambda: len(server.access_log()) >= 5)
        assert "many-letters" not in "".join(server.errors)
        assert [line.get("client") for line in server.access_log()] == [
            "127.0.0.1",
            "127.0.0.1",
            "ours",
            "127.0.0.1",
            "ours",
        ]


def test_texts_are_logged_only_where_that_is_asked_for(model: Path, tmp_path: Path) -> None:
    with serving(model, "--access-log", str(tmp_path / "log"), "--log-text") as server:
        translation = server.translate("Poru.").json["translatedText"]
        assert server.stop() == 0
    (line,) = map(json.loads, (tmp_path / "log").read_text(encoding="utf-8").splitlines())
    assert (line["text"], line["translation"]) == (["Poru."], [translation])


@pytest.mark.parametrize(("trusted", "client"), [("127.0.0.1", "192.0.2.9"), ("192.0.2.1", "127.0.0.1")])
def test_a_forwarded_address_is_believed_only_from_proxies_that_are_trusted(
    model: Path, trusted: str, client: str
) -> None:
    with serving(model, "--trusted-proxies", trusted) as server:
        fields = {"q": TEXT, "source": "fr", "target": "en"}
        assert server.request("/translate", fields, headers={"X-Forwarded-For": "192.0.2.9"}).status == 200
        assert server.stop() == 0
        assert eventually(lambda: server.access_log() and server.access_log()[0]["client"]) == client


# Full, and hung up


def test_a_full_queue_is_503_with_a_time_and_hanging_up_makes_room(model: Path) -> None:
    with serving(model, *SLOWLY, "--queue-limit", "1", "--batch-limit", "0", "--char-limit", "0") as server:
        body = json.dumps({"q": HUGE, "source": "fr", "target": "en"}).encode()
        head = (
            f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        )
        with server.connect() as connection:
            connection.sendall(head.encode() + b"\r\n" + body)
            eventually(lambda: server.metric("dragoman_queue_requests") == 1)
            refused = server.translate(TEXT)
            assert refused.status == 503
            assert int(refused.headers["retry-after"]) >= 1
            assert "try again later" in refused.json["error"]
        assert eventually(lambda: server.translate(TEXT).status == 200)
        assert eventually(lambda: 'route="/translate",status="499"} 1' in server.request("/metrics").body.decode())


# Signals


def test_sigterm_finishes_what_was_accepted_and_ends_well(model: Path) -> None:
    with serving(model, *SLOWLY) as server:
        requests = [Asking(server, LONG[start : start + 101]) for start in range(5)]
        eventually(lambda: server.metric("dragoman_queue_requests") == 5)
        server.signal(signal.SIGTERM)
        for start, request in enumerate(requests):
            answer = request.finish()
            assert answer.status == 200
            assert len(answer.json["translatedText"]) == len(LONG[start : start + 101])
        assert server.process.wait(PATIENCE_SECONDS) == 0
        with pytest.raises(OSError, match="refused"):
            server.request("/health")


def test_a_request_on_its_way_at_sigterm_is_still_answered(server: Server, model: Path) -> None:
    with serving(model) as stopping, stopping.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        eventually(lambda: stopping.request("/health").status == 200)  # the first connection was accepted before
        stopping.signal(signal.SIGTERM)
        connection.sendall(b"Host: x\r\n\r\n")
        received = b""
        while part := connection.recv(4096):
            received += part
        assert received.startswith(b"HTTP/1.1 200")
        assert received.endswith(b'{"status":"ok"}')
        assert stopping.process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_while_it_finishes_what_it_accepted_others_are_refused_at_once(model: Path, workers: int) -> None:
    body = json.dumps({"q": TEXT, "source": "fr", "target": "en"}).encode()
    head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with serving(model, "--workers", str(workers)) as server, server.connect() as connection:
        connection.sendall(head.encode() + b"\r\n" + body[:7])
        # One of as many as there are workers, and a few more: by then the first connection was accepted too.
        assert all(server.request("/health").status == 200 for _ in range(7))
        server.signal(signal.SIGTERM)
        assert eventually(lambda: is_refused(server))
        assert server.process.poll() is None
        connection.sendall(body[7:])
        received = b""
        while part := connection.recv(4096):
            received += part
        assert received.startswith(b"HTTP/1.1 200")
        assert server.process.wait(PATIENCE_SECONDS) == 0


def is_refused(server: Server) -> bool:
    try:
        with server.connect():
            return False
    except ConnectionRefusedError:
        return True


EARLY_HANGUP = """
import os, signal
from dragoman.serve import worker
load = worker.make_service
def make_service(*arguments):
    os.kill(os.getpid(), signal.SIGHUP)
    return load(*arguments)
worker.make_service = make_service
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_sighup_while_the_models_are_loaded_is_heeded_when_they_are(model: Path, workers: int) -> None:
    with serving(model, "--workers", str(workers), before=EARLY_HANGUP) as server:
        eventually(lambda: server.metric("dragoman_reloads_total") == workers)
        assert server.translate(TEXT).status == 200
        assert server.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_sighup_loads_the_models_anew_and_drops_no_request(tmp_path: Path, workers: int) -> None:
    folder = write_tiny_bundle(tmp_path / "model").path
    with serving(folder, "--workers", str(workers)) as server:
        old = server.translate(TEXT).json["translatedText"]
        seen: list[Answer] = []
        stop = threading.Event()

        def ask() -> None:
            while not stop.is_set():
                seen.append(server.translate(TEXT))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        write_tiny_bundle(folder, seed=2)
        server.signal(signal.SIGHUP)
        eventually(lambda: server.metric("dragoman_reloads_total") == workers)
        stop.set()
        asking.join(PATIENCE_SECONDS)
        new = server.translate(TEXT).json["translatedText"]
        assert new != old
        assert {answer.status for answer in seen} == {200}
        assert {answer.json["translatedText"] for answer in seen} <= {old, new}
        assert server.stop() == 0


def test_a_model_that_went_bad_is_not_loaded_and_the_old_one_stays(tmp_path: Path) -> None:
    folder = write_tiny_bundle(tmp_path / "model").path
    with serving(folder) as server:
        old = server.translate(TEXT).json
        (folder / "config.json").write_text("{", encoding="utf-8")
        server.signal(signal.SIGHUP)
        eventually(lambda: any("not reloaded, what was there stays:" in line for line in server.errors))
        assert server.translate(TEXT).json == old
        assert server.stop() == 0


# Several workers


def children(server: Server) -> set[int]:
    listed = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text(encoding="utf-8")
    return set(map(int, listed.split()))


IN_PROC = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers in /proc")


@IN_PROC
def test_a_worker_killed_is_replaced_and_counts_go_on(model: Path) -> None:
    with serving(model, "--workers", "2") as server:
        first = server.translate(TEXT).json
        killed = min(eventually(lambda: len(children(server)) == 2 and children(server)))
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: len(children(server) - {killed}) == 2 and server.metric("dragoman_worker_starts_total") == 3)
        assert all(server.translate(TEXT).json == first for _ in range(11))
        assert server.metric("dragoman_sentences_total") == 2 * (1 + 11)
        assert any("worker" in line and "ended with -9: starting another" in line for line in server.errors)
        assert server.stop() == 0
        assert children_are_gone(killed)


def children_are_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@IN_PROC
def test_workers_end_when_their_supervisor_is_killed(model: Path) -> None:
    with serving(model, "--workers", "2") as server:
        workers = eventually(lambda: len(children(server)) == 2 and children(server))
        server.signal(signal.SIGKILL)
        server.process.wait(PATIENCE_SECONDS)
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_a_server_that_cannot_start_says_why_and_ends(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for workers in ("1", "2"):
        command = [sys.executable, "-m", "dragoman", "serve", "--port", "0", "--workers", workers]
        result = subprocess.run(
            [*command, "--model", str(tmp_path / "model")], capture_output=True, text=True, timeout=PATIENCE_SECONDS,
            check=False,
        )  # fmt: skip
        assert result.returncode == 2
        first = result.stderr.splitlines()[0]
        assert first.startswith(f"dragoman: {tmp_path / 'model'} lacks config.json")
