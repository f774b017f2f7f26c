"""A published model is fetched and translates as it did; without a hub, or a network, a line says so."""

import importlib.util
import socket
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest

import dragoman
from dragoman.bundle import Bundle, find
from dragoman.bundle.hub import download, is_hub_name
from dragoman.errors import BundleError, ConfigError
from dragoman.interop.publish import hub_card, publish
from dragoman.text.known_words import KnownWords
from interop.stand_in_hub import StandInHub, stand_in_hub
from tiny_bundle import tiny_texts, write_tiny_bundle


@pytest.fixture(autouse=True)
def _no_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    with stand_in_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_published_model_translates_the_same_wherever_it_is_loaded(tmp_path: Path, hub: StandInHub) -> None:
    bundle = write_tiny_bundle(
        tmp_path / "mine", known_words=KnownWords.collect([("a", "b")]), scorecard={"licence": "CC-BY-4.0"}
    )
    (tmp_path / "mine" / "run").mkdir()
    (tmp_path / "mine" / "run" / "step.bin").write_bytes(b"of no concern to others")
    assert publish(bundle, "me/fr-en-tiny") == f"{hub.address}/me/fr-en-tiny"
    published = hub.files["me/fr-en-tiny"]
    assert sorted(published) == [
        "README.md", "config.json", "model.safetensors", "scorecard.json", "tokenizer.json", "words.json",
    ]  # fmt: skip
    assert published["README.md"].startswith(b'---\nlanguage:\n- "fr"\n- "en"\nlicense: cc-by-4.0\n')
    texts = tiny_texts(7, seed=3)
    here = dragoman.load(tmp_path / "mine", engine="torch").translate(texts)
    there = dragoman.load("me/fr-en-tiny", engine="torch").translate(texts)
    assert [one.text for one in there] == [one.text for one in here]


def test_a_folder_of_the_owners_name_is_never_looked_for_on_a_hub(tmp_path: Path, hub: StandInHub) -> None:
    (tmp_path / "models").mkdir()
    assert not is_hub_name("models/mien")
    with pytest.raises(BundleError, match="there is no model at models/mien, and none of that name"):
        find("models/mien")
    assert hub.asked == []


def test_without_a_network_a_line_says_so() -> None:
    with pytest.raises(BundleError, match=r"the hub did not give the model me/mine \(.*\): is there a network"):
        find("me/mine")


def test_a_name_that_the_hub_does_not_know(hub: StandInHub) -> None:
    with pytest.raises(
        BundleError, match=r"did not give the model me/none .*: is the name right, and are you logged in"
    ):
        download("me/none")


def test_without_the_library_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "huggingface_hub" else known(name))
    with pytest.raises(BundleError, match=r"there is no model at me/mine; .* takes the extra hub: pip install "):
        find("me/mine")


def test_a_hub_that_cannot_be_reached_takes_nothing(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "mine")
    with pytest.raises(BundleError, match=r"the hub did not take the model me/mine \(.*\): is there a network"):
        publish(bundle, "me/mine")


def test_a_name_without_an_owner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'mine' is not a name on a hub: write owner/name"):
        publish(write_tiny_bundle(tmp_path / "mine"), "mine")


def test_a_damaged_model_is_not_published(tmp_path: Path, hub: StandInHub) -> None:
    bundle = write_tiny_bundle(tmp_path / "mine")
    file = tmp_path / "mine" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(BundleError, match="does not have the hash"):
        publish(bundle, "me/mine")
    assert hub.asked == []


@pytest.mark.parametrize(
    ("licence", "lines"),
    [("MIT", ["license: mit"]), ("CC-BY 2.0 FR", ["license: other", 'license_name: "CC-BY 2.0 FR"']), ("", [])],
)
def test_the_card_has_the_header_that_hubs_sort_by(tmp_path: Path, licence: str, lines: list[str]) -> None:
    bundle = write_tiny_bundle(tmp_path / "mine", directions=("no-en",), scorecard={"licence": licence})
    card = hub_card(bundle)
    assert card.splitlines()[:4] == ["---", "language:", '- "no"', '- "en"']
    assert [line for line in card.splitlines() if line.startswith("license")] == lines
    assert card.endswith("# Tiny\n")
    (tmp_path / "mine" / "README.md").write_text(card, encoding="utf-8")
    assert hub_card(Bundle.open(tmp_path / "mine")) == card
