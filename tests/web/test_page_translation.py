"""Translate and step: the manuscript, the threads beside it, and the numbers on them."""

from typing import Any

import numpy as np
import pytest
from browser import TEXT, Asker, Reader, shown_weights
from numpy.typing import NDArray
from playwright.sync_api import Page, Route, expect

DEFAULT = "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."
Matrix = NDArray[np.float32]


def in_words(weights_TS: Matrix, meta: dict[str, Any]) -> Matrix:
    """Target words by source words, from pieces: special ones left out, the rest scaled to one, summed and averaged."""
    own = [place for word in meta["source"]["words"] for place in word["pieces"]]
    kept = weights_TS / weights_TS[:, own].sum(axis=1, keepdims=True)
    return np.array([
        [kept[np.ix_(row["pieces"], col["pieces"])].sum(axis=1).mean() for col in meta["source"]["words"]]
        for row in meta["target"]["words"]
    ])  # fmt: skip


def target_words(page: Page) -> list[str]:
    return page.locator(".column.queries .word").all_text_contents()


def test_on_the_first_visit_a_sentence_is_translated_and_its_threads_are_drawn(reader: Reader) -> None:
    page = reader.open(None)
    assert page.input_value("#text") == DEFAULT
    expect(page.locator(".thread").first).to_be_attached()
    expect(page.locator("#hint")).to_contain_text("Hover over a word")
    expect(page.locator("#live")).to_contain_text("Translation:")
    assert page.locator(".tabs [role=tab][aria-selected=true]").text_content() == "Threads"


def test_a_typed_sentence_is_translated(reader: Reader, asker: Asker) -> None:
    page = reader.open("Dila.")
    page.fill("#text", TEXT)
    page.press("#text", "Enter")
    expect(page.locator("#live")).to_contain_text(asker.trace()["translation"]["text"])
    pieces = [piece for piece in asker.trace()["source"]["pieces"] if not piece["special"]]
    source = [piece["text"] if piece["end"] > piece["start"] else "·" for piece in pieces]
    assert page.locator(".line.source .chip:not(.special)").all_text_contents() == source


def test_the_other_direction_can_be_chosen(reader: Reader, asker: Asker) -> None:
    page = reader.open()
    page.select_option("#direction", label="English → French")
    expect(page.locator("#live")).to_contain_text(asker.trace(source="en", target="fr")["translation"]["text"])


