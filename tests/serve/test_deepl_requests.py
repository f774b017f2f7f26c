"""DeepL's requests and answers, to the letter, on the wire."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from wire_server import model_folder, serving

from dragoman import load
from dragoman.serve.deepl import join_lines

BOTH_WAYS = ("fr-en", "en-fr")
FRENCH = "Il fait froid ce matin."
ENGLISH = "It is cold this morning."
ASKED = {"text": [FRENCH], "source_lang": "FR", "target_lang": "EN-US"}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving(char_limit=503, batch_limit=7) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """What the translator itself says, by source."""
    translator = load(model_folder(*BOTH_WAYS), engine="ctranslate2", compute_type="float32", workers=1)
    return {
        source: translator.translate(text, source=source, target=target).text
        for text, source, target in ((FRENCH, "fr", "en"), (ENGLISH, "en", "fr"))
    }


def texts_of(response: httpx.Response) -> list[str]:
    assert response.status_code == 200
    return [one["text"] for one in response.json()["translations"]]


# Translations


@pytest.mark.parametrize("how", ["json", "data", "params"])
def test_texts_are_translated_however_they_are_sent(client: httpx.Client, expected: dict[str, str], how: str) -> None:
    response = client.post("/v2/translate", **{how: {**ASKED, "text": [FRENCH, FRENCH]}})
    assert response.status_code == 200
    one = {"detected_source_language": "FR", "text": expected["fr"], "billed_characters": len(FRENCH)}
    assert response.json() == {"translations": [one, one]}


def test_one_text_may_come_without_a_list(client: httpx.Client, expected: dict[str, str]) -> None:
    assert texts_of(client.post("/v2/translate", json={**ASKED, "text": FRENCH})) == [expected["fr"]]


@pytest.mark.parametrize("target", ["EN", "EN-US", "EN-GB", "en-us", "en"])
def test_a_regional_variant_means_its_language(client: httpx.Client, expected: dict[str, str], target: str) -> None:
    assert texts_of(client.post("/v2/translate", json={**ASKED, "target_lang": target})) == [expected["fr"]]


def test_the_language_of_each_text_is_found_out(client: httpx.Client, expected: dict[str, str]) -> None:
    found = client.post("/v2/translate", json={"text": [ENGLISH, FRENCH], "target_lang": "FR"}).json()["translations"]
    assert [one["detected_source_language"] for one in found] == ["EN", "FR"]
    assert [one["text"] for one in found] == [expected["en"], FRENCH]


def test_details_are_there_only_if_they_were_asked_for(client: httpx.Client, expected: dict[str, str]) -> None:
    (found,) = client.post("/v2/translate", json={**ASKED, "details": True}).json()["translations"]
    assert found["text"] == expected["fr"]
    assert 0 < found["confidence"] < 1
    assert isinstance(found["warnings"], list)
    (plain,) = client.post("/v2/translate", json=ASKED).json()["translations"]
    assert set(found) - set(plain) == {"confidence", "warnings"}


@pytest.mark.parametrize("tags", ["html", "xml"])
def test_tags_stay(client: httpx.Client, expected: dict[str, str], tags: str) -> None:
    asked = {**ASKED, "text": [f'<p id="a">{FRENCH}</p>'], "tag_handling": tags}
    assert texts_of(client.post("/v2/translate", json=asked)) == [f'<p id="a">{expected["fr"]}</p>']


def test_what_stands_in_tags_to_ignore_is_not_translated(client: httpx.Client, expected: dict[str, str]) -> None:
    text = f"<a>{FRENCH}</a><keep>{FRENCH}</keep>"
    asked = {**ASKED, "text": [text], "tag_handling": "xml", "splitting_tags": ["a", "keep"]}
    for ignored in ("keep,other", ["other", "keep"]):
        found = texts_of(client.post("/v2/translate", json={**asked, "ignore_tags": ignored}))
        assert found == [f"<a>{expected['fr']}</a><keep>{FRENCH}</keep>"]


def test_sentences_are_split_unless_they_should_not_be(client: httpx.Client, expected: dict[str, str]) -> None:
    two = {**ASKED, "text": [f"{FRENCH} {FRENCH}"]}
    apart = f"{expected['fr']} {expected['fr']}"
    assert texts_of(client.post("/v2/translate", json=two)) == [apart]
    assert texts_of(client.post("/v2/translate", json={**two, "split_sentences": "1"})) == [apart]
    for no in ("0", 0, False):
        assert texts_of(client.post("/v2/translate", json={**two, "split_sentences": no})) != [apart]


def test_without_new_lines_a_sentence_goes_on_in_the_next_line(client: httpx.Client, expected: dict[str, str]) -> None:
    asked = {**ASKED, "text": [FRENCH.replace(" ce ", "\nce ")], "split_sentences": "nonewlines"}
    found = client.post("/v2/translate", json=asked).json()["translations"][0]
    assert (found["text"], found["billed_characters"]) == (expected["fr"], len(FRENCH))


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("a\nb", "a b"),
        ("a\n\nb\nc", "a\n\nb c"),
        ("\na\n", "\na\n"),
        ("a\n \nb", "a\n \nb"),
        ("", ""),
        ("a\r\nb\r\n\r\nc\rd", "a b\r\n\r\nc d"),
    ],
)
def test_lines_of_a_paragraph_become_one(text: str, joined: str) -> None:
    assert join_lines(text) == joined


def test_what_is_not_heeded_is_taken(client: httpx.Client, expected: dict[str, str]) -> None:
    more = {
        "formality": "prefer_more",
        "context": "La météo.",
        "preserve_formatting": True,
        "show_billed_characters": True,
        "model_type": "latency_optimized",
        "tag_handling_version": "v2",
    }
    assert texts_of(client.post("/v2/translate", json=ASKED | more)) == [expected["fr"]]


# Lists


def test_sources_and_targets_are_listed(client: httpx.Client) -> None:
    french, english = {"language": "FR", "name": "French"}, {"language": "EN", "name": "English"}
    assert client.get("/v2/languages").json() == [french, english]
    assert client.get("/v2/languages", params={"type": "source"}).json() == [french, english]
    targets = [
        {"language": "EN-GB", "name": "English (British)", "supports_formality": False},
        {"language": "EN-US", "name": "English (American)", "supports_formality": False},
        {"language": "FR", "name": "French", "supports_formality": False},
    ]
    assert client.get("/v2/languages", params={"type": "target"}).json() == targets
    assert client.post("/v2/languages", data={"type": "target"}).json() == targets
    # A GET with a form for a body: so says the Python client.
    assert client.request("GET", "/v2/languages", data={"type": "target"}).json() == targets


def test_usage_without_a_quota_has_no_limit_that_anybody_reaches(client: httpx.Client) -> None:
    before = client.get("/v2/usage").json()
    assert before["character_limit"] == 1_000_000_000_000
    client.post("/v2/translate", json=ASKED)
    assert client.get("/v2/usage").json()["character_count"] == before["character_count"] + len(FRENCH)


# Refusals


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"text": None}, 400, "Parameter 'text' not specified."),
        ({"text": []}, 400, "Parameter 'text' not specified."),
        ({"target_lang": None}, 400, "Parameter 'target_lang' not specified."),
        ({"target_lang": "ZZ"}, 400, "Value for 'target_lang' not supported."),
        ({"source_lang": "ZZ"}, 400, "Value for 'source_lang' not supported."),
        ({"tag_handling": "tex"}, 400, "Value for 'tag_handling' not supported, expected one of html, xml."),
        (
            {"split_sentences": "2"},
            400,
            "Value for 'split_sentences' not supported, expected one of 0, 1, nonewlines, default, false, true.",
        ),
        (
            {"formality": "rude"},
            400,
            "Value for 'formality' not supported, expected one of default, more, less, prefer_more, prefer_less.",
        ),
        ({"text": [5]}, 400, "Invalid request: text parameter is not text"),
        ({"text": ["x" * 504]}, 413, "Invalid request: request (504) exceeds text limit (503)"),
        ({"text": ["x"] * 8}, 413, "Invalid request: request (8) exceeds batch limit (7)"),
        ({"source_lang": None, "glossary_id": "a"}, 400, "source_lang is required with glossary_id."),
        (
            {"glossary_id": "a"},
            403,
            "glossaries are not kept here: the server was started without --glossary-dir",
        ),
    ],
)
def test_what_is_wrong_is_said(client: httpx.Client, changes: dict[str, Any], status: int, message: str) -> None:
    asked = {name: value for name, value in (ASKED | changes).items() if value is not None}
    response = client.post("/v2/translate", json=asked)
    assert (response.status_code, response.json()) == (status, {"message": message})


def test_another_method_is_refused_in_json(client: httpx.Client) -> None:
    response = client.get("/v2/translate")
    assert (response.status_code, response.json()) == (405, {"message": "Method Not Allowed"})


def test_a_quota_that_is_used_up_is_told_as_such() -> None:
    with serving(quota=len(FRENCH) + 7) as url, httpx.Client(base_url=url) as client:
        assert client.post("/v2/translate", json=ASKED).status_code == 200
        refused = client.post("/v2/translate", json=ASKED)
        usage = client.get("/v2/usage").json()
    assert refused.status_code == 456
    assert "quota" in refused.json()["message"].lower()
    assert usage == {"character_count": len(FRENCH), "character_limit": len(FRENCH) + 7}
