"""Keys, rates and settings: who may come in, and how often."""

import mmap
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from wire_server import make_tiny_service

from dragoman.bundle import box
from dragoman.cli import serve
from dragoman.cli.serve import command
from dragoman.errors import ConfigError
from dragoman.serve.app import build
from dragoman.serve.keys import Keys, Known, hash_key, make_key
from dragoman.serve.rate import TABLE_BYTES, Buckets
from dragoman.serve.run import bind
from dragoman.serve.settings import Settings

# Keys


def keys_file(folder: Path, *lines: str) -> str:
    (folder / "keys.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder / "keys.txt")


def test_a_key_is_found_by_its_hash_and_has_a_name(tmp_path: Path) -> None:
    first, second = make_key(), make_key()
    keys = Keys.read(keys_file(tmp_path, "# ours", "", f"{hash_key(first)} the web site", hash_key(second)))
    assert keys.find(first) == Known(f"key:{hash_key(first)[7:23]}", "the web site")
    assert keys.find(second) == Known(f"key:{hash_key(second)[7:23]}", f"key {hash_key(second)[7:15]}")
    assert keys.find(make_key()) is None
    assert keys.find("") is None


def test_the_file_has_no_key_in_it(tmp_path: Path) -> None:
    key = make_key()
    assert key not in hash_key(key)


@given(st.text(st.characters(), min_size=16))
def test_any_text_can_be_a_key(key: str) -> None:
    hashed = hash_key(key)
    assert Keys({bytes.fromhex(hashed.removeprefix("sha256:")): "x"}).find(key) == Known(f"key:{hashed[7:23]}", "x")


@pytest.mark.parametrize("line", ["my-secret-key-that-was-not-hashed", "sha256:abc", "sha256:zz", "md5:00"])
def test_a_line_that_is_no_hash_is_refused_without_showing_it(tmp_path: Path, line: str) -> None:
    path = keys_file(tmp_path, hash_key(make_key()), line)
    with pytest.raises(ConfigError) as error:
        Keys.read(path)
    assert str(error.value) == f"{path}:2: no hashed key, expected a line as `dragoman serve --hash-key` prints"


def test_no_file_and_no_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^cannot read keys from .*missing"):
        Keys.read(str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match=r"has no keys, so nobody could come in: add one with `dragoman serve --hash"):
        Keys.read(keys_file(tmp_path, "# none yet"))


def test_a_key_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^a key of 7 characters can be guessed, expected at least 16$"):
        hash_key("letmein")


def test_hash_key_reads_standard_input_and_prints_the_line_of_the_file() -> None:
    key = make_key()
    result = CliRunner().invoke(command, ["--hash-key"], input=f"{key}\n")
    assert result.stdout == f"{hash_key(key)}\n"
    assert key not in result.output


def test_hash_key_without_a_key_says_so() -> None:
    result = CliRunner().invoke(command, ["--hash-key"], input="")
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception) == "standard input has no key, expected one line"


def test_on_a_terminal_an_empty_answer_makes_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_asks", lambda: True)
    result = CliRunner().invoke(command, ["--hash-key"], input="\n")
    line = next(line for line in result.stdout.splitlines() if line.startswith("sha256:"))
    key = result.stderr.partition("only now: ")[2].strip()
    assert line == hash_key(key)


# Rates


def buckets(per_minute: float, now: list[float]) -> Buckets:
    return Buckets(per_minute, mmap.mmap(-1, TABLE_BYTES), lambda: now[0])


def test_a_minutes_worth_may_come_at_once_and_then_at_the_rate() -> None:
    now = [1000.0]
    three = buckets(3, now)
    assert [three.take("anna") for _ in range(4)] == [0, 0, 0, 20]
    assert three.take("ben") == 0
    now[0] += 15
    assert three.take("anna") == pytest.approx(5)
    now[0] += 5
    assert (three.take("anna"), three.take("anna")) == (0, pytest.approx(20))


