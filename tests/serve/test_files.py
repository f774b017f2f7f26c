"""/translate_file and /download_file: files come in bounded, wait in private, and are soon gone."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from wire_server import make_tiny_service

from dragoman.documents import CONTENT_TYPES
from dragoman.errors import DataError
from dragoman.serve import app, files, shelf
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service
from dragoman.serve.shelf import Shelf
from office_files import docx, run, word_runs


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    service = make_tiny_service(file_bytes=20_011)
    yield service
    service.close()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(31, tmp_path)
    yield shelf
    shelf.close()


@pytest.fixture
def client(service: Service, kept: Shelf) -> Iterator[TestClient]:
    with make_client(service, kept) as client:
        yield client


def make_client(service: Service, kept: Shelf) -> TestClient:
    handlers: Any = {files.Refusal: app._refuse, DataError: app._refuse_error}
    return TestClient(Starlette(routes=files.routes(service, kept), exception_handlers=handlers))


def send(client: TestClient, name: str, data: bytes, **fields: str) -> Any:
    chosen = {"source": "fr", "target": "en", **fields}
    return client.post("/translate_file", files={"file": (name, data)}, data={k: v for k, v in chosen.items() if v})


def error(response: Any, status: int) -> str:
    assert response.status_code == status
    assert list(response.json()) == ["error"]
    return response.json()["error"]


# There and back


@pytest.mark.parametrize("extension", [".txt", ".html", ".srt"])
def test_a_file_is_translated_and_fetched_under_a_name_of_ours(client: TestClient, extension: str) -> None:
    data = b"1\n00:00:01,000 --> 00:00:02,000\nBaceba dila."
    response = send(client, f"../../my secret{extension}", data)
    assert response.status_code == 200
    url = response.json()["translatedFileUrl"]
    assert url.startswith("http://testserver/download_file/")
    assert "secret" not in url
    fetched = client.get(url)
    assert fetched.status_code == 200
    assert fetched.content != data
    assert fetched.headers["content-type"].split(";")[0] == CONTENT_TYPES[extension]
    assert fetched.headers["content-disposition"] == f'attachment; filename="translation{extension}"'
    assert fetched.headers["cache-control"] == "private, no-store"


def test_a_word_document_is_translated(client: TestClient) -> None:
    data = docx(f"<w:p>{run('Baceba dila')}</w:p>")
    content = client.get(send(client, "a.docx", data).json()["translatedFileUrl"]).content
    assert word_runs(content)[0][0][1] not in ("", "Baceba dila")


def test_the_source_language_may_be_detected_and_may_be_the_target(client: TestClient) -> None:
    assert send(client, "a.txt", b"Je suis dans la maison.", source="auto").status_code == 200
    same = send(client, "a.txt", b"Je suis dans la maison.", source="fr", target="fr").json()
    assert client.get(same["translatedFileUrl"]).content == b"Je suis dans la maison."


def test_fields_may_stand_in_the_query_string(client: TestClient) -> None:
    response = client.post("/translate_file?source=fr&target=en", files={"file": ("a.txt", b"Lame ni.")})
    assert response.status_code == 200


# Refusals


def test_what_is_missing_is_named(client: TestClient) -> None:
    assert error(send(client, "a.txt", b"a", source=""), 400) == "Invalid request: missing source parameter"
    assert error(send(client, "a.txt", b"a", target=""), 400) == "Invalid request: missing target parameter"
    form = client.post("/translate_file", data={"source": "fr", "target": "en"})
    assert error(form, 400) == "Invalid request: missing file parameter: send a multipart form"
    other = client.post("/translate_file", files={"other": ("a.txt", b"a")})
    assert error(other, 400) == "Invalid request: missing file parameter: send a multipart form"


def test_unknown_languages_and_kinds_of_file_are_refused(client: TestClient) -> None:
    assert error(send(client, "a.txt", b"a", target="zz"), 400) == "zz is not supported"
    assert error(send(client, "a.txt", b"a", source="auto", target="zz"), 400) == "zz is not supported"
    assert error(send(client, "a.exe", b"a"), 400).startswith(".exe is not supported: send .txt")
    assert error(send(client, "a.docx", b"a"), 400).startswith("the file is damaged or encrypted")


def test_a_file_that_is_too_large_is_refused(client: TestClient) -> None:
    expected = "Invalid request: the file has 20021 bytes, at most 20011 are taken"
    assert error(send(client, "a.txt", b" " * 20_021), 400) == expected


def test_several_files_and_broken_forms_are_refused(client: TestClient) -> None:
    expected = "Invalid request: the multipart form cannot be read: send one file, and a few fields"
    two = [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]
    assert error(client.post("/translate_file", files=two), 400) == expected
    headers = {"content-type": "multipart/form-data"}
    assert error(client.post("/translate_file", content=b"--x\r\n", headers=headers), 400) == expected


def test_half_a_character_in_a_field_or_a_name_is_refused(client: TestClient) -> None:
    for name, source, field in (("a.txt", "+2AE-", "source"), ("a.+2AE-", "fr", "file")):
        parts = {"source": source, "target": "en"}
        form = "".join(f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in parts.items())
        form += f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\na\r\n--x--\r\n'
        headers = {"content-type": "multipart/form-data; charset=utf-7; boundary=x"}
        response = client.post("/translate_file", content=form.encode(), headers=headers)
        assert error(response, 400) == f"Invalid request: {field} parameter has half a surrogate pair"


def test_a_file_that_takes_too_long_is_given_up(kept: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(files, "read", lambda name, data: done.wait(60))
    service = make_tiny_service(file_seconds=0.1)
    with make_client(service, kept) as client:
        response = send(client, "a.txt", b"Lame ni.")
        expected = "this took more than 0.1 seconds: try again later, or send less at once"
        assert error(response, 503) == expected
        assert response.headers["retry-after"]
        done.set()
    service.close()


def test_a_file_is_read_beside_the_loop(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def here(found: Any) -> Any:
        threads.append(threading.current_thread().name)
        return found

    class Watched:
        texts = property(lambda self: here(("Lame ni.",)))
        needs_alignment = property(lambda self: here(False))

        def render(self, translations: Any) -> bytes:
            return here(b"done")

    monkeypatch.setattr(files, "read", lambda name, data: Watched())
    assert send(client, "a.txt", b"Lame ni.").status_code == 200
    assert len(threads) == 3
    assert all(name.startswith("files") for name in threads)


# Turns


def test_each_client_has_one_turn_at_a_time_and_who_waits_is_called_in_order() -> None:
    order: list[str] = []

    async def run() -> None:
        turns = files.Turns(at_once=2, most_waiting=3)
        end = {name: asyncio.Event() for name in ("anna 1", "anna 2", "ben 1", "cleo 1", "dora 1")}

        async def work(name: str) -> None:
            async with turns.turn(name.split()[0]):
                order.append(name)
                await end[name].wait()

        tasks = {}
        for name in end:
            tasks[name] = asyncio.create_task(work(name))
            await asyncio.sleep(0)
        assert order == ["anna 1", "ben 1"]  # anna's second waits, and keeps nobody else from a turn
        with pytest.raises(Refusal, match=r"^a file of yours is waiting already") as refused:
            await work("anna 2")
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "10"})
        with pytest.raises(Refusal, match=r"^3 files are waiting, that is all this server can take: try again later"):
            await work("emil 1")
        tasks["cleo 1"].cancel()
        end["ben 1"].set()
        await settle()
        assert order == ["anna 1", "ben 1", "dora 1"]
        end["anna 1"].set()
        await settle()
        assert order == ["anna 1", "ben 1", "dora 1", "anna 2"]
        for event in end.values():
            event.set()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert (turns._busy, turns._waiting) == (set(), {})

    asyncio.run(run())


def test_a_turn_that_came_as_it_was_given_up_goes_to_the_next() -> None:
    async def run() -> None:
        turns = files.Turns(at_once=1)
        end = asyncio.Event()

        async def work(name: str) -> str:
            async with turns.turn(name):
                await end.wait()
                return name

        anna = asyncio.create_task(work("anna"))
        await asyncio.sleep(0)
        ben, cleo = asyncio.create_task(work("ben")), asyncio.create_task(work("cleo"))
        await asyncio.sleep(0)
        anna.cancel()
        while "ben" not in turns._busy:
            await asyncio.sleep(0)
        ben.cancel()  # called, and not yet awake
        end.set()
        assert await cleo == "cleo"
        assert turns._busy == set()

    asyncio.run(run())


async def settle() -> None:
    for _ in range(7):
        await asyncio.sleep(0)


def test_a_server_may_take_no_files(kept: Shelf) -> None:
    service = make_tiny_service(files=False)
    with make_client(service, kept) as client:
        expected = "files are not translated here: the server was started with --no-files"
        assert error(send(client, "a.txt", b"a"), 403) == expected
        assert error(client.get("/download_file/a.txt"), 403) == expected
    service.close()


@pytest.mark.parametrize(
    "name",
    [
        "a.txt",
        "x" * 32 + ".txt",
        "%2e%2e%2flock",
        "..%2f..%2fetc%2fpasswd",
        "x" * 32 + ".py",
        "%00.txt",
        "é" * 32 + ".txt",
    ],
)
def test_names_that_are_not_ours_find_nothing(client: TestClient, kept: Shelf, name: str) -> None:
    kept.put(b"something")
    response = client.get(f"/download_file/{name}")
    assert response.status_code == 404


def test_a_name_finds_nothing_under_another_extension(client: TestClient) -> None:
    url = send(client, "a.txt", b"Lame ni.").json()["translatedFileUrl"]
    expected = "there is no such file: translated files are removed after a while"
    assert error(client.get(url.removesuffix(".txt") + ".exe"), 404) == expected


# The shelf


def test_nothing_of_a_token_reaches_the_disk_and_nobody_else_can_look(kept: Shelf, tmp_path: Path) -> None:
    token = kept.put(b"mine")
    assert kept.fetch(token) == b"mine"
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert token not in path.name


def test_files_go_by_age_and_sooner_once_they_were_fetched(kept: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched, waiting = kept.put(b"fetched"), kept.put(b"waiting")
    assert kept.fetch(fetched) == b"fetched"
    now = time.time()
    monkeypatch.setattr(shelf.time, "time", lambda: now + shelf.FETCHED_SECONDS + 7)
    assert kept.fetch(fetched) is None
    kept.sweep()
    assert kept.fetch(waiting) == b"waiting"
    monkeypatch.setattr(shelf.time, "time", lambda: now + shelf.KEPT_SECONDS + 7)
    assert kept.fetch(waiting) is None


def test_the_oldest_files_go_when_there_are_too_many_or_too_much(
    kept: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shelf, "MOST_FILES", 3)
    tokens = []
    for number in range(5):
        tokens.append(kept.put(bytes(7)))
        for path in tmp_path.glob("*/[0-9a-f]*"):
            found = path.stat()
            os.utime(path, (found.st_atime, found.st_mtime - 10 * (5 - number)))
    assert [kept.fetch(token) is None for token in tokens] == [True, True, False, False, False]
    monkeypatch.setattr(shelf, "MOST_BYTES", 11)
    last = kept.put(bytes(5))
    assert [token for token in [*tokens, last] if kept.fetch(token)] == [last]


def test_workers_share_a_folder_which_goes_with_the_last_of_them(tmp_path: Path) -> None:
    one, other = Shelf(37, tmp_path), Shelf(37, tmp_path)
    token = one.put(b"shared")
    other.put(b"too")
    one.close()
    assert other.fetch(token) == b"shared"
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_could_have_made_is_not_used(tmp_path: Path) -> None:
    kept = Shelf(53, tmp_path)
    kept._path.mkdir(mode=0o755)
    with pytest.raises(DataError, match="belongs to somebody else: remove it, or set TMPDIR to another folder"):
        kept.put(b"mine")
