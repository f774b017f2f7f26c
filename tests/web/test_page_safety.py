"""What the page withstands: hostile text, other scripts, long sentences, phones, no network; and what it gives away."""

import ast
import json
import re
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from browser import TEXT, Asker, Reader, serving
from playwright.sync_api import Browser, Download, Page, expect

import dragoman
from dragoman.cli.explain import command
from dragoman.serve.keys import hash_key

WEB = Path(dragoman.__file__).parent / "web"
MODULES = sorted((WEB / "js").rglob("*.js"))
KEY = "a key that opens every door"
VIEWS = ["threads", "map", "microscope", "next", "beam", "matters", "whatif", "positions", "replay"]


def overflow(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")  # type: ignore[no-any-return]


def downloaded(page: Page, name: str) -> bytes:
    page.click("[data-name=share]")
    with page.expect_download(timeout=120_000) as waiting:  # a whole page takes a busy machine that long
        page.click(f"[data-name={name}]")
    page.click("[data-name=share-close]")
    download: Download = waiting.value
    return Path(download.path()).read_bytes()


@pytest.mark.parametrize("text", [
    "<script>window.harmed = 1</script> dila",
    "<img src=x onerror='window.harmed = 1'> gupo.",
    "\"'><svg onload=window.harmed=1>",
    "dila \u202egupo\u202c \u200fba\u200e \u2066ce\u2069",
    "a\u0000b \ud7ff \ufffd 🤷🏽‍♀️ e\u0301",
    "{{7*7}} ${7*7} %s ' OR 1=1 --",
])  # fmt: skip
def test_hostile_text_stays_text_in_every_view(reader: Reader, text: str) -> None:
    page = reader.open(text)
    for view in ("threads", "microscope", "next", "matters", "whatif", "positions"):
        page.click(f"#tab-{view}")
        expect(page.locator(f"#view-{view} h2")).to_be_visible()
    assert page.evaluate("window.harmed") is None
    assert page.locator("main script, main img").count() == 0


def test_right_to_left_words_keep_their_neighbours_in_place(reader: Reader) -> None:
    page = reader.open("שלום dila עולם.")
    direction = "one => getComputedStyle(one.querySelector('bdi')).direction"
    words = page.locator(".column.keys .word")
    assert [words.nth(place).evaluate(direction) for place in range(3)] == ["rtl", "ltr", "rtl"]
    assert page.locator("#text").evaluate("one => getComputedStyle(one).direction") == "rtl"


def test_five_thousand_characters_do_no_harm(reader: Reader) -> None:
    page = reader.open()
    page.fill("#text", "é<b>" * 1250)
    page.click("button[type=submit]")
    expect(page.locator("#status.error")).to_be_visible()
    assert overflow(page) == 0
    reader.errors.clear()  # the browser reports the refusal itself


def test_no_module_reads_text_as_markup() -> None:
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser"
    forbidden = re.compile(markup + r"|\beval\(|new Function|setAttribute\(\"(on|style)")
    assert {path.name: found.group() for path in MODULES if (found := forbidden.search(path.read_text("utf-8")))} == {}


def test_nothing_comes_from_elsewhere() -> None:
    addresses = re.compile(r"https?://(?!www\.w3\.org/)|//cdn|@import|url\(")
    files = [path for path in WEB.rglob("*") if path.is_file()]
    assert {path.name for path in files if addresses.search(path.read_text("utf-8"))} == set()


def test_modules_import_in_one_form_so_that_they_can_be_put_into_one_file() -> None:
    form = re.compile(r'import \{ [\w, ]+ \} from "\.\.?/[\w/]+\.js";')
    for path in MODULES:
        lines = [
            line for line in path.read_text("utf-8").splitlines() if line.startswith("import") and line.endswith(";")
        ]
        assert [line for line in lines if not form.fullmatch(line)] == [], path.name


def test_no_file_of_the_page_is_too_long_to_hold() -> None:
    assert [path.name for path in WEB.rglob("*.*") if len(path.read_text("utf-8").splitlines()) > 300] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_a_phone(chromium: Browser, address: str, scheme: str) -> None:
    reader = Reader(chromium, address, viewport={"width": 320, "height": 740}, color_scheme=scheme)
    page = reader.open()
    for view in VIEWS:
        page.evaluate("name => document.getElementById(`tab-${name}`).click()", view)
        expect(page.locator(f"#view-{view} h2")).to_be_visible()
        assert overflow(page) == 0, view
    reader.context.close()
    assert reader.errors == []


def test_day_and_night_can_be_chosen(reader: Reader) -> None:
    page = reader.open()
    paper = "getComputedStyle(document.body).backgroundColor"
    colours = [page.evaluate(paper)]
    for _ in range(2):
        page.click("[data-name=theme]")
        colours.append(page.evaluate(paper))
    assert colours[0] == colours[1] != colours[2]


def test_a_long_sentence_through_six_layers_of_eight_heads_is_drawn(reader: Reader) -> None:
    text = "dila gupo meni ruba " * 12
    page = reader.open(
        text, **{"from": "de", "to": "en", "unit": "pieces", "mode": "heads", "heads": "0.1.2.3.4.5.6.7"}
    )
    expect(page.locator(".thread").first).to_be_attached()
    assert 90 < page.locator(".line.source .chip").count() <= 128
    assert page.locator(".thread").count() <= 2400
    page.click("#tab-map")
    for kind in ("encoder_self", "cross"):
        page.click(f"[data-name=map-kind] [data-option={kind}]")
        expect(page.locator(".map")).to_have_attribute("data-drawn", "48")
    asked = [url for url in reader.requests if url.endswith("/explain/tensors")]
    assert len(asked) <= 12  # a layer a request, and none of them twice


def test_the_page_in_one_file_opens_from_a_disk_without_a_network(
    reader: Reader, chromium: Browser, address: str, asker: Asker, tmp_path: Path
) -> None:
    meta, file = asker.trace(), tmp_path / "page.html"
    file.write_bytes(downloaded(reader.open(), "share-html"))
    alone = Reader(chromium, "file://")
    alone.cut_off()
    page = alone.page
    page.goto(file.as_uri())
    expect(page.locator("#live")).to_contain_text(meta["translation"]["text"])
    assert page.input_value("#text") == TEXT
    expect(page.locator(".thread").first).to_be_attached()
    for view in VIEWS[:-1]:
        page.click(f"#tab-{view}")
        expect(page.locator(f"#view-{view} h2")).to_be_visible()
    page.click("#tab-microscope")
    expect(page.locator("#view-microscope [data-formula=softmax]")).to_have_count(len(meta["source"]["pieces"]))
    expect(page.locator("button[type=submit]")).to_be_disabled()
    expect(page.locator("#status")).to_contain_text("Saved as one file")
    page.locator("#view-microscope").press("ArrowLeft")
    expect(page.locator(".line.target .chip.future")).to_have_count(1)
    page.click("#tab-next")
    expect(page.locator(".bars button:enabled")).to_have_count(0)
    page.click("#tab-whatif")
    expect(page.locator("#view-whatif")).to_contain_text("needs the server")
    alone.context.close()
    assert alone.errors == []


def test_a_saved_page_shows_what_it_was_asked_for_whatever_its_address_says(
    chromium: Browser, asker: Asker, tmp_path: Path
) -> None:
    text, off = "Baceba dila. Gupo lame.", ["encoder.0.self_attention.1"]
    meta, file = asker.trace(text, sentence=1, off=off, beam=3), tmp_path / "page.html"
    file.write_bytes(asker.client.post("/explain/page", json={"request": meta["request"]}).raise_for_status().content)
    alone = Reader(chromium, "file://")
    alone.cut_off()
    page = alone.page
    page.goto(f"{file.as_uri()}#text=Niru&beam=7&view=beam")
    expect(page.locator("#live")).to_contain_text(meta["translation"]["text"])
    assert page.input_value("#text") == text
    expect(page.locator("select[data-name=sentence]")).to_have_value("1")
    expect(page.locator("select[data-name=sentence]")).to_be_disabled()
    expect(page.locator(".changes")).to_contain_text("1 head off")
    expect(page.locator("[data-name=undo]")).to_be_disabled()
    expect(page.locator("#view-beam")).to_be_visible()
    alone.context.close()
    assert alone.errors == []


def test_the_command_that_is_shared_asks_for_the_same(reader: Reader) -> None:
    text, off = "-dila l'ami. Gupo lame.", "encoder.0.self_attention.1"
    page = reader.open(text, beam=3, off=off, sentence=1)
    page.click("[data-name=share]")
    written = page.locator(".commands").text_content() or ""
    line = next(line for line in written.splitlines() if line.startswith("dragoman explain"))
    asked = command.make_context("explain", shlex.split(line)[2:]).params
    expected = {
        "words": (text,), "model": "small", "source_language": "fr", "target_language": "en", "sentence": 2, "beam": 3,
        "off": (off,), "html_file": Path("page.html"), "forced": None,
    }  # fmt: skip
    assert {name: asked[name] for name in expected} == expected
    calls = [
        node for node in ast.walk(ast.parse(written[written.index("from dragoman") :])) if isinstance(node, ast.Call)
    ]
    call = next(node for node in calls if node.keywords)
    values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert ast.literal_eval(call.args[0]) == text
    same = {"sentence": 1, "beam": 3, "length_penalty": asked["length_penalty"], "off": (off,)}
    assert values == {"source": "fr", "target": "en", **same}


def test_a_picture_holds_what_one_would_have_to_scroll_to(chromium: Browser, address: str) -> None:
    reader = Reader(chromium, address, viewport={"width": 500, "height": 740})
    page = reader.open(view="beam", step=3)
    page.locator(".tree").evaluate("tree => tree.scrollTo(40, 0)")
    wide, room = page.locator(".tree").evaluate(
        "tree => [tree.firstChild.getBoundingClientRect().width, tree.clientWidth]"
    )
    assert wide > room
    drawing = ElementTree.fromstring(downloaded(page, "share-svg"))
    tree = drawing.find("{http://www.w3.org/2000/svg}svg")
    assert tree is not None
    assert float(tree.get("x", 0)) > 0
    assert float(tree.get("x", 0)) + wide <= float(drawing.get("width", 0))
    assert page.locator(".tree").evaluate("tree => tree.scrollLeft") == 40
    reader.context.close()
    assert reader.errors == []


def test_the_trace_comes_as_json(reader: Reader, asker: Asker) -> None:
    assert json.loads(downloaded(reader.open(), "share-json")) == asker.trace()


def test_every_view_can_be_saved_as_a_drawing_with_its_words(reader: Reader, asker: Asker) -> None:
    page, meta = reader.open(), asker.trace()
    for view in VIEWS:
        page.click(f"#tab-{view}")
        page.wait_for_function("name => document.querySelector(`#view-${name}`).innerText.length > 200", arg=view)
        drawing = ElementTree.fromstring(downloaded(page, "share-svg"))
        text = " ".join(part.text or "" for part in drawing.iter("{http://www.w3.org/2000/svg}text"))
        assert (page.locator(f"#view-{view} h2").text_content() or "") in text
    page.click("#tab-threads")
    drawing = downloaded(page, "share-svg").decode()
    assert drawing.count("<path") >= page.locator(".thread").count()
    assert all(word["text"] in drawing for word in meta["source"]["words"])


def test_a_view_can_be_saved_as_an_image(reader: Reader) -> None:
    image = downloaded(reader.open(view="map"), "share-png")
    assert image.startswith(b"\x89PNG")
    assert len(image) > 5000


def test_the_link_that_is_copied_leads_back(reader: Reader) -> None:
    page = reader.open(view="beam", step=1)
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[data-name=share]")
    page.click("[data-name=share-link]")
    expect(page.locator("[data-name=share-link]")).to_have_text("Copied")
    link = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#view-beam")).to_be_visible()
    expect(page.locator(".line.target .chip.current")).to_have_attribute("data-index", "1")
    assert page.input_value("#text") == TEXT


def test_controls_have_names_for_screen_readers(reader: Reader) -> None:
    page = reader.open()
    nameless = """name => [...document.querySelectorAll(`:is(#view-${name}, #manuscript) ${controls}`)]
      .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length))
      .map(one => one.outerHTML)""".replace("${controls}", ":is(button, input, select, textarea, canvas[role])")
    for view in VIEWS:
        page.click(f"#tab-{view}")
        expect(page.locator(f"#view-{view} h2")).to_be_visible()
        assert page.evaluate(nameless, view) == [], view


def test_a_server_with_keys_asks_for_one(chromium: Browser, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text(f"{hash_key(KEY)} reader\n", encoding="utf-8")
    with serving(tmp_path / "models", api_keys=str(keys)) as address:
        reader = Reader(chromium, address)
        page = reader.page
        page.goto(address)
        expect(page.locator("#status.error")).to_contain_text("API key")
        reader.errors.clear()  # the browser reports the refusal itself
        page.fill("#key", KEY)
        page.click("button[type=submit]")
        expect(page.locator(".thread").first).to_be_attached()
        expect(page.locator("#key")).to_be_hidden()
        reader.context.close()
        assert reader.errors == []
