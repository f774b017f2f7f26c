"""LibreTranslate's requests and answers, to the letter, on the wire."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from wire_server import model_folder, serving

from dragoman import load

BOTH_WAYS = ("fr-en", "en-fr")
FRENCH = "Il fait froid ce matin."
ENGLISH = "It is cold this morning."
ASKED = {"q": FRENCH, "source": "fr", "target": "en"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving(char_limit=503, batch_limit=7, alternatives_limit=3) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """What the translator itself says, by source."""
    translator = load(model_folder(*BOTH_WAYS), engine="ctranslate2", compute_type="float32", workers=1)
    return {
        source: translator.translate(text, source=source, target=target).text
        for text, source, target in ((FRENCH, "fr", "en"), (ENGLISH, "en", "fr"))
    }


# How a request may come


@pytest.mark.parametrize(
    "how",
    [
        {"json": ASKED},
        {"data": ASKED},
        {"files": {name: (None, value) for name, value in ASKED.items()}},
        {"params": ASKED},
        {"params": ASKED, "headers": FORM},
        {"params": {"source": "fr", "target": "xx"}, "json": {"q": FRENCH, "target": "en"}},
        {"content": json.dumps(ASKED), "headers": {"Content-Type": "text/plain"}},
        {"content": json.dumps(ASKED).encode("utf-8-sig"), "headers": JSON},
    ],
    ids=["json", "form", "multipart", "query", "query with a form's type", "both", "json untold", "json with a mark"],
)
def test_a_text_is_translated_however_it_is_sent(
    client: httpx.Client, expected: dict[str, str], how: dict[str, Any]
) -> None:
    response = client.post("/translate", **how)
    assert response.status_code == 200
    assert response.json() == {"translatedText": expected["fr"]}


def test_a_list_of_texts_gets_a_list_of_translations(client: httpx.Client, expected: dict[str, str]) -> None:
    asked = {**ASKED, "q": [FRENCH, "", FRENCH]}
    assert client.post("/translate", json=asked).json() == {"translatedText": [expected["fr"], "", expected["fr"]]}
    assert client.post("/translate", json={**ASKED, "q": [FRENCH]}).json() == {"translatedText": [expected["fr"]]}


def test_a_field_that_is_sent_twice_is_a_list(client: httpx.Client, expected: dict[str, str]) -> None:
    response = client.post("/translate", data={**ASKED, "q": [FRENCH, FRENCH]})
    assert response.json() == {"translatedText": [expected["fr"]] * 2}


@pytest.mark.parametrize("codes", [("FR", "EN"), ("fr-CA", "en-US"), ("fr_FR", "en_GB")])
def test_a_regional_variant_means_its_language(
    client: httpx.Client, expected: dict[str, str], codes: tuple[str, str]
) -> None:
    response = client.post("/translate", json={"q": FRENCH, "source": codes[0], "target": codes[1]})
    assert response.json() == {"translatedText": expected["fr"]}


def test_text_in_the_target_language_comes_back_as_it_is(client: httpx.Client) -> None:
    asked = {"q": ENGLISH, "source": "en", "target": "en"}
    assert client.post("/translate", json=asked).json() == {"translatedText": ENGLISH}


# What an answer has


def test_a_detected_language_is_named_only_if_it_was_asked_for(client: httpx.Client, expected: dict[str, str]) -> None:
    answer = client.post("/translate", json={**ASKED, "source": "auto"}).json()
    assert answer["translatedText"] == expected["fr"]
    assert answer["detectedLanguage"]["language"] == "fr"
    assert 90 < answer["detectedLanguage"]["confidence"] <= 100


def test_each_text_of_a_list_is_translated_from_its_own_language(
    client: httpx.Client, expected: dict[str, str]
) -> None:
    answer = client.post("/translate", json={"q": [FRENCH, ENGLISH], "source": "auto", "target": "en"}).json()
    assert answer["translatedText"] == [expected["fr"], ENGLISH]
    assert [one["language"] for one in answer["detectedLanguage"]] == ["fr", "en"]


def test_a_word_of_both_languages_is_translated_rather_than_given_back(client: httpx.Client) -> None:
    found = [
        client.post("/translate", json={"q": "table", "source": "auto", "target": target}).json()
        for target in ["en", "fr"]
    ]
    assert [one["detectedLanguage"]["language"] for one in found] == ["fr", "en"]


def test_alternatives_are_there_only_if_some_were_asked_for(client: httpx.Client, expected: dict[str, str]) -> None:
    answer = client.post("/translate", json={**ASKED, "alternatives": 2}).json()
    assert answer["translatedText"] == expected["fr"]
    assert 1 <= len(answer["alternatives"]) <= 2
    assert expected["fr"] not in answer["alternatives"]
    batch = client.post("/translate", data={**ASKED, "q": [FRENCH, FRENCH], "alternatives": "2"}).json()
    assert batch["alternatives"] == [answer["alternatives"]] * 2
    assert "alternatives" not in client.post("/translate", json={**ASKED, "alternatives": 0}).json()


def test_details_are_there_only_if_they_were_asked_for(client: httpx.Client) -> None:
    translator = load(model_folder(*BOTH_WAYS), engine="ctranslate2", compute_type="float32", workers=1)
    text = f"{FRENCH} {{name}} 1789 https://example.org/x"  # more than so small a model can carry over by itself
    expected = translator.translate(text, source="fr", target="en")
    assert expected.warnings
    for how in ("json", "data", "params"):
        answer = client.post("/translate", **{how: {**ASKED, "q": text, "details": "true"}}).json()
        assert answer["translatedText"] == expected.text
        assert answer["confidence"] == pytest.approx(expected.confidence, abs=1e-3)
        assert answer["warnings"] == list(expected.warnings)
    batch = client.post("/translate", json={**ASKED, "q": [text, ""], "details": True}).json()
    assert (batch["confidence"][1], batch["warnings"]) == (1.0, [list(expected.warnings), []])
    for details in ({}, {"details": False}, {"details": ""}):
        assert list(client.post("/translate", json={**ASKED, **details}).json()) == ["translatedText"]


def test_html_keeps_its_tags(client: httpx.Client) -> None:
    answer = client.post("/translate", json={**ASKED, "q": f"<p id='a'>{FRENCH}</p><hr>", "format": "html"}).json()
    assert answer["translatedText"].startswith("<p id='a'>")
    assert answer["translatedText"].endswith("</p><hr>")
    text = client.post("/translate", json={**ASKED, "q": f"<p>{FRENCH}</p>", "format": "html"}).json()["translatedText"]
    assert (
        text.removeprefix("<p>").removesuffix("</p>") == client.post("/translate", json=ASKED).json()["translatedText"]
    )


def test_mastodon_gets_what_it_reads(client: httpx.Client, expected: dict[str, str]) -> None:
    languages = {one["code"]: one["targets"] for one in client.get("/languages").json()}
    assert languages == {"fr": ["en"], "en": ["fr"]}
    texts = [f"<p>{FRENCH}</p>", "", f'<p>{FRENCH} <a href="https://example.org/x" class="mention">@x</a></p>']
    asked = {"q": texts, "source": "auto", "target": "en", "format": "html", "api_key": ""}
    answer = client.post("/translate", json=asked).json()
    assert len(answer["translatedText"]) == len(answer["detectedLanguage"]) == len(texts)
    assert answer["detectedLanguage"][0]["language"] == "fr"
    assert answer["translatedText"][1] == ""
    assert 'href="https://example.org/x" class="mention"' in answer["translatedText"][2]


def test_detect_names_the_likeliest_language_first(client: httpx.Client) -> None:
    for how in ({"json": {"q": FRENCH}}, {"data": {"q": FRENCH}}, {"params": {"q": FRENCH}}):
        found = client.post("/detect", **how).json()
        assert found[0]["language"] == "fr"
        assert 90 < found[0]["confidence"] <= 100
    unsure = client.post("/detect", json={"q": "table"}).json()
    assert {one["language"] for one in unsure} == {"fr", "en"}
    assert unsure[0]["confidence"] < 80


def test_a_server_of_one_direction_names_both_languages_and_knows_them_apart() -> None:
    with serving(directions=("fr-en",)) as url:
        found = httpx.post(f"{url}/translate", json={"q": ENGLISH, "source": "auto", "target": "en"}).json()
        assert (found["translatedText"], found["detectedLanguage"]["language"]) == (ENGLISH, "en")
        refused = httpx.post(f"{url}/translate", json={"q": ENGLISH, "source": "auto", "target": "fr"})
        assert (refused.status_code, refused.json()) == (400, {"error": "fr is not supported"})
        assert httpx.get(f"{url}/languages").json() == [
            {"code": "fr", "name": "French", "targets": ["en"]},
            {"code": "en", "name": "English", "targets": []},
        ]


def test_pages_learn_what_they_may_offer(client: httpx.Client) -> None:
    found = client.get("/frontend/settings").json()
    assert found.pop("supportedFilesFormat")
    assert found == {
        "charLimit": 503,
        "frontendTimeout": 500,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": False,
        "filesTranslation": True,
        "language": {"source": {"code": "fr", "name": "French"}, "target": {"code": "en", "name": "English"}},
    }


def test_the_server_is_well(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}


# Refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"target": "zz"}, "zz is not supported"),
        ({"source": "zz"}, "zz is not supported"),
        ({"format": "xml"}, "xml format is not supported"),
        ({"alternatives": "many"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": 1.5}, "Invalid request: alternatives parameter is not a number"),
        ({"details": "maybe"}, "Invalid request: details parameter is neither true nor false"),
        ({"alternatives": 10_000}, "Invalid request: 10000 alternatives, at most 3"),
        ({"q": 5}, "Invalid request: q parameter is not text"),
        ({"q": [["a"]]}, "Invalid request: q parameter is not text"),
        ({"q": "x" * 504}, "Invalid request: request (504) exceeds text limit (503)"),
        ({"q": ["x"] * 8}, "Invalid request: request (8) exceeds batch limit (7)"),
    ],
)
def test_what_is_wrong_is_said(client: httpx.Client, changes: dict[str, Any], message: str) -> None:
    asked = {name: value for name, value in (ASKED | changes).items() if value is not None}
    response = client.post("/translate", json=asked)
    assert (response.status_code, response.json()) == (400, {"error": message})


@pytest.mark.parametrize(
    ("content", "headers", "message"),
    [
        (b'["not", "an object"]', JSON, "Invalid JSON format"),
        (b'{"q": "a', JSON, "Invalid JSON format"),
        (b'{"q": ' + b"[" * 100_000, JSON, "Invalid JSON format"),
        (b'{"q": ' + b"9" * 5000 + b"}", JSON, "Invalid JSON format"),
        (b'{"q": "\xff"}', JSON, "Invalid request: the body is no UTF-8"),
        (b'{"q": "\\ud800", "source": "fr"}', JSON, "Invalid request: q parameter has half a surrogate pair"),
        (b"q=%FF&source=fr&target=en", FORM, "Invalid request: the form is no UTF-8"),
        (b"q=a&" * 5000, FORM, "Invalid request: the form has more than 4096 fields"),
        (b"nonsense", {"Content-Type": "multipart/form-data"}, "Invalid request: the multipart form cannot be read"),
        (
            b"--x\r\nnonsense",
            {"Content-Type": "multipart/form-data; boundary=x"},
            "Invalid request: missing q parameter",
        ),
        (b"<q>a</q>", {"Content-Type": "application/xml"}, "Invalid request: missing q parameter"),
        (b"", {}, "Invalid request: missing q parameter"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    client: httpx.Client, content: bytes, headers: dict[str, str], message: str
) -> None:
    response = client.post("/translate", content=content, headers=headers)
    assert (response.status_code, response.json()) == (400, {"error": message})


def test_a_query_that_is_no_utf_8_is_refused(client: httpx.Client) -> None:
    response = client.post("/translate?q=%FF")
    assert (response.status_code, response.json()) == (400, {"error": "Invalid request: the query string is no UTF-8"})


@pytest.mark.parametrize("path", ["/translate", "/detect", "/suggest"])
def test_another_method_is_refused_in_json(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.json()) == (405, {"error": "Method Not Allowed"})
    assert response.headers["allow"] == "POST"


def test_a_path_that_is_not_there_is_refused_in_json(client: httpx.Client) -> None:
    response = client.get("/nowhere")
    assert (response.status_code, response.json()) == (404, {"error": "Not Found"})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/translate"),
        ("GET", "/languages"),
        ("POST", "/v2/translate"),
        ("GET", "/nowhere"),
        ("GET", "/translate"),
    ],
)
def test_pages_of_any_origin_may_ask(client: httpx.Client, method: str, path: str) -> None:
    assert client.request(method, path).headers["access-control-allow-origin"] == "*"
    assert client.options(path).headers["access-control-allow-origin"] == "*"
