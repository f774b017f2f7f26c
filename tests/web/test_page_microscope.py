"""The arithmetic microscope: every number worked out from the trace's own, and the chain again in PyTorch."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
import torch
from browser import TEXT, Asker, Reader, serving
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, expect

from tiny_bundle import write_tiny_bundle

NUMBER = r"\(?(−?\d[\d.]*(?:e[+−]?\d+)?)\)?"
PLACES = [
    ("encoder_self", "encoder.1.self_attention", 3),
    ("cross", "decoder.2.cross_attention", 2),
    ("decoder_self", "decoder.0.self_attention", 2),
]


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def opened(reader: Reader, kind: str, name: str, row: int, **more: str | int) -> Page:
    """The microscope on head 2, when its matrices are there."""
    layer = int(name.split(".")[1])
    page = reader.open(view="microscope", kind=kind, layer=layer, heads=1, step=row, query=row, **more)
    expect(page.locator("#view-microscope .working")).to_have_attribute("data-place", f"{name}.1.{row}")
    expect(page.locator("#view-microscope .working")).to_have_attribute("data-learned", "true")
    return page


def told(page: Page, vector: str, index: int, key: int | None = None) -> str:
    """The formula of one number, with the pointer on it."""
    strip = page.locator(f"#view-microscope [data-vector='{vector}']" + ("" if key is None else f"[data-key='{key}']"))
    strip.scroll_into_view_if_needed()
    width = int(strip.get_attribute("width") or 0)
    box = strip.bounding_box()
    assert box is not None
    page.mouse.move(0, 0)
    page.mouse.move(box["x"] + box["width"] * (index + 0.5) / width, box["y"] + box["height"] / 2)
    expect(strip).to_have_attribute("data-at", str(index))
    return page.locator("#view-microscope .formula").text_content() or ""


def worked_out(formula: str) -> tuple[float, float, list[int], float]:
    """The sum of the terms shown, the rest, which terms they are, and the total."""
    terms = re.findall(NUMBER + "·" + NUMBER, formula)
    rest = re.search(r"… \+ the rest \(([−\d.]+)\)", formula)
    which = re.search(r"i = ([\d, ]+): the largest", formula)
    total = re.search(r"= (−?[\d.]+)   \(", formula)
    assert rest is not None, formula
    assert which is not None, formula
    assert total is not None, formula
    shown = sum(number(one) * number(other) for one, other in terms)
    return shown, number(rest[1]), [int(place) for place in which[1].split(", ")], number(total[1])


def check_product(formula: str, vector: NDArray[np.float32], column: NDArray[np.float32], total: float) -> None:
    """The formula is that of vector times column: its largest terms, the rest, and the total that was recorded."""
    products = vector.astype(np.float64) * column
    largest = np.argsort(-np.abs(products))[:3]
    shown, rest, which, result = worked_out(formula)
    assert which == largest.tolist()
    assert shown == pytest.approx(products[largest].sum(), abs=2e-3)
    assert rest == pytest.approx(products.sum() - products[largest].sum(), abs=6e-5)
    assert result == pytest.approx(total, abs=6e-5)


@pytest.mark.parametrize(("kind", "name", "row"), PLACES)
def test_each_number_of_q_k_and_v_is_worked_out_from_x(
    reader: Reader, asker: Asker, kind: str, name: str, row: int
) -> None:
    page, meta = opened(reader, kind, name, row), asker.trace()
    x = asker.tensor(meta, f"{name}.input")
    memory = asker.tensor(meta, "encoder.output") if kind == "cross" else x
    for letter, full, index, key in (("q", "query", 7, None), ("k", "key", 0, 1), ("v", "value", 10, 2)):
        formula = told(page, letter, index, key)
        assert formula.startswith(f"{letter}[{index}] = Σᵢ {'y' if key and kind == 'cross' else 'x'}[i]·W_")
        vector = x[row] if key is None else memory[key]
        result = asker.tensor(meta, f"{name}.{full}")[1, row if key is None else key, index]
        check_product(formula, vector, asker.tensor(meta, f"{name}.w_{letter}")[1, index], result)


@pytest.mark.parametrize(("kind", "name", "row"), PLACES)
def test_each_number_of_the_output_is_worked_out_from_z(
    reader: Reader, asker: Asker, kind: str, name: str, row: int
) -> None:
    page, meta = opened(reader, kind, name, row), asker.trace()
    shares = asker.tensor(meta, f"{name}.contribution")[:, row, 13]
    mixed = asker.tensor(meta, f"{name}.mixed")[1, row]
    check_product(told(page, "z W_O", 13), mixed, asker.tensor(meta, f"{name}.w_o")[1, 13], shares[1])
    formula = told(page, "output", 13)
    heads = {int(head): number(part) for head, part in re.findall(rf"head (\d+): {NUMBER}", formula)}
    assert heads == pytest.approx({head + 1: float(share) for head, share in enumerate(shares)}, abs=6e-4)
    output = asker.tensor(meta, f"{name}.output")[row, 13]
    assert number(formula.rpartition("= ")[2]) == pytest.approx(output, abs=6e-5)
    state, summed = (asker.tensor(meta, f"{name}_residual.{part}")[row, 13] for part in ("input", "sum"))
    before, added, total = re.findall(NUMBER, told(page, "x + output", 13).partition("= ")[2])
    assert [number(before), number(added), number(total)] == pytest.approx([state, output, summed], abs=6e-4)


def test_the_first_layers_x_is_a_piece_and_its_position(reader: Reader, asker: Asker) -> None:
    page, meta = opened(reader, "decoder_self", "decoder.0.self_attention", 2), asker.trace()
    parts = [asker.tensor(meta, f"target.{part}")[2, 5] for part in ("pieces", "position", "embedded")]
    shown = re.findall(NUMBER, told(page, "x", 5).partition("position = ")[2])
    assert [number(text) for text in shown] == pytest.approx([float(part) for part in parts], abs=6e-4)


def test_a_later_layers_x_says_where_it_comes_from(reader: Reader, asker: Asker) -> None:
    page, meta = opened(reader, "encoder_self", "encoder.1.self_attention", 3), asker.trace()
    value = asker.tensor(meta, "encoder.1.self_attention.input")[3, 5]
    formula = told(page, "x", 5)
    assert "from the feed-forward network of layer 1" in formula
    assert number(re.findall(NUMBER, formula.partition("= ")[2])[0]) == pytest.approx(value, abs=6e-5)


def test_the_norm_is_worked_out_with_its_learned_gain_and_bias(reader: Reader, asker: Asker) -> None:
    name = "encoder.1.self_attention"
    page, meta = opened(reader, "encoder_self", name, 3), asker.trace()
    shown = re.search(
        rf"\({NUMBER} − {NUMBER}\) / {NUMBER} · gain {NUMBER} \+ bias {NUMBER} = {NUMBER}", told(page, "norm", 5)
    )
    assert shown is not None
    value, mean, deviation, gain, bias, result = (number(text) for text in shown.groups())
    assert result == pytest.approx(asker.tensor(meta, f"{name}_residual.output")[3, 5], abs=6e-5)
    assert (value - mean) / deviation * gain + bias == pytest.approx(result, abs=1e-3)


def test_the_arrow_keys_walk_through_a_keys_numbers_and_on_to_the_next_cell(reader: Reader) -> None:
    page = opened(reader, *PLACES[0])
    formula = page.locator("#view-microscope .formula")
    page.locator("#view-microscope [data-formula=product]").first.focus()
    page.keyboard.press("ArrowLeft")
    strip = page.locator("#view-microscope [data-vector=k]")
    expect(strip.nth(0)).to_be_focused()
    expect(formula).to_contain_text("k[0] = Σᵢ")
    page.keyboard.press("ArrowRight")
    expect(formula).to_contain_text("k[1] = Σᵢ")
    page.keyboard.press("ArrowDown")
    expect(strip.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(formula).to_contain_text("k[10] = Σᵢ")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#view-microscope [data-formula=product]").nth(1)).to_be_focused()
    assert page.locator("#view-microscope table [tabindex='0']").count() == 1
    for name in ("x", "q", "z W_O", "output"):
        page.locator(f"#view-microscope [data-vector='{name}']").focus()
        page.keyboard.press("ArrowRight")
        expect(formula).to_contain_text("[1] =")


def test_the_formula_stays_in_sight_and_nothing_moves_when_it_changes(reader: Reader) -> None:
    page = opened(reader, *PLACES[1])
    top = "one => one.getBoundingClientRect().top + window.scrollY"
    places = [page.locator("#view-microscope [data-vector='norm']").evaluate(top)]
    for vector in ("q", "z W_O", "output", "norm"):
        told(page, vector, 1)
        expect(page.locator("#view-microscope .formula")).to_be_in_viewport(ratio=1)
        places.append(page.locator("#view-microscope [data-vector='norm']").evaluate(top))
    told(page, "v", 3, 2)
    assert page.locator("#view-microscope [data-vector='norm']").evaluate(top) == places[0]
    assert len(set(places)) == 1


def copied(reader: Reader, page: Page) -> dict[str, Any]:
    """What the snippet's names are when it has run: it checks itself against the numbers that it holds."""
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[data-name=copy-pytorch]")
    expect(page.locator("[data-name=copy-pytorch]")).to_have_text("Copied")
    names: dict[str, Any] = {}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    return names


