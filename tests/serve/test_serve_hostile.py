"""Hostile input: whatever comes over the wire, the answer is no 500, and the next client is served."""

import contextlib
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import wire_server
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server_process import Server, eventually, serving

from dragoman.serve import protocol
from tiny_bundle import write_tiny_bundle

PATHS = ("/translate", "/detect", "/suggest", "/v2/translate", "/translate_file")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = write_tiny_bundle(tmp_path_factory.mktemp("hostile") / "model").path
    with serving(folder, "--timeout-seconds", "30") as running:
        yield running


@pytest.fixture(autouse=True)
def _still_answers(server: Server) -> Iterator[None]:
    """After each test: the server is up, and nothing that was sent was an error of its own."""
    yield
    assert server.translate("Baceba dila.").status == 200
    assert not [line for line in server.access_log() if line["status"] >= 500]
    assert server.process.poll() is None


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def post(path: str, kind: str, body: bytes, length: int | None = None) -> bytes:
    """The bytes of a request."""
    size = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {size}"
    return head.encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body",
    [
        b'{"q": "caf\xe9", "source": "fr", "target": "en"}',
        b"\xff\xfe{\x00}\x00",
        b"{" * 1000,
        b'{"a":' * 100_000,
        b"[" * 1_000_000,
        b'{"q": "\\ud800", "source": "fr", "target": "en", "text": ["\\ud800"], "target_lang": "EN"}',
        b'{"q": {"q": {}}, "source": [], "target": 7, "text": {"a": 1}, "target_lang": [[]]}',
        b'{"q": null, "source": null, "target": null}',
        b'{"q": "a", "source": "fr", "target": "en", "alternatives": 1e999}',
        b'{"q": "a", "source": "fr", "target": "en", "alternatives": 99999999999999999999999}',
        b'{"q": "a\\u0000b", "source": "../../etc/passwd", "target": "en"}',
        b"NaN",
        b"",
        b"\0" * 1009,
    ],
    ids=range(14),
)
def test_bodies_that_make_no_sense_are_refused(server: Server, path: str, body: bytes) -> None:
    for kind in (
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/csv",
    ):
        status = status_of(server.raw(post(path, kind, body)))
        assert status in (200, 400, 403, 404, 413, 415, 422), (kind, status)


@pytest.mark.parametrize("charset", ["utf-7", "unicode_escape", "utf-16", "idna", "undefined", "rot13", "\xff"])
@pytest.mark.parametrize("path", PATHS)
def test_forms_in_any_encoding_get_no_500(server: Server, path: str, charset: str) -> None:
    form = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % part
        for part in (
            (b"q", b"", b"+2AE- \\ud800"), (b"source", b"", b"+2AE-\\ud800"), (b"target", b"", b"en"),
            (b"text", b"", b"+2AE-\\ud800"), (b"target_lang", b"", b"+2AE-\\ud800"),
            (b"file", b'; filename="a.+2AE-\\ud800"', b"a"),
        )
    )  # fmt: skip
    kind = f"multipart/form-data; charset={charset}; boundary=x"
    assert status_of(server.raw(post(path, kind, form + b"--x--\r\n"))) in (200, 400, 403)


def test_ten_megabytes_of_brackets_are_refused_before_they_are_read(server: Server) -> None:
    answer = server.request("/translate", body=b"[" * 10_000_000, headers={"Content-Type": "application/json"})
    assert answer.status == 413
    assert answer.json["error"].startswith("the body has 10000000 bytes, at most")


def test_a_body_without_a_length_is_bounded_too(server: Server) -> None:
    head = b"POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b"[" * 0x10000 + b"\r\n"
    assert status_of(server.raw(head + chunk * 100 + b"0\r\n\r\n")) == 413


def test_a_body_that_is_cut_off_is_forgotten(server: Server) -> None:
    whole = json.dumps({"q": "Baceba.", "source": "fr", "target": "en"}).encode()
    for path in PATHS:
        assert server.raw(post(path, "application/json", whole[:-3], length=len(whole)), hang_up=True) == b""
    eventually(lambda: sum(line["status"] == 499 for line in server.access_log()) >= len(PATHS))


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\n" + b"X-Flood: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(10_000)) + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
        b"\0" * 100,
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /translate HTTP/9.9\r\nConnection: close\r\n\r\n",
        b"GET /%ff%00%0a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /languages?%ff=%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /download_file/..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"BREW /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n",
    ],
    ids=range(15),
)
def test_bytes_that_are_no_good_http_get_no_500(server: Server, request_bytes: bytes) -> None:
    answer = server.raw(request_bytes, hang_up=not request_bytes.endswith(b"\r\n\r\n"))
    assert not answer or status_of(answer) in (200, 400, 404, 405, 414, 431, 501)
    assert b"root:" not in answer


