"""The views beside the threads: each shows the trace's own numbers, and runs again what is changed."""

import math
import re

import numpy as np
import pytest
from browser import STEPS, TEXT, Asker, Reader
from playwright.sync_api import Page, expect


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("<", "").replace("%", "").replace("+", ""))


def figures(page: Page, formula: str) -> list[float]:
    texts = page.locator(f"#view-microscope [data-formula={formula}]").all_text_contents()
    return [0.0 if text == "<0.001" else number(text) for text in texts]


# The model map


def test_the_map_has_every_head_of_a_kind(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="map"), asker.trace()
    for kind in ("cross", "encoder_self", "decoder_self"):
        page.click(f"[data-name=map-kind] [data-option={kind}]")
        count = sum(head["kind"] == kind for head in meta["heads"])
        expect(page.locator(".map .head")).to_have_count(count)
        expect(page.locator(".map")).to_have_attribute("data-drawn", str(count))


@pytest.mark.parametrize(("order", "key", "sign"), [("entropy", "entropy", 1), ("diagonality", "diagonality", -1)])
def test_the_map_is_ordered_by_what_is_asked_for(reader: Reader, asker: Asker, order: str, key: str, sign: int) -> None:
    page = reader.open(view="map", sort=order)
    heads = sorted(
        (head for head in asker.trace()["heads"] if head["kind"] == "cross"), key=lambda head: sign * head[key]
    )
    shown = page.eval_on_selector_all(
        ".map .head", "all => all.map(one => [Number(one.dataset.layer), Number(one.dataset.head)])"
    )
    assert shown == [[head["layer"], head["head"]] for head in heads]


def test_the_map_can_be_ordered_by_measured_effect(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="map", sort="effect"), asker.trace()
    effects = [head for head in asker.ask("effects", meta)["heads"] if head["kind"] == "cross"]
    most = max(effects, key=lambda head: head["effect"])
    first = page.locator(".map .head").first
    expect(first).to_have_attribute("data-layer", str(most["layer"]))
    expect(first).to_have_attribute("data-head", str(most["head"]))


def test_a_head_of_the_map_opens_as_threads_or_as_arithmetic(reader: Reader) -> None:
    page = reader.open(view="map")
    page.click(".map .head[data-layer='2'][data-head='1']")
    expect(page.locator("#view-threads")).to_be_visible()
    expect(page.locator(".swatch[aria-pressed=true]")).to_have_text("2")
    page.click("#tab-map")
    page.click("[data-name=map-kind] [data-option=encoder_self]")
    page.click(".map .head[data-layer='1'][data-head='0']")
    expect(page.locator("#view-microscope .working")).to_have_attribute(
        "data-place", re.compile(r"encoder\.1\.self_attention\.0\.")
    )


# The arithmetic microscope


@pytest.mark.parametrize(
    ("kind", "name", "row"),
    [
        ("encoder_self", "encoder.1.self_attention", 3),
        ("cross", "decoder.2.cross_attention", 2),
        ("decoder_self", "decoder.0.self_attention", 2),
    ],
)
def test_the_microscopes_numbers_are_the_traces(reader: Reader, asker: Asker, kind: str, name: str, row: int) -> None:
    layer = int(name.split(".")[1])
    page, meta = reader.open(view="microscope", kind=kind, layer=layer, heads=1, step=row, query=row), asker.trace()
    expect(page.locator("#view-microscope .working")).to_have_attribute("data-place", f"{name}.1.{row}")
    query, key = asker.tensor(meta, f"{name}.query")[1, row], asker.tensor(meta, f"{name}.key")[1]
    weights = asker.tensor(meta, f"{name}.weights")[1, row]
    assert figures(page, "product") == pytest.approx((key @ query).tolist(), abs=0.006)
    assert figures(page, "scaled") == pytest.approx((key @ query / math.sqrt(len(query))).tolist(), abs=6e-4)
    assert figures(page, "softmax") == pytest.approx(weights.tolist(), abs=6e-4)
    masked = page.locator("#view-microscope tr.masked").count()
    assert masked == (len(key) - row - 1 if kind == "decoder_self" else 0)


def test_a_number_under_the_pointer_is_worked_out(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="microscope", kind="encoder_self", layer=0, query=2), asker.trace()
    name = "encoder.0.self_attention"
    score = float(asker.tensor(meta, f"{name}.scores")[0, 2, 1])
    page.locator("[data-formula=scaled][data-key='1']").hover()
    shown = page.locator("#view-microscope .formula").text_content() or ""
    assert "/ √11" in shown
    assert number(shown.rpartition("= ")[2]) == pytest.approx(score, abs=6e-4)
    page.locator("[data-formula=product]").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-formula=product][data-key='1']")).to_be_focused()
    expect(page.locator("#view-microscope .formula")).to_contain_text("q · k =")


# The next piece