def check_chain(names: dict[str, Any], asker: Asker, meta: dict[str, Any], name: str, row: int) -> None:
    """Each stop of the chain is what the server recorded."""
    of_head = {"q": "query", "scaled": "scores", "weights": "weights", "mixed": "mixed", "share": "contribution"}
    expected = {ours: asker.tensor(meta, f"{name}.{theirs}")[1, row] for ours, theirs in of_head.items()}
    expected |= {ours: asker.tensor(meta, f"{name}.{theirs}")[1] for ours, theirs in (("K", "key"), ("V", "value"))}
    expected |= {
        ours: asker.tensor(meta, f"{name}.{theirs}")[row] for ours, theirs in (("x", "input"), ("output",) * 2)
    }
    residual = (("state", "input"), ("summed", "sum"), ("onward", "output"))
    expected |= {ours: asker.tensor(meta, f"{name}_residual.{theirs}")[row] for ours, theirs in residual}
    for ours, numbers in expected.items():
        torch.testing.assert_close(names[ours], torch.from_numpy(numbers.copy()), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("kind", "name", "row"), PLACES)
def test_the_copied_snippet_goes_from_x_to_the_norm(
    reader: Reader, asker: Asker, kind: str, name: str, row: int, capsys: Any
) -> None:
    page = opened(reader, kind, name, row)
    check_chain(copied(reader, page), asker, asker.trace(), name, row)


