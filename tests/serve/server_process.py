"""`dragoman serve` in a process of its own, on a free port of the loopback, for tests that need the real thing."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0
"""Long enough for a machine that is busy with other things; nothing waits for so long when all is well."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.errors: list[str] = []

    def request(
        self, path: str, fields: Any = None, *, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """GET, or POST of JSON fields or of a body."""
        if fields is not None:
            body = json.dumps(fields).encode()
            headers = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
                return Answer(response.status, _lower(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _lower(error.headers), error.read())

    def translate(self, text: str | list[str], **fields: Any) -> Answer:
        return self.request("/translate", {"q": text, "source": "fr", "target": "en", **fields})

    def metric(self, name: str) -> float:
        """A count without labels."""
        found = re.search(rf"^{name} (\S+)$", self.request("/metrics").body.decode(), flags=re.MULTILINE)
        assert found, name
        return float(found[1])

    @contextlib.contextmanager
    def connect(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS) as connection:
            yield connection

    def raw(self, data: bytes, hang_up: bool = False) -> bytes:
        """Send bytes, perhaps say that there are no more, and read to the end."""
        with self.connect() as connection:
            received = b""
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
                if hang_up:
                    connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    received += part
            return received

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM: -> the exit status."""
        self.signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def access_log(self) -> list[dict[str, Any]]:
        """The lines of the access log so far."""
        return [json.loads(line) for line in self.errors if line.startswith("{")]


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextlib.contextmanager
def serving(model: Path | str, *options: str, before: str = "") -> Iterator[Server]:
    """A server of a model; it is killed in the end if the test did not stop it. `before` is Python to run first."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    environment["DRAGOMAN_CACHE"] = str(Path(model).parent / "cache")
    program = ["-c", f"{before}\nfrom dragoman.cli import main\nmain()"] if before else ["-m", "dragoman"]
    command = [sys.executable, *program, "serve", "--model", str(model), "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    server = Server(process, 0)
    reader = threading.Thread(target=lambda: server.errors.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        line = process.stdout.readline()
        found = re.search(r":(\d+)$", line.strip())
        if not found:
            process.wait(PATIENCE_SECONDS)
            reader.join(PATIENCE_SECONDS)
            raise AssertionError(f"the server did not start: {line}{''.join(server.errors)}")
        server.port = int(found[1])
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers too
        process.wait(PATIENCE_SECONDS)
        reader.join(PATIENCE_SECONDS)
        process.stdout.close()
        process.stderr.close()


def eventually(claim: Callable[[], Any]) -> Any:
    """Wait until something is true; -> what it is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(OSError, urllib.error.URLError):
            if found := claim():
                return found
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)