def test_the_next_piece_shows_the_steps_probabilities(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="next", step=1), asker.trace()
    step = meta["steps"][1]
    shown = [number(text) / 100 for text in page.locator(".bars .figure").all_text_contents()]
    expected = [piece["probability"] for piece in step["top"]]
    assert shown[: len(expected)] == pytest.approx(expected, abs=1.1e-3)
    expect(page.locator(".lens tbody tr")).to_have_count(len(step["lens"]))
    lowest = page.locator(".lens tbody tr").last.locator(".figure").all_text_contents()
    assert [number(text) / 100 for text in lowest] == pytest.approx(
        [one["probability"] for one in step["lens"][0]], abs=1.1e-3
    )


def test_another_piece_can_be_forced_and_taken_back(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="next", step=1), asker.trace()
    other = next(piece for piece in meta["steps"][1]["top"] if piece["id"] != meta["steps"][1]["chosen"]["id"])
    ids = [meta["target"]["pieces"][0]["id"], other["id"]]
    page.click(f".bars button[data-id='{other['id']}']")
    expect(page.locator(".bars .taken button")).to_have_attribute("data-id", str(other["id"]))
    expect(page.locator("#live")).to_contain_text(asker.trace(prefix=ids)["translation"]["text"])
    expect(page.locator(".changes")).to_contain_text("first 2 pieces given")
    page.click("[data-name=undo]")
    expect(page.locator("#live")).to_contain_text(meta["translation"]["text"])
    expect(page.locator(".changes")).to_be_hidden()


# The beam tree


def test_the_tree_has_every_node_of_a_beam_of_four(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="beam", beam=4), asker.trace()
    tree = meta["beam"]
    expect(page.locator(".beam .node")).to_have_count(len(tree["nodes"]))
    kept = [node for node in tree["nodes"] if node["step"] == 1 and node["state"] == "kept"]
    assert len(kept) == 4
    assert page.locator(".node.best").count() == len(tree["best"])
    assert page.locator(".node.pruned:not(.best)").count() == sum(node["state"] == "pruned" for node in tree["nodes"])
    dropped = next(node for node in tree["nodes"] if node["state"] == "pruned")
    page.locator(f".node[data-id='{dropped['id']}']").hover()
    expect(page.locator(".told")).to_contain_text(f"Dropped: {dropped['reason']}")
    score = f"{dropped['score']:.3f}".replace("-", "−")
    expect(page.locator(".told")).to_contain_text(f"score {score}")


def test_beam_width_and_length_penalty_search_again(reader: Reader, asker: Asker) -> None:
    page = reader.open(view="beam")
    page.locator("[data-name=beam]").fill("2")
    nodes = asker.trace(beam=2)["beam"]["nodes"]
    expect(page.locator(".beam .node")).to_have_count(len(nodes))
    page.locator("[data-name=penalty]").fill("1.5")
    best = asker.trace(beam=2, length_penalty=1.5)["beam"]["nodes"][0]
    expect(page.locator(f".node[data-id='{best['id']}'] .score")).to_have_text(f"{best['score']:.2f}".replace("-", "−"))
    expect(page).to_have_url(re.compile("penalty=1.5"))


def test_a_search_that_the_sliders_do_not_reach_is_told_as_it_was(reader: Reader) -> None:
    page = reader.open(view="beam", beam=12, penalty=2.25)
    expect(page.locator("label:has([data-name=beam]) output")).to_have_text("12")
    expect(page.locator("label:has([data-name=penalty]) output")).to_have_text("2.25")


def test_arrow_keys_walk_the_tree(reader: Reader, asker: Asker) -> None:
    page, tree = reader.open(view="beam"), asker.trace()["beam"]
    page.locator(f".node[data-id='{tree['best'][0]}']").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(f".node[data-id='{tree['best'][1]}']")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(f".node[data-id='{tree['best'][0]}']")).to_be_focused()


# What matters, and what if


def test_what_matters_tells_the_measured_change(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="matters"), asker.trace()
    measured = asker.ask("importance", meta)
    page.locator("#view-matters .heatmap canvas").first.focus()
    page.keyboard.press("ArrowDown")
    points = f"{100 * measured['change'][1][0]:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")
    expect(page.locator("#view-matters .formula")).to_contain_text(f": {points} points")
    expect(page.locator("#view-matters .formula")).to_contain_text(f"Without {measured['words'][1]}")
    expect(page.locator("#view-matters tbody tr")).to_have_count(len(measured["targets"]))


def test_heads_can_be_switched_off_and_compared(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="whatif"), asker.trace()
    names = [head["name"] for head in meta["heads"] if head["kind"] == "cross"]
    for name in names:
        page.click(f".switch[data-name='{name}']")
    page.click("[data-name=compare]")
    answer = asker.ask(
        "compare",
        meta,
        changed={**{key: meta["request"][key] for key in ("text", "source", "target", "beam")}, "off": names},
    )
    expect(page.locator(".version.after .version-text")).to_have_text(answer["after"]["text"])
    expect(page.locator(".version.before .version-text")).to_have_text(meta["translation"]["text"])
    page.click("[data-name=take]")
    expect(page.locator(".changes")).to_contain_text(f"{len(names)} heads off")
    expect(page.locator("#live")).to_contain_text(answer["after"]["text"])