def test_the_snippet_that_is_shown_is_the_one_that_is_copied(reader: Reader) -> None:
    page = opened(reader, *PLACES[1])
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#view-microscope details.code summary")
    expect(page.locator("#view-microscope details.code code")).to_contain_text("onward = ")
    page.click("[data-name=copy-pytorch]")
    expect(page.locator("[data-name=copy-pytorch]")).to_have_text("Copied")
    shown = page.locator("#view-microscope details.code code").text_content()
    assert page.evaluate("navigator.clipboard.readText()") == shown


def test_a_head_that_is_off_adds_nothing_and_the_snippet_still_holds(reader: Reader, asker: Asker, capsys: Any) -> None:
    kind, name, row = PLACES[0]
    page = opened(reader, kind, name, row, off=f"{name}.1")
    names = copied(reader, page)
    assert not names["share"].any()
    check_chain(names, asker, asker.trace(off=[f"{name}.1"]), name, row)


def test_a_saved_page_tells_what_it_has_and_its_snippet_begins_with_q(
    chromium: Browser, asker: Asker, tmp_path: Path, capsys: Any
) -> None:
    meta, file = asker.trace(), tmp_path / "page.html"
    file.write_bytes(asker.client.post("/explain/page", json={"request": meta["request"]}).raise_for_status().content)
    alone = Reader(chromium, "file://")
    alone.cut_off()
    alone.page.goto(f"{file.as_uri()}#view=microscope&kind=cross&layer=2&heads=1&step=2")
    expect(alone.page.locator("#view-microscope .working")).to_have_attribute("data-learned", "false")
    query = asker.tensor(meta, "decoder.2.cross_attention.query")[1, 2]
    assert told(alone.page, "q", 3) == f"q[3] = {query[3]:.4f}   (x times column 3 of W_Q)".replace("-", "−")
    alone.page.click("#view-microscope details.code summary")
    code = alone.page.locator("#view-microscope details.code code")
    expect(code).to_contain_text("The matrices are not at hand")
    names: dict[str, Any] = {}
    exec(code.text_content() or "", names)
    mixed = asker.tensor(meta, "decoder.2.cross_attention.mixed")[1, 2]
    torch.testing.assert_close(names["mixed"], torch.from_numpy(mixed.copy()), atol=1e-4, rtol=1e-4)
    alone.context.close()
    assert alone.errors == []


@pytest.fixture(scope="module")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose model has what the paper's has not: the norm first, RMSNorm, and biases."""

    def write(folder: Path) -> tuple[str]:
        changes = {"norm_order": "pre", "norm": "rms", "attention_bias": True, "num_heads": 3, "d_k": 7, "d_v": 5}
        write_tiny_bundle(folder / "other", seed=3, **changes)
        return (str(folder / "other"),)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(browser, "write_models", write)
        with serving(tmp_path_factory.mktemp("other")) as address:
            yield address


@pytest.mark.parametrize(("kind", "name", "row"), PLACES)
def test_the_norm_first_and_biases_are_worked_out_too(
    chromium: Browser, other_model: str, kind: str, name: str, row: int, capsys: Any
) -> None:
    reader, asker = Reader(chromium, other_model), Asker(other_model)
    page, meta = opened(reader, kind, name, row), asker.trace(TEXT)
    check_chain(copied(reader, page), asker, meta, name, row)
    bias = asker.tensor(meta, f"{name}.b_q")[1, 3]
    shown = re.search(rf"the bias \({NUMBER}\) = {NUMBER}", told(page, "q", 3))
    assert shown is not None
    assert number(shown[1]) == pytest.approx(bias, abs=6e-5)
    assert number(shown[2]) == pytest.approx(asker.tensor(meta, f"{name}.query")[1, row, 3], abs=6e-5)
    x = re.search(rf"x\[4\] = {NUMBER} / {NUMBER} · gain {NUMBER} = {NUMBER}", told(page, "x", 4))
    assert x is not None
    assert number(x[1]) / number(x[2]) * number(x[3]) == pytest.approx(number(x[4]), abs=1e-3)
    assert number(x[4]) == pytest.approx(asker.tensor(meta, f"{name}.input")[row, 4], abs=6e-5)
    reader.context.close()
    asker.client.close()
    assert reader.errors == []
