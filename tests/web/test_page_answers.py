"""Answers that take a while: about the sentence that is shown, in its own words, and never about another."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import TEXT, Asker, Reader
from playwright.sync_api import Browser, Page, Route, expect

from lively_model import SENTENCES
from tiny_bundle import tiny_tokenizer

OTHER = SENTENCES[4]


def held(page: Page, what: str) -> list[Route]:
    """Questions of this kind, from here on: the server hears of them when they are let go."""
    routes: list[Route] = []
    page.route(f"**/explain/{what}", lambda route: routes.append(route))
    return routes


def translate(page: Page, asker: Asker, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")
    expect(page.locator("#live")).to_contain_text(asker.trace(text)["translation"]["text"])


def words(meta: dict[str, Any], side: str) -> list[str]:
    return [word["text"] for word in meta[side]["words"]]


def test_the_second_sentence_of_a_text_can_be_changed(reader: Reader, asker: Asker) -> None:
    page = reader.open("Gu ru ba. Badigu cepo ni me.", view="whatif", sentence=1)
    page.locator(".wordbox .drop").nth(1).click()
    page.click("[data-name=compare]")
    expect(page.locator(".version.after .version-source")).to_have_text("Badigu ni me.")
    after = asker.trace("Badigu ni me.")["translation"]["text"]
    expect(page.locator(".version.after .version-text")).to_have_text(after)
    expect(page.locator(".version.before .version-source")).to_have_text("Badigu cepo ni me.")
    page.click("[data-name=take]")
    expect(page.locator("#live")).to_contain_text(after)


def test_pieces_that_were_given_stay_given_in_what_is_compared_and_looked_into(reader: Reader, asker: Asker) -> None:
    prefix = [one["id"] for one in asker.trace(SENTENCES[0])["target"]["pieces"][:2]]
    page = reader.open(view="whatif", prefix=".".join(map(str, prefix)))
    page.locator(".wordbox input").first.fill("Gu")
    page.click("[data-name=compare]")
    after = asker.trace(" ".join(["Gu", *TEXT.split()[1:]]), prefix=prefix)["translation"]["text"]
    expect(page.locator(".version.after .version-text")).to_have_text(after)
    page.click("[data-name=take]")
    expect(page.locator("#live")).to_contain_text(after)
    expect(page.locator(".changes")).to_contain_text("first 2 pieces given")


def test_a_comparison_that_comes_too_late_is_not_shown(reader: Reader, asker: Asker) -> None:
    page = reader.open(view="whatif")
    routes = held(page, "compare")
    page.locator(".wordbox .drop").nth(1).click()
    page.click("[data-name=compare]")
    expect(page.locator(".compare")).to_have_attribute("aria-busy", "true")
    translate(page, asker, OTHER)
    routes[0].continue_()
    expect(page.locator(".compare")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator(".version")).to_have_count(0)


def test_a_translation_from_right_to_left_is_set_so(reader: Reader) -> None:
    page = reader.open("שלום dila עולם.", view="whatif")
    version = {"text": "שלום עולם", "score": -1.0, "log_probability": -2.0, "confidence": 0.5, "target_ids": [2]}
    changes = [
        {"kind": kind, "before": [word], "after": [word]} for kind, word in (("same", "שלום"), ("replaced", "עולם"))
    ]
    answer = {"before": version, "after": version, "difference": changes}
    page.route("**/explain/compare", lambda route: route.fulfill(json=answer))
    page.locator(".wordbox .drop").nth(1).click()
    page.click("[data-name=compare]")
    for name, language in (("version-text", "en"), ("version-source", "fr")):
        line = page.locator(f".version.before .{name}")
        assert line.evaluate("one => getComputedStyle(one).direction") == "rtl"
        expect(line).to_have_attribute("lang", language)


def test_while_a_replay_is_awaited_the_old_one_keeps_its_own_words(reader: Reader, asker: Asker) -> None:
    page, view = reader.open(view="replay"), "#view-replay"
    old, new = asker.trace(), asker.trace(OTHER)
    columns = page.locator(f"{view} .heatmap .above > span")
    expect(columns).to_have_text(words(old, "source"))
    routes = held(page, "replay")
    translate(page, asker, OTHER)
    expect(page.locator(f"{view} [aria-busy=true]")).to_have_count(1)
    page.locator("[data-name=checkpoint]").fill("0")
    moment = asker.ask("replay", old)["checkpoints"][0]
    expect(page.locator(f"{view} .version-text")).to_have_text(moment["text"])
    expect(columns).to_have_text(words(old, "source"))
    page.locator(f"{view} canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(f"{view} .formula")).to_contain_text(f"{moment['matrix'][1][0]:.3f}")
    routes[0].continue_()
    expect(columns).to_have_text(words(new, "source"))
    expect(page.locator(f"{view} [aria-busy=true]")).to_have_count(0)


@pytest.mark.parametrize(("view", "what"), [("matters", "importance"), ("map", "effects")])
def test_an_old_answer_is_marked_until_the_new_one_is_there(reader: Reader, asker: Asker, view: str, what: str) -> None:
    page = reader.open(view=view, sort="effect")
    expect(page.locator(f"#view-{view} canvas").first).to_be_visible()
    routes = held(page, what)
    translate(page, asker, OTHER)
    expect(page.locator(f"#view-{view} [aria-busy=true]")).to_have_count(1)
    routes[0].continue_()
    expect(page.locator(f"#view-{view} [aria-busy=true]")).to_have_count(0)


def test_what_matters_stays_beside_its_word_when_a_special_piece_divides_one(reader: Reader, asker: Asker) -> None:
    tokenizer = tiny_tokenizer(("en", "fr"))
    first, *others = tokenizer.encode("dilagu gupo").ids
    prefix = [first, tokenizer.language_id("fr"), *others]
    page = reader.open(view="matters", prefix=".".join(map(str, prefix)))
    meta = asker.trace(prefix=prefix)
    weights_TS = asker.tensor(meta, f"decoder.{meta['alignment_layer']}.cross_attention.weights").mean(axis=0)
    own = [place for word in meta["source"]["words"] for place in word["pieces"]]
    weights_TS = weights_TS / weights_TS[:, own].sum(axis=1, keepdims=True)
    targets, sources = meta["target"]["words"], meta["source"]["words"]
    assert words(meta, "target")[0] == "dilagu"
    page.locator("#view-matters .heatmap canvas").first.focus()
    for row, col in ((0, 0), (0, 1), (1, 1)):
        share = np.mean(weights_TS[np.ix_(targets[col]["pieces"], sources[row]["pieces"])].sum(axis=1))
        readout = page.locator("#view-matters .formula")
        expect(readout).to_contain_text(f"Without {sources[row]['text']}, {targets[col]['text']} goes")
        shown = float((readout.text_content() or "").rpartition("there: ")[2].rstrip(".").lstrip("<"))
        assert shown == pytest.approx(share, abs=6e-4)
        page.keyboard.press("ArrowRight" if col == 0 else "ArrowDown")


@pytest.mark.parametrize("view", ["matters", "replay"])
def test_a_translation_without_words_says_so(reader: Reader, view: str) -> None:
    page = reader.open(view=view, prefix=2)  # the end, at once
    expect(page.locator(f"#view-{view} .note")).to_contain_text("There are only special pieces here")


def test_what_matters_training_and_the_map_follow_the_step(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="matters", step=0), asker.trace()
    pieces, names = meta["target"]["pieces"], words(meta, "target")
    later = next(place for place, piece in enumerate(pieces) if piece["word"] == 1)
    expect(page.locator("#view-matters .above .now")).to_have_text([names[0]] * 2)
    expect(page.locator("#view-matters tr[aria-current=true] th")).to_have_text(names[0])
    page.locator(".scrubber").fill(str(later))
    expect(page.locator("#view-matters .above .now")).to_have_text([names[1]] * 2)
    expect(page.locator("#view-matters tr[aria-current=true] th")).to_have_text(names[1])
    page.click("#tab-replay")
    expect(page.locator("#view-replay .left .now")).to_have_text(names[1])
    page.locator(".scrubber").fill("0")
    expect(page.locator("#view-replay .left .now")).to_have_text(names[0])
    page.click("#tab-map")
    expect(page.locator(".map.stepped")).to_have_count(1)
    assert page.locator(".map").evaluate("one => one.style.getPropertyValue('--row')") == "0"


def test_the_likeness_of_two_positions_is_told_to_the_keyboard(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="positions"), asker.trace()
    table = asker.tensor(meta, "position.table").astype(np.float64)
    canvas = page.locator(".likeness canvas")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    told = f"PE(2) · PE(1) = {table[2] @ table[1]:.2f}".replace("-", "−")
    expect(page.locator("#view-positions .formula")).to_contain_text(told)
    expect(page.locator("#view-positions .formula")).to_have_attribute("aria-live", "polite")
    assert told in (canvas.get_attribute("aria-label") or "")


def test_arrow_keys_walk_the_positions_and_their_formulas(reader: Reader) -> None:
    page = reader.open(view="positions", column=3)
    page.locator(".position-grid canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#view-positions .formula")).to_contain_text("PE(1, 4) = sin(1 / 10000^(4/22))")
    expect(page.locator(".curve")).to_contain_text("column 4")
    expect(page.locator(".position-grid canvas")).to_be_focused()


def test_every_piece_of_a_long_sentence_has_its_position(reader: Reader) -> None:
    page = reader.open("dila gupo meni ruba " * 9, view="positions")
    pieces = page.locator(".line.source .chip").count()
    assert pieces > 64
    expect(page.locator(".position-grid .left .own")).to_have_count(pieces)
    assert page.locator(".position-grid canvas").evaluate("one => one.height") == pieces


def test_a_saved_page_shows_the_shuffle_that_it_holds(chromium: Browser, asker: Asker, tmp_path: Path) -> None:
    meta, file = asker.trace(), tmp_path / "page.html"
    file.write_bytes(asker.client.post("/explain/page", json={"request": meta["request"]}).raise_for_status().content)
    alone = Reader(chromium, "file://")
    alone.cut_off()
    alone.page.goto(f"{file.as_uri()}#view=positions")
    expect(alone.page.locator(".shuffled tbody tr")).to_have_count(2)
    expect(alone.page.locator(".shuffled .chip")).to_have_count(len(asker.ask("shuffle", meta)["order"]))
    expect(alone.page.locator("[data-name=shuffle]")).to_be_disabled()
    alone.context.close()
    assert alone.errors == []
