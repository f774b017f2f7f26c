"""A hub on this machine: as much of the protocol as publishing and fetching a model takes, kept in memory."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class StandInHub(ThreadingHTTPServer):
    """`files` are what was published, by model and path; `asked` the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def stand_in_hub() -> Iterator[StandInHub]:
    hub = StandInHub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self._path()
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.files.setdefault(name, {})
            self._answer({"url": f"{self.server.address}/{name}"})
        elif path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            self._answer({"files": files})
        elif "/commit/" in path:
            _, _, kind, owner, name, *_ = path.split("/")
            assert kind == "models"
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.server.files[f"{owner}/{name}"][line["value"]["path"]] = content
            self._answer({"commitOid": COMMIT, "commitUrl": f"{self.server.address}/{owner}/{name}/commit/{COMMIT}"})
        else:
            self._answer({"error": "not here"}, status=404)

    def do_GET(self) -> None:
        path = self._path()
        parts = path.split("/")
        if path.startswith("/api/models/") and f"{parts[3]}/{parts[4]}" in self.server.files:
            files = self.server.files[f"{parts[3]}/{parts[4]}"]
            if "tree" in parts:
                self._answer(
                    [
                        {"type": "file", "path": name, "size": len(data), "oid": _oid(data)}
                        for name, data in files.items()
                    ]
                )
            else:
                siblings = [{"rfilename": name} for name in files]
                self._answer({"id": f"{parts[3]}/{parts[4]}", "sha": COMMIT, "siblings": siblings})
        elif "resolve" in parts:
            data = self.server.files["/".join(parts[1:3])][unquote("/".join(parts[5:]))]
            self._send(200, data, {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": COMMIT})
        else:
            self._answer({"error": "not here"}, status=404)

    do_HEAD = do_GET

    def _path(self) -> str:
        self.server.asked.append(f"{self.command} {self.path}")
        return urlsplit(self.path).path

    def _answer(self, contents: object, status: int = 200) -> None:
        self._send(status, json.dumps(contents).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