def test_arrow_keys_step_and_every_view_follows(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(), asker.trace()
    last = len(meta["target"]["pieces"]) - 1
    page.locator("body").press("ArrowLeft")
    page.locator("body").press("ArrowLeft")
    expect(page.locator(".stepper .count")).to_have_text(f"{last - 1} / {last + 1}")
    expect(page.locator(".line.target .chip.future")).to_have_count(2)
    expect(page.locator(".line.target .chip.current")).to_have_attribute("data-index", str(last - 2))
    page.click("#tab-next")
    expect(page.locator(".bars .taken button")).to_have_attribute(
        "data-id", str(meta["target"]["pieces"][last - 2]["id"])
    )
    page.locator("#view-next").press("ArrowRight")
    expect(page.locator(".bars .taken button")).to_have_attribute(
        "data-id", str(meta["target"]["pieces"][last - 1]["id"])
    )
    page.click("#tab-microscope")
    expect(page.locator("#view-microscope .working")).to_have_attribute(
        "data-place", f"decoder.{meta['alignment_layer']}.cross_attention.0.{last - 1}"
    )


def test_play_writes_the_translation_piece_by_piece(reader: Reader, asker: Asker) -> None:
    reader.page.clock.install()
    page, count = reader.open(), len(asker.trace()["target"]["pieces"])
    page.click("[data-name=play]")
    expect(page.locator(".stepper .count")).to_have_text(f"1 / {count}")
    page.clock.run_for(700)
    expect(page.locator(".stepper .count")).to_have_text(f"2 / {count}")
    page.clock.run_for(700 * count)
    expect(page.locator(".stepper .count")).to_have_text(f"{count} / {count}")
    expect(page.locator("[data-name=play]")).to_have_attribute("aria-label", "Play")


def test_the_scrubber_goes_to_any_piece(reader: Reader) -> None:
    page = reader.open()
    page.locator(".scrubber").fill("1")
    expect(page.locator(".line.target .chip.current")).to_have_attribute("data-index", "1")


def test_hovering_shows_the_weights_that_the_trace_holds(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(), asker.trace()
    weights_HTS = asker.tensor(meta, f"decoder.{meta['alignment_layer']}.cross_attention.weights")
    expected = in_words(weights_HTS.mean(axis=0), meta)
    assert target_words(page) == [word["text"] for word in meta["target"]["words"]]
    page.locator(".column.queries .word").nth(1).hover()
    assert shown_weights(page, "keys") == pytest.approx(expected[1].tolist(), abs=1e-6)
    page.locator(".column.keys .word").nth(2).hover()
    assert shown_weights(page, "queries") == pytest.approx(expected[:, 2].tolist(), abs=1e-6)


def test_a_chip_under_the_pointer_lights_its_thread(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(), asker.trace()
    page.locator(f".line.source .chip[data-index='{meta['source']['words'][1]['pieces'][0]}']").hover()
    expect(page.locator(".column.keys .entry.chosen .word")).to_have_text(meta["source"]["words"][1]["text"])


def test_a_word_that_is_clicked_stays_lit_until_it_is_clicked_again(reader: Reader) -> None:
    page = reader.open()
    for side, place in (("keys", 1), ("queries", 0), ("queries", -1)):
        word = page.locator(f".column.{side} .word").nth(place)
        for lit in (1, 0):
            word.click()
            page.mouse.move(0, 0)
            page.evaluate("document.activeElement.blur()")
            expect(page.locator(".column .entry.chosen")).to_have_count(lit)
            expect(word).to_have_attribute("aria-pressed", "true" if lit else "false")


def test_a_word_in_focus_tells_whom_it_looks_at_most(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(), asker.trace()
    weights_HTS = asker.tensor(meta, f"decoder.{meta['alignment_layer']}.cross_attention.weights")
    row = in_words(weights_HTS.mean(axis=0), meta)[0]
    page.locator(".column.queries .word").first.focus()
    partner = meta["source"]["words"][row.argmax()]["text"]
    expect(page.locator("#live")).to_contain_text(f"looks at {partner} {row.max():.3f}, ")


def test_of_several_heads_the_mean_stands_beside_a_word(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(mode="heads", heads="0.1", layer=1), asker.trace()
    weights_HTS = asker.tensor(meta, "decoder.1.cross_attention.weights")
    page.locator(".column.queries .word").nth(1).hover()
    expected = np.mean([in_words(weights_TS, meta)[1] for weights_TS in weights_HTS], axis=0)
    assert shown_weights(page, "keys") == pytest.approx(expected.tolist(), abs=1e-6)
    figures = page.locator(".column.keys .weight").all_text_contents()
    assert all(len(figure.split()) == 1 for figure in figures)
    expect(page.locator("#threads-note")).to_contain_text("means of the chosen heads")


def test_an_rnn_is_offered_only_the_attention_that_it_has(reader: Reader) -> None:
    asked = {"kind": "encoder_self", "mode": "rollout", "measure": "norm"}
    page = reader.open(**{"from": "it", "to": "en", **asked})
    expect(page.locator(".thread").first).to_be_attached()
    for name in ("[data-name=kind]", "[data-name=measure]", "[data-name=mode] [data-option=rollout]"):
        expect(page.locator(f"#view-threads {name}")).to_be_hidden()


def test_one_head_in_pieces_with_special_ones_is_the_tensor_itself(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(unit="pieces", special=1, layer=2), asker.trace()
    page.click(".swatch[data-head='1']")
    page.locator(".column.queries .word").nth(3).hover()
    weights_HTS = asker.tensor(meta, "decoder.2.cross_attention.weights")
    assert shown_weights(page, "keys") == pytest.approx(weights_HTS[1, 3].tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "name"), [("encoder_self", "encoder.1.self_attention"), ("decoder_self", "decoder.1.self_attention")]
)
def test_self_attention_has_threads_too(reader: Reader, asker: Asker, kind: str, name: str) -> None:
    page, meta = reader.open(kind=kind, layer=1, unit="pieces", special=1), asker.trace()
    page.locator(".column.queries .word").nth(2).hover()
    expected = asker.tensor(meta, f"{name}.weights").mean(axis=0)[2]
    assert shown_weights(page, "keys") == pytest.approx(expected.tolist(), abs=1e-6)
    first = meta["begin"]["piece"] if kind == "decoder_self" else meta["source"]["pieces"][0]["piece"]
    assert page.locator(".column.keys .word").first.text_content() == first


def test_weight_times_value_length_and_rollout_are_shares_of_what_the_trace_holds(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(layer=1, measure="norm"), asker.trace()
    name = "decoder.1.cross_attention"
    lengths = asker.tensor(meta, f"{name}.weights") * asker.tensor(meta, f"{name}.value_norm")[:, None, :]
    page.locator(".column.queries .word").nth(0).hover()
    assert shown_weights(page, "keys") == pytest.approx(in_words(lengths.mean(axis=0), meta)[0].tolist(), abs=1e-5)
    page.click("[data-name=mode] [data-option=rollout]")
    expect(page.locator("#threads-note")).to_contain_text("Rollout")
    page.locator(".column.queries .word").nth(0).hover()
    rollout = asker.tensor(meta, "rollout.cross")
    assert shown_weights(page, "keys") == pytest.approx(in_words(rollout, meta)[0].tolist(), abs=1e-5)


def test_the_address_holds_what_is_looked_at(reader: Reader) -> None:
    page = reader.open(step=1, unit="pieces", kind="encoder_self", view="threads")
    expect(page.locator(".line.target .chip.current")).to_have_attribute("data-index", "1")
    expect(page.locator("[data-name=unit] input[value=pieces]")).to_be_checked()
    page.click("#tab-beam")
    assert "view=beam" in page.evaluate("location.hash")
    assert "step=1" in page.evaluate("location.hash")
    assert not any(TEXT.split()[0] in url for url in reader.requests)  # a text is nobody's log's business


def test_nonsense_in_the_address_is_passed_over(reader: Reader) -> None:
    page = reader.open(view="attic", step="many", layer=99, heads="7.9", kind="sideways", lesson=400, query=9999)
    expect(page.locator(".thread").first).to_be_attached()


def test_an_address_that_may_not_change_now_changes_later(reader: Reader, asker: Asker) -> None:
    page, count = reader.open(), len(asker.trace()["target"]["pieces"])
    page.evaluate("() => { history.replaceState = () => { throw new DOMException('too often', 'SecurityError'); }; }")
    page.locator("body").press("ArrowLeft")
    expect(page.locator(".stepper .count")).to_have_text(f"{count - 1} / {count}")
    page.evaluate("delete history.replaceState")
    page.wait_for_function("step => location.hash.includes(`step=${step}`)", arg=count - 2)


def test_several_sentences_are_explained_one_at_a_time(reader: Reader) -> None:
    page = reader.open("Baceba dila. Gupo lame. Niru.")
    expect(page.locator(".column.keys")).to_contain_text("Baceba")
    page.select_option("select[data-name=sentence]", "1")
    expect(page.locator(".column.keys")).to_contain_text("Gupo")


def test_what_the_server_refuses_is_told_in_its_words(reader: Reader) -> None:
    page = reader.open()
    before = page.locator(".line.target").text_content()
    page.fill("#text", "dila " * 1000)
    page.press("#text", "Enter")
    expect(page.locator("#status")).to_contain_text("characters is 5000, at most 1000")
    assert page.locator(".line.target").text_content() == before
    assert page.input_value("#text") == "dila " * 1000
    page.click("#tab-beam")
    with page.expect_request("**/explain/trace") as asked:
        page.locator("[data-name=beam]").fill("2")
    assert asked.value.post_data_json["text"] == TEXT  # what was refused has changed nothing
    reader.errors.clear()  # the browser reports the refusal itself


def test_a_draft_stays_in_its_box(reader: Reader) -> None:
    page = reader.open("Dila.")
    page.fill("#text", "Dila gupo")
    page.click("#tab-map")
    page.locator("#view-map").press("ArrowLeft")
    assert page.input_value("#text") == "Dila gupo"
    held: list[Route] = []
    page.route("**/explain/trace", lambda route: held.append(route))
    with page.expect_request("**/explain/trace"):
        page.press("#text", "Enter")
    page.fill("#text", "Dila gupo meni")
    held[0].continue_()
    expect(page.locator(".line.source")).to_contain_text("gupo")
    assert page.input_value("#text") == "Dila gupo meni"


def test_numbers_that_do_not_come_are_told_once(reader: Reader) -> None:
    reader.page.route("**/explain/tensors", lambda route: route.fulfill(status=500, json={"error": "out of numbers"}))
    page = reader.open(view="microscope")
    expect(page.locator("#view-microscope .note")).to_have_text("out of numbers")
    assert [error for error in reader.errors if not error.startswith("Failed to load resource")] == []
    reader.errors.clear()  # the browser reports the refusal itself


def test_a_server_that_cannot_explain_translates_and_says_what_it_lacks(reader: Reader) -> None:
    def without_torch(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "ready": False, "why": "explaining needs torch"})

    page = reader.page
    page.route("**/explain/models", without_torch)
    page.goto(reader.address)
    page.fill("#text", TEXT)
    # The sentence of a first visit is asked for, too.
    with page.expect_response(lambda answer: (answer.request.post_data_json or {}).get("q") == TEXT) as answered:
        page.press("#text", "Enter")
    text = answered.value.json()["translatedText"]
    expect(page.locator(".line.target")).to_have_text(text)
    expect(page.locator("#live")).to_contain_text(text)
    expect(page.locator("#desk")).to_contain_text("explaining needs torch")
    expect(page.locator("[role=tab]:visible")).to_have_count(0)
    assert not any("/explain/trace" in url for url in reader.requests)


def test_what_is_typed_before_the_server_has_said_what_it_can_do_stays(reader: Reader) -> None:
    held: list[Route] = []
    page = reader.page
    page.route("**/explain/models", lambda route: held.append(route))
    page.goto(reader.address)
    page.fill("#text", TEXT)
    page.wait_for_timeout(100)
    for route in held:
        route.continue_()
    expect(page.locator(".line.target")).not_to_be_empty()  # the first sentence's
    assert page.input_value("#text") == TEXT


def test_what_is_sent_before_the_server_has_said_what_it_can_do_is_not_lost(reader: Reader, asker: Asker) -> None:
    held: list[Route] = []
    page = reader.page
    page.route("**/explain/models", lambda route: held.append(route))
    page.goto(reader.address)
    page.fill("#text", TEXT)
    page.press("#text", "Enter")
    for route in held:
        route.continue_()
    page.unroute("**/explain/models")
    expect(page.locator("#live")).to_contain_text(asker.trace()["translation"]["text"])
    assert page.input_value("#text") == TEXT


def test_words_and_chips_are_reached_by_keyboard(reader: Reader) -> None:
    page = reader.open()
    page.locator(".column.keys .word").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".column.keys .word").nth(1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".column.queries .word").first).to_be_focused()
    expect(page.locator(".column.queries .entry.chosen")).to_have_count(1)
    page.locator("#tab-threads").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#view-map")).to_be_visible()
