"""The page in any language: which way it runs, who reads it out, what it begins with, and a lesson in true numbers."""

import re
from typing import Any

import pytest
from browser import Asker, Reader
from playwright.sync_api import Page, Route, expect

HEBREW = "שלום עולם."


def imported(page: Page, module: str, code: str, arg: Any = None) -> Any:
    """What `code` makes of a module of the page, `it`, and of `arg`."""
    script = f"async (arg) => {{ const it = await import(`${{location.origin}}/web/js/{module}`); return {code}; }}"
    return page.evaluate(script, arg)


def left_of(page: Page, place: int) -> float:
    box = page.locator(f".line.source .chip[data-index='{place}']").bounding_box()
    assert box is not None
    return box["x"]


def test_a_right_to_left_sentence_begins_on_the_right(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(HEBREW), asker.trace(HEBREW)
    first, second = (word["pieces"][0] for word in meta["source"]["words"][:2])
    assert left_of(page, first) > left_of(page, second)
    expect(page.locator(".line.source")).to_have_attribute("dir", "rtl")


def test_texts_are_marked_with_their_languages(reader: Reader) -> None:
    page = reader.open()
    for place, language in ((".line.source", "fr"), (".line.target", "en"), ("#text", "fr"), (".column.keys", "fr")):
        expect(page.locator(place)).to_have_attribute("lang", language)
    expect(page.locator(".line.source")).to_have_attribute("dir", "ltr")


def test_a_language_or_else_most_letters_say_which_way_a_text_runs(reader: Reader) -> None:
    cases = [
        ("ar", "Paris 2024", "rtl"),
        ("he-IL", "", "rtl"),
        ("en", "שלום is a word for peace", "ltr"),
        (None, "سلام دنیا", "rtl"),
        (None, "1, 2, 3", "ltr"),
    ]
    found = imported(reader.open(), "dom.js", "arg.map(([code, text]) => it.directionOf(code, text))", cases)
    assert found == [way for _, _, way in cases]


def test_the_first_sentence_is_in_the_models_language(reader: Reader) -> None:
    page = reader.page
    with page.expect_request("**/explain/trace") as asked:
        reader.open(None, **{"from": "de", "to": "en"})
    assert page.input_value("#text").startswith("Das Tier")
    assert "beam" not in asked.value.post_data_json  # it is the model's own
    assert "text=" not in page.evaluate("location.hash")
    page.select_option("#direction", label="English → French")
    expect(page.locator("#text")).to_have_value(re.compile("^The animal"))


def test_a_word_with_an_unknown_piece_in_it_stays_one_word(reader: Reader) -> None:
    names = ["<2en>", "ba", "<unk>", "ce", "di", "</s>"]
    pieces = [{"piece": name, "text": name, "special": name.startswith("<"), "word": None} for name in names]
    words = [{"text": "ba?ce", "pieces": [1, 3]}, {"text": "di", "pieces": [4]}]
    meta = {"source": {"pieces": pieces, "words": words}, "target": {"pieces": pieces, "words": words}}
    code = "['encoder_self', 'decoder_self'].map((kind) => it.axes(arg, kind, 'words').rows.map((row) => row.pieces))"
    source, target = imported(reader.open(), "axes.js", code, meta)
    assert source == [[0], [1, 3], [2], [4], [5]]
    assert target == [[0], [1], [2, 4], [3], [5]]  # the decoder reads them one place later


def test_the_lesson_begins_with_the_embedding_of_its_piece(reader: Reader, asker: Asker) -> None:
    def without_the_first_layers_heads(route: Route) -> None:  # so that the lesson follows a head of another layer
        meta = route.fetch().json()
        route.fulfill(json={**meta, "heads": [head for head in meta["heads"] if head["layer"] > 0]})

    reader.page.route("**/explain/trace", without_the_first_layers_heads)
    page, meta = reader.open(lesson=0), asker.trace()
    working = page.locator("#view-microscope .working")
    expect(working).to_have_attribute("data-place", re.compile(r"^encoder\.0\."))
    row = int((working.get_attribute("data-place") or "").split(".")[-1])
    shown = re.search(r"The strip x .* begins (.*), …", page.locator(".lesson-text").text_content() or "")
    assert shown is not None
    numbers = [float(number.replace("−", "-")) for number in shown[1].split(", ")]
    assert numbers == pytest.approx(asker.tensor(meta, "source.embedded")[row, :4].tolist(), abs=6e-4)
    page.click("[data-name=lesson-next]")
    expect(working).to_have_attribute("data-place", re.compile(r"^encoder\.1\."))  # where other numbers stand


def test_the_lesson_goes_on_when_the_translation_is_only_its_end(reader: Reader) -> None:
    end = {"chosen": {"piece": "</s>", "text": "", "probability": 1.0}}
    app = {"lastStep": 0, "meta": {"steps": [end], "model": {"vocab_size": 7}}}
    code = "(await Promise.all([11, 12].map((step) => it.STEPS[step][1](arg)))).map(([state]) => state.step)"
    assert imported(reader.open(), "lesson_steps.js", code, app) == [None, None]
