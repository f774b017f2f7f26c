"""DeepL's own client for Python, against a server of ours."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import deepl
import pytest
from wire_server import model_folder, serving

from dragoman import load
from dragoman.serve.keys import hash_key

FRENCH = "Il fait froid ce matin."
KEY = "a key that is long enough"


@pytest.fixture(scope="module", autouse=True)
def _fail_at_once() -> Iterator[None]:
    """The client tries again after pauses; here nothing is worth waiting for."""
    tries = deepl.http_client.max_network_retries
    deepl.http_client.max_network_retries = 0
    yield
    deepl.http_client.max_network_retries = tries


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("kept")
    (folder / "keys").write_text(hash_key(KEY) + " somebody\n")
    with serving(glossary_dir=str(folder / "glossaries"), api_keys=str(folder / "keys")) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[deepl.Translator]:
    with closing(deepl.Translator(KEY, server_url=url)) as client:
        yield client


@pytest.fixture(scope="module")
def expected() -> str:
    translator = load(model_folder("fr-en", "en-fr"), engine="ctranslate2", compute_type="float32", workers=1)
    return translator.translate(FRENCH, source="fr", target="en").text


def test_texts_are_translated(client: deepl.Translator, expected: str) -> None:
    one = client.translate_text(FRENCH, target_lang="EN-US")
    assert (one.text, one.detected_source_lang, one.billed_characters) == (expected, "FR", len(FRENCH))
    two = client.translate_text([FRENCH, FRENCH], source_lang="FR", target_lang="EN-GB", formality="prefer_more")
    assert [result.text for result in two] == [expected] * 2


def test_tags_and_sentences_are_handled(client: deepl.Translator, expected: str) -> None:
    found = client.translate_text(
        f"<p>{FRENCH}</p><x>{FRENCH}</x>", source_lang="FR", target_lang="EN-US", tag_handling="xml", ignore_tags="x",
        splitting_tags=["p", "x"], split_sentences=deepl.SplitSentences.NO_NEWLINES, context="La météo.",
    )  # fmt: skip
    assert found.text == f"<p>{expected}</p><x>{FRENCH}</x>"


def test_languages_and_usage_are_told(client: deepl.Translator) -> None:
    assert [language.code for language in client.get_source_languages()] == ["FR", "EN"]
    assert [language.code for language in client.get_target_languages()] == ["EN-GB", "EN-US", "FR"]
    usage = client.get_usage()
    assert usage.character.valid
    assert not usage.any_limit_reached


def test_glossaries_are_made_used_and_removed(client: deepl.Translator) -> None:
    entries = {"chat": "cat", "chien": "dog"}
    pairs = [(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()]
    assert pairs == [("fr", "en"), ("en", "fr")]
    made = client.create_glossary("Cats", source_lang="FR", target_lang="EN-US", entries=entries)
    assert (made.name, made.source_lang, made.target_lang, made.entry_count) == ("Cats", "FR", "EN", 2)
    assert client.get_glossary_entries(made) == entries
    assert client.translate_text_with_glossary("Le chat dort.", made, target_lang="EN-US").text
    assert [one.glossary_id for one in client.list_glossaries()] == [made.glossary_id]
    assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
    client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made.glossary_id)
    from_csv = client.create_glossary_from_csv("Dogs", "FR", "EN", "chien,dog")
    assert client.get_glossary_entries(from_csv) == {"chien": "dog"}


def test_a_wrong_key_is_told_as_such(url: str) -> None:
    wrong = deepl.Translator("some other key", server_url=url)
    with closing(wrong), pytest.raises(deepl.AuthorizationException):
        wrong.translate_text(FRENCH, target_lang="EN-US")


def test_a_language_that_is_not_served_is_told_as_such(client: deepl.Translator) -> None:
    with pytest.raises(deepl.DeepLException, match="Value for 'target_lang' not supported"):
        client.translate_text(FRENCH, target_lang="KO")


def test_too_many_requests_are_told_as_such() -> None:
    with serving(rate=1.0) as url, closing(deepl.Translator("any", server_url=url)) as client:
        client.translate_text(FRENCH, target_lang="EN-US")
        with pytest.raises(deepl.TooManyRequestsException):
            client.translate_text(FRENCH, target_lang="EN-US")


def test_a_quota_that_is_used_up_is_told_as_such() -> None:
    with serving(quota=len(FRENCH)) as url, closing(deepl.Translator("any", server_url=url)) as client:
        client.translate_text(FRENCH, target_lang="EN-US")
        assert client.get_usage().any_limit_reached
        with pytest.raises(deepl.QuotaExceededException):
            client.translate_text(FRENCH, target_lang="EN-US")