def test_a_word_can_be_left_out_or_swapped(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="whatif"), asker.trace()
    first, second, *rest = TEXT.split()
    page.locator(".wordbox .drop").nth(1).click()
    page.locator(".wordbox input").first.fill("Niru")
    page.click("[data-name=compare]")
    changed = " ".join(["Niru", *rest])
    expect(page.locator(".version.after .version-source")).to_have_text(changed)
    fields = {key: meta["request"][key] for key in ("source", "target", "beam")}
    answer = asker.ask("compare", meta, changed={**fields, "text": changed})
    expect(page.locator(".version.after .version-text")).to_have_text(answer["after"]["text"])
    page.click("[data-name=reset]")
    expect(page.locator("[data-name=compare]")).to_be_disabled()
    assert page.locator(".wordbox input").nth(1).input_value() == second
    assert page.locator(".wordbox input").first.input_value() == first


# Positions, training, the lesson


def test_positions_show_the_sinusoid_and_its_formula(reader: Reader) -> None:
    page = reader.open(view="positions", column=4)
    canvas = page.locator(".position-grid canvas")
    rows, cols = canvas.evaluate("one => [one.height, one.width]")
    box = canvas.bounding_box()
    assert box is not None
    canvas.hover(position={"x": box["width"] * 4.5 / cols, "y": box["height"] * 3.5 / rows})
    expected = math.sin(3 / 10_000 ** (4 / cols))
    expect(page.locator("#view-positions .formula")).to_contain_text(f"PE(3, 4) = sin(3 / 10000^(4/{cols}))")
    text = page.locator("#view-positions .formula").text_content() or ""
    assert number(text.rpartition("= ")[2]) == pytest.approx(expected, abs=1e-4)


def test_shuffling_shows_that_order_is_heard_only_with_positions(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="positions"), asker.trace()
    page.click("[data-name=shuffle]")
    expect(page.locator(".shuffled tbody tr")).to_have_count(2)
    without, with_them = page.locator(".shuffled tbody tr").all_text_contents()
    assert "the same vectors" in without
    assert "the order is heard" in with_them
    order = asker.ask("shuffle", meta, seed=1)["order"]
    pieces = [meta["source"]["pieces"][place] for place in order]
    assert page.locator(".shuffled .chip").all_text_contents() == [
        "␣" if piece["text"] == "▁" else piece["text"] for piece in pieces
    ]


def test_training_replays_the_checkpoints_that_were_kept(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(view="replay"), asker.trace()
    moments = asker.ask("replay", meta)["checkpoints"]
    assert [moment["step"] for moment in moments] == list(STEPS)
    page.locator("[data-name=checkpoint]").fill("0")
    expect(page.locator("#view-replay .version-text")).to_have_text(moments[0]["text"])
    page.locator("#view-replay canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#view-replay .formula")).to_contain_text(f"{moments[0]['matrix'][0][1]:.3f}")


def test_a_model_without_checkpoints_has_no_training_view(reader: Reader) -> None:
    page = reader.open("Dila gupo.", **{"from": "de", "to": "en", "view": "replay"})
    expect(page.locator("#tab-replay")).to_be_hidden()
    expect(page.locator("#view-threads")).to_be_visible()


def test_the_lesson_runs_to_its_end_through_real_views(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(), asker.trace()
    page.click("[data-name=lesson]")
    seen = []
    expect(page.locator(".lesson")).to_have_attribute("data-step", "0")
    count = int((page.locator(".lesson-count").text_content() or "").split()[-1])
    for step in range(count):
        expect(page.locator(".lesson")).to_have_attribute("data-step", str(step))
        seen.append(page.locator("[role=tab][aria-selected=true]").text_content())
        assert len(page.locator(".lesson-text").text_content() or "") > 80
        if step == 0:
            expect(page.locator(".lesson-text")).to_contain_text(f"{len(meta['source']['pieces'])} pieces")
        page.click("[data-name=lesson-next]")
    expect(page.locator(".lesson")).to_be_hidden()
    assert set(seen) >= {"Arithmetic", "Map", "Positions", "Threads", "Next piece", "Beam"}


def test_the_lesson_speaks_of_the_traces_numbers(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(lesson=4), asker.trace()
    expect(page.locator(".lesson")).to_have_attribute("data-step", "4")
    place = page.locator("#view-microscope .working")
    expect(place).to_have_attribute("data-place", re.compile(r"^encoder\."))
    part, layer, kind, head, row = (place.get_attribute("data-place") or "").split(".")
    weights = asker.tensor(meta, f"{part}.{layer}.{kind}.weights")[int(head), int(row)]
    expect(page.locator(".lesson-text")).to_contain_text(f"{np.max(weights):.3f} of its attention")