def test_less_than_one_a_minute_is_still_one_at_first() -> None:
    now = [7.0]
    slow = buckets(0.5, now)
    assert (slow.take("anna"), slow.take("anna")) == (0, 120)


def test_zero_is_no_limit() -> None:
    free = buckets(0, [0.0])
    assert {free.take("anna") for _ in range(997)} == {0.0}


def test_many_names_do_not_make_the_table_larger_nor_forget_who_came_just_now() -> None:
    now = [0.0]
    table = mmap.mmap(-1, TABLE_BYTES)
    one = Buckets(1, table, lambda: now[0])
    for number in range(10_007):
        now[0] += 1e-4
        one.take(f"name {number}")
    assert one.take("anna") == 0
    for number in range(1009):
        now[0] += 1e-4
        one.take(f"later {number}")
    assert one.take("anna") > 0
    assert len(table) == TABLE_BYTES


def test_workers_share_the_table() -> None:
    table = mmap.mmap(-1, TABLE_BYTES)
    first, second = (Buckets(1, table, lambda: 5.0) for _ in range(2))
    assert (first.take("anna"), second.take("anna")) == (0, 60)


# Settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"port": 65_536}, "port is 65536, expected 0 to 65535"),
        ({"workers": 0}, "workers is 0, expected at least 1"),
        ({"rate": -1.0}, "rate is -1.0, expected at least 0"),
        ({"queue_limit": 0}, "queue_limit is 0, expected at least 1"),
        ({"timeout_seconds": 0.0}, "timeout_seconds is 0.0, expected at least 0.1"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        Settings(**changes)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 60 + 600),
        ({"timeout_seconds": 700.0}, 700 + 700),
        ({"files": False}, 60 + 60),
        ({"shutdown_seconds": 7.0}, 7),
    ],
)
def test_sigterm_waits_for_the_slowest_request_unless_told_otherwise(changes: dict[str, Any], seconds: float) -> None:
    assert Settings(**changes).patience_seconds == seconds


def test_a_server_may_explain_nothing_and_its_page_still_translates() -> None:
    service = make_tiny_service(explain=False)
    client = TestClient(build(service))
    told = client.get("/explain/models").json()
    assert (told["ready"], told["why"]) == (False, "explaining is switched off here (--no-explain)")
    assert [(one["source"], one["target"]) for one in told["models"]] == [("fr", "en"), ("en", "fr")]
    assert client.post("/explain/trace", json={"text": "Lame ni."}).status_code == 404
    service.close()


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    """The command ignores SIGHUP until there is something to load anew; the tests do not."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def test_the_command_line_offers_every_setting_with_its_default() -> None:
    chosen = command.make_context("serve", []).params
    chosen.pop("hash_key")
    assert Settings(**chosen) == Settings()


def test_what_the_command_line_is_told_is_what_the_server_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Settings] = []

    def run(settings: Settings, announce: Any) -> int:
        told.append(settings)
        return 3

    monkeypatch.setattr("dragoman.serve.run.run", run)
    words = "--model a --model b --port 0 --rate 1.5 --no-files --log-text --api-keys keys.txt --compute-type float32"
    result = CliRunner().invoke(command, words.split())
    assert result.exit_code == 3
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert told == [
        Settings(
            model=("a", "b"), port=0, rate=1.5, files=False, log_text=True, api_keys="keys.txt", compute_type="float32"
        )
    ]


def test_an_empty_box_is_told_before_anything_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path)
    result = CliRunner().invoke(command, ["--port", "0"])
    assert str(result.exception) == "there is no model to serve, the box is empty: give --model FOLDER"


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match=r"^cannot listen on a\.\.b port 5000 \(.*\): choose another --host or"):
        bind("a..b", 5000)


def test_an_address_that_is_taken_is_told() -> None:
    taken = bind("127.0.0.1", 0)
    with taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as error:
            bind("127.0.0.1", port)
    assert str(error.value) == (
        f"cannot listen on 127.0.0.1 port {port} (Address already in use): choose another --host or --port"
    )
