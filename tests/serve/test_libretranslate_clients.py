"""Clients of LibreTranslate that others wrote, against a server of ours."""

from collections.abc import Iterator
from pathlib import Path

import deep_translator
import libretranslatepy
import pytest
from deep_translator.exceptions import AuthorizationException, ServerException
from wire_server import model_folder, serving

from dragoman import load
from dragoman.serve.keys import hash_key

FRENCH = "Il fait froid ce matin."
KEY = "a key that is long enough"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that wants a key."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(hash_key(KEY) + " somebody\n")
    with serving(api_keys=str(keys)) as url:
        yield url


@pytest.fixture(scope="module")
def expected() -> str:
    translator = load(model_folder("fr-en", "en-fr"), engine="ctranslate2", compute_type="float32", workers=1)
    return translator.translate(FRENCH, source="fr", target="en").text


def test_libretranslatepy_translates_detects_and_lists(url: str, expected: str) -> None:
    api = libretranslatepy.LibreTranslateAPI(url)
    assert api.translate(FRENCH, "fr", "en") == expected
    assert api.translate(FRENCH, "auto", "en") == expected
    assert api.detect(FRENCH)[0]["language"] == "fr"
    assert [language["code"] for language in api.languages()] == ["fr", "en"]


def test_libretranslatepy_comes_in_with_its_key(locked: str, expected: str) -> None:
    assert libretranslatepy.LibreTranslateAPI(locked, api_key=KEY).translate(FRENCH, "fr", "en") == expected
    assert libretranslatepy.LibreTranslateAPI(locked, api_key=KEY).languages()


@pytest.mark.parametrize(("key", "status"), [(None, 400), ("another key, not that one", 403)])
def test_libretranslatepy_is_kept_out_without_it(locked: str, key: str | None, status: int) -> None:
    from urllib.error import HTTPError

    with pytest.raises(HTTPError) as caught:
        libretranslatepy.LibreTranslateAPI(locked, api_key=key).translate(FRENCH, "fr", "en")
    with caught.value:
        assert caught.value.code == status


def test_deep_translator_translates_texts_batches_and_files(url: str, expected: str, tmp_path: Path) -> None:
    translator = deep_translator.LibreTranslator(source="fr", target="en", api_key="any", custom_url=f"{url}/")
    assert translator.translate(FRENCH) == expected
    assert translator.translate_batch([FRENCH, FRENCH]) == [expected] * 2
    (tmp_path / "text.txt").write_text(FRENCH, encoding="utf-8")
    assert translator.translate_file(str(tmp_path / "text.txt")) == expected


def test_deep_translator_finds_the_language_out(url: str, expected: str) -> None:
    translator = deep_translator.LibreTranslator(source="auto", target="en", api_key="any", custom_url=f"{url}/")
    assert translator.translate(FRENCH) == expected


def test_deep_translator_sees_refusals(url: str, locked: str) -> None:
    wrong = deep_translator.LibreTranslator(source="fr", target="en", api_key="wrong", custom_url=f"{locked}/")
    with pytest.raises(AuthorizationException):
        wrong.translate(FRENCH)
    unserved = deep_translator.LibreTranslator(source="fr", target="ga", api_key="any", custom_url=f"{url}/")
    with pytest.raises(ServerException):
        unserved.translate(FRENCH)
