"""The page with an RNN: the views that apply work, the others are not offered."""

import pytest
from browser import TEXT, Asker, Reader, shown_weights
from playwright.sync_api import expect

APPLY = ("threads", "map", "next", "beam", "matters", "whatif")
WAY = {"from": "it", "to": "en"}
ASKED = {"source": "it", "target": "en"}


def test_an_rnn_is_offered_the_views_that_apply_to_it(reader: Reader) -> None:
    page = reader.open(**WAY)
    offered = page.eval_on_selector_all("[role=tab]:not([hidden])", "all => all.map(tab => tab.dataset.view)")
    assert offered == list(APPLY)


@pytest.mark.parametrize("view", APPLY)
def test_each_of_them_shows_something_without_a_complaint(reader: Reader, view: str) -> None:
    page = reader.open(view=view, **WAY)
    panel = page.locator(f"#view-{view}")
    expect(panel).to_be_visible()
    page.wait_for_load_state("networkidle")
    expect(panel).not_to_be_empty()
    expect(page.locator("[role=alert]:visible")).to_have_count(0)


def test_the_thread_under_the_pointer_has_the_rnns_own_weight(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(**WAY, unit="pieces", special=1), asker.trace(**ASKED)
    page.locator(".column.queries .word").nth(2).hover()
    weights_HTS = asker.tensor(meta, "decoder.0.cross_attention.weights")
    assert shown_weights(page, "keys") == pytest.approx(weights_HTS[0, 2].tolist(), abs=1e-6)


def test_an_rnn_s_translation_is_that_of_the_trace(reader: Reader, asker: Asker) -> None:
    page = reader.open(**WAY)
    expect(page.locator(".line.target")).to_contain_text(asker.trace(TEXT, **ASKED)["translation"]["text"].split()[0])


def test_an_rnn_is_offered_no_choice_that_it_does_not_have(reader: Reader) -> None:
    page = reader.open(view="whatif", **WAY)
    expect(page.locator(".wordbox").first).to_be_visible()
    expect(page.locator("#view-whatif h3:visible")).to_have_text(["Words"])
    expect(page.locator(".switch:visible")).to_have_count(0)
    page.click("#tab-map")
    expect(page.locator(".map .head")).to_have_count(1)
    expect(page.locator("[data-name=map-kind]")).to_be_hidden()
    expect(page.locator("[data-name=sort] .segment:visible")).to_have_count(3)
    page.click("#tab-next")
    expect(page.locator(".bars .taken")).to_be_visible()
    expect(page.locator(".lens:visible, #view-next h3:visible")).to_have_count(0)


def test_an_address_that_asks_an_rnn_for_what_it_has_not_is_answered_with_what_it_has(reader: Reader) -> None:
    page = reader.open(view="map", kind="encoder_self", sort="effect", **WAY)
    expect(page.locator(".map")).to_have_attribute("data-drawn", "1")
    expect(page.locator("[data-name=sort] input[value=place]")).to_be_checked()


def test_without_attention_there_is_nothing_to_draw_and_the_rest_works(reader: Reader) -> None:
    page = reader.open(**{"from": "es", "to": "en"})
    offered = page.eval_on_selector_all("[role=tab]:not([hidden])", "all => all.map(tab => tab.dataset.view)")
    assert offered == ["next", "beam", "matters", "whatif"]
    page.click("#tab-matters")
    expect(page.locator("#view-matters canvas")).to_have_count(1)
    expect(page.locator("#view-matters")).to_contain_text("This model has no attention to compare with.")
    expect(page.locator("[role=alert]:visible")).to_have_count(0)


def test_a_model_with_attention_is_drawn_after_one_without(reader: Reader) -> None:
    page = reader.open(**{"from": "es", "to": "en"})
    expect(page.locator("#view-next")).to_be_visible()
    page.evaluate("location.hash = location.hash.replace('from=es', 'from=it').replace('view=next', 'view=threads')")
    expect(page.locator("#view-threads")).to_be_visible()
    expect(page.locator("[role=alert]:visible")).to_have_count(0)