def test_many_idle_connections_keep_nobody_out(server: Server) -> None:
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(199)]
    for connection in connections:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
    assert server.translate("Lame ni.").status == 200
    for connection in connections:
        connection.close()


def test_more_connections_than_there_is_room_for_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 3)
    with wire_server.serving() as url:
        port = int(url.rpartition(":")[2])
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        for connection in held:  # answered, and kept
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert status_of(connection.recv(4096)) == 200
        with socket.create_connection(("127.0.0.1", port), timeout=60) as late:
            answer = late.recv(4096)
            assert status_of(answer) == 503
            assert b"Retry-After: 5" in answer
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == "too many connections: try again later"
        held.pop().close()
        eventually(lambda: urllib.request.urlopen(f"{url}/health", timeout=60).status == 200)
        for connection in held:
            connection.close()


@contextlib.contextmanager
def unread_answer(url: str) -> Iterator[socket.socket]:
    """A connection with an answer of megabytes, of which only the beginning was read."""
    text = "a" * (12 << 20)
    body = json.dumps({"q": text, "source": "en", "target": "en"}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        connection.sendall(post("/translate", "application/json", body).replace(b"Connection: close\r\n", b""))
        assert status_of(connection.recv(64)) == 200
        yield connection


def read_all(connection: socket.socket) -> int:
    """How many bytes come before the connection ends."""
    total = 0
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 20):
            total += len(part)
    return total


def test_a_client_that_never_reads_its_answer_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "STALL_SECONDS", 0.3)
    lost = watch_for_lost(monkeypatch)
    with wire_server.serving(char_limit=0, body_bytes=20 << 20) as url, unread_answer(url) as connection:
        assert lost.wait(60)
        assert read_all(connection) < 12 << 20


def test_a_client_that_reads_slowly_gets_all_of_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "STALL_SECONDS", 2.0)
    with wire_server.serving(char_limit=0, body_bytes=20 << 20) as url, unread_answer(url) as connection:
        total = 0
        for _ in range(17):
            time.sleep(0.3)
            total += len(connection.recv(1 << 16))
        while total < 12 << 20:
            part = connection.recv(1 << 20)
            assert part
            total += len(part)


def test_a_client_that_never_reads_does_not_keep_the_server_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "STOPPING_STALL_SECONDS", 0.3)
    lost = watch_for_lost(monkeypatch)
    with contextlib.ExitStack() as stack:
        serving_one = stack.enter_context(contextlib.ExitStack())
        url = serving_one.enter_context(wire_server.serving(char_limit=0, body_bytes=20 << 20))
        stack.enter_context(unread_answer(url))
        assert not lost.is_set()
        serving_one.close()
        assert lost.is_set()


def watch_for_lost(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a server in this process has let a connection go."""
    lost, ending = threading.Event(), protocol.Protocol.connection_lost

    def connection_lost(self: protocol.Protocol, exc: Exception | None) -> None:
        ending(self, exc)
        lost.set()

    monkeypatch.setattr(protocol.Protocol, "connection_lost", connection_lost)
    return lost


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(PATHS),
    st.sampled_from(["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"]),
    st.one_of(
        st.binary(max_size=97),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=7),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["q", "source", "target", "format", "alternatives", "text"]), inner)
            ),
            max_leaves=7,
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_no_body_makes_the_server_fail(server: Server, path: str, kind: str, body: bytes) -> None:
    assert status_of(server.raw(post(path, kind, body))) < 500


def test_alternatives_without_end_are_refused(server: Server) -> None:
    answer = server.translate("Baceba.", alternatives=10_000)
    assert (answer.status, answer.json["error"]) == (400, "Invalid request: 10000 alternatives, at most 10")


def test_the_server_never_wrote_a_file_that_was_asked_for(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "written"
    server.translate("Baceba.", source=str(target), target=str(target))
    server.request(f"/download_file/{target}")
    assert not target.exists()
