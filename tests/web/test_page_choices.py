"""What is chosen stays chosen: a box of the beam tree, a forced piece, and the place where a person reads."""

from typing import Any

from browser import Asker, Reader
from playwright.sync_api import Locator, Page, expect

from tiny_bundle import tiny_tokenizer

TOP = "one => one.getBoundingClientRect().top + window.scrollY"


def path_to(node: dict[str, Any], tree: dict[str, Any]) -> list[int]:
    """The pieces from the first step to a node."""
    by_id = {one["id"]: one for one in tree["nodes"]}
    path = [node]
    while path[0]["parent"] is not None:
        path.insert(0, by_id[path[0]["parent"]])
    return [one["piece_id"] for one in path]


def box(page: Page, node: dict[str, Any]) -> Locator:
    return page.locator(f".node[data-id='{node['id']}']")


def lowest(page: Page, tree: dict[str, Any]) -> dict[str, Any]:
    """Of the boxes after the first step that have not ended, the one furthest down."""
    tops = page.eval_on_selector_all(
        ".node", "all => all.map(one => [Number(one.dataset.id), one.getBoundingClientRect().top])"
    )
    down = dict(tops)
    open_ones = [node for node in tree["nodes"] if node["state"] != "finished" and node["step"] > 0]
    return max(open_ones, key=lambda node: down[node["id"]])  # type: ignore[no-any-return]


def test_one_can_go_on_from_a_box_of_the_lowest_row_with_the_mouse(reader: Reader, asker: Asker) -> None:
    page, tree = reader.open(view="beam"), asker.trace()["beam"]
    node = lowest(page, tree)
    first = next(one for one in tree["nodes"] if one["step"] == 0 and one["id"] in tree["best"])
    expect(page.locator("[data-name=from-node]")).to_be_disabled()
    box(page, node).click()
    told = page.locator(".told").text_content()
    box(page, first).hover()  # on the way, others are told
    expect(page.locator(".told")).to_contain_text("after step 1:")
    expect(page.locator("[data-name=from-node]")).to_be_disabled()
    button = page.locator("[data-name=from-node]").bounding_box()
    assert button is not None
    page.mouse.move(button["x"] + 9, button["y"] + 9, steps=29)
    expect(page.locator(".told")).to_have_text(told or "")
    page.mouse.down()
    page.mouse.up()
    prefix = path_to(node, tree)
    expect(page.locator(".changes")).to_contain_text(f"first {len(prefix)} pieces given")
    assert f"prefix={'.'.join(map(str, prefix))}" in page.evaluate("location.hash")


def test_enter_holds_on_to_a_box_and_tab_leads_to_the_way_on(reader: Reader, asker: Asker) -> None:
    page, tree = reader.open(view="beam"), asker.trace()["beam"]
    page.locator(".node[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".node.pinned")).to_have_attribute("aria-pressed", "true")
    node = next(one for one in tree["nodes"] if one["id"] == int(page.locator(".node.pinned").get_attribute("data-id")))  # type: ignore[arg-type]
    page.keyboard.press("Tab")
    expect(page.locator("[data-name=from-node]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".changes")).to_contain_text("first 2 pieces given")
    assert f"prefix={'.'.join(map(str, path_to(node, tree)))}" in page.evaluate("location.hash")
    expect(page.locator(".node:focus")).to_have_count(1)


def test_a_forced_piece_is_told_as_given_and_keeps_the_focus(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="next", step=1), asker.trace()
    other = [piece for piece in meta["steps"][1]["top"] if piece["id"] != meta["steps"][1]["chosen"]["id"]][3]
    page.focus(f".bars button[data-id='{other['id']}']")
    page.keyboard.press("Enter")
    expect(page.locator(".bars .taken button")).to_have_attribute("data-id", str(other["id"]))
    expect(page.locator(".bars .taken button")).to_be_focused()
    rank = asker.trace(prefix=[meta["target"]["pieces"][0]["id"], other["id"]])["steps"][1]["chosen"]["rank"]
    expect(page.locator(".bars + .fine")).to_contain_text(f"This piece was given; it is the model’s choice {rank}.")
    expect(page.locator(".bars + .fine")).not_to_contain_text("The search took")


def test_the_bars_stand_still_while_the_text_grows(reader: Reader, asker: Asker) -> None:
    text, given = "dila gupo meni ruba " * 5, tiny_tokenizer(("en", "fr")).encode("dilagu gupo meni ruba laba " * 3).ids
    reader.page.set_viewport_size({"width": 320, "height": 740})  # where the text takes several lines
    page = reader.open(text, view="next", step=0, prefix=".".join(map(str, given)))
    meta = asker.trace(text, prefix=given)
    places = []
    for step in range(0, len(given), 11):
        page.locator(".scrubber").fill(str(step))
        expect(page.locator(".bars .taken button")).to_have_attribute(
            "data-id", str(meta["target"]["pieces"][step]["id"])
        )
        places.append(page.locator(".bars").evaluate(TOP) - page.locator("#view-next").evaluate(TOP))
    assert len(set(places)) == 1
