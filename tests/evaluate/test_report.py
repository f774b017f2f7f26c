"""The report: one whole, offline, well-formed page that shows what was found and runs nothing."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.evaluate.evaluation import Evaluation, Line, Link, Part, Speed, System
from dragoman.evaluate.plots import MOST_DOTS, Bar, bars, histogram, scatter
from dragoman.evaluate.quality import Bucket, Rate
from dragoman.evaluate.report import report
from dragoman.evaluate.threads import closest, marked, reads_right_to_left, threads
from dragoman.text.metrics import Score

VOID = {"meta", "br", "hr", "link", "img", "input"}
SHUT = {"path", "rect", "circle", "polyline"}


class Page(HTMLParser):
    """Checks that every element is closed in order, and keeps tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend((name, value or "") for name, value in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SHUT
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def line(number: int, chrf: float, **changes: object) -> Line:
    values: dict[str, object] = {
        "source": f"source {number}",
        "references": (f"the reference {number}",),
        "hypothesis": f"the output {number}",
        "confidence": number / 31,
        "parts": (),
        "warnings": (),
        "suspicions": (),
    }
    return Line(number=number, chrf=chrf, **{**values, **changes})  # type: ignore[arg-type]


def evaluation(lines: tuple[Line, ...], **changes: object) -> Evaluation:
    values: dict[str, object] = {
        "system": System(name="small", engine="ctranslate2", beam=4),
        "test_set": "pairs.tsv",
        "scores": (Score("BLEU", 41.26, "nrefs:1|tok:13a"), Score("TER", 37.04, "nrefs:1|tok:tercom")),
        "buckets": (Bucket("1-5", 7, 53.1, 61.9), Bucket("6-10", 1, 41.3, 59.2)),
        "rates": (Rate("empty", 3, 3 / 17), Rate("loop", 0, 0.0)),
        "num_warned": 5,
        "speed": Speed(2.0, 103.0, 907.0),
    }
    return Evaluation(num_pairs=17, lines=lines, **{**values, **changes})  # type: ignore[arg-type]


LINES = tuple(line(number, chrf=number * 5.0) for number in range(1, 18))


def test_the_page_is_well_formed_and_says_what_was_found() -> None:
    text = " ".join("".join(Page(report(evaluation(LINES))).text).split())
    for part in (
        "small on pairs.tsv", "engine ctranslate2", "beam 4", "BLEU41.3nrefs:1|tok:13a", "lower is better",
        "nothing was written317.65 %", "a warning529.41 %", "103.0 sentences and 907 words a second",
        "1-57 pairs", "6-101 pair", "Rank correlation 1.00", "Words are those of the output",
    ):  # fmt: skip
        assert part in text


def test_the_page_loads_and_runs_nothing() -> None:
    html = report(evaluation(LINES))
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    assert not {"src", "href", "style", "onload", "onclick"} & {name for name, _ in page.attributes}
    assert "url(" not in html
    assert "@import" not in html
    assert "http" not in html.replace('<meta http-equiv="Content-Security-Policy"', "")
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


def test_light_dark_and_phones_are_provided_for() -> None:
    html = report(evaluation(LINES))
    for part in ("prefers-color-scheme: dark", 'content="width=device-width', "tabular-nums", "max-width: 34rem"):
        assert part in html


NASTY = '<script>alert("1")</script> & \'$version ${x} <b'


def test_everything_from_outside_is_escaped() -> None:
    part = Part(NASTY, NASTY, (Link(0, 0, 0.9),))
    nasty = line(1, 3.0, source=NASTY, references=(NASTY, "x"), hypothesis="y", parts=(part,), warnings=(NASTY,))
    html = report(evaluation((nasty,), system=System(name=NASTY, engine=NASTY), test_set=NASTY))
    page = Page(html)
    assert "script" not in page.tags
    assert "b" in page.tags  # the facts have their own
    assert "".join(page.text).count("${x}") == html.count("${x}") >= 7
    assert "$version" in "".join(page.text)


@settings(max_examples=29)
@given(st.text(max_size=37), st.text(max_size=37), st.text(max_size=37))
def test_any_text_makes_a_well_formed_page(source: str, reference: str, output: str) -> None:
    part = Part(source, output, (Link(0, 0, 0.5),))
    html = report(evaluation((line(1, 7.0, source=source, references=(reference,), hypothesis=output, parts=(part,)),)))
    assert Page(html).tags.count("article") == 1


def test_worst_and_best_are_shown_each_line_once_and_every_sentence_has_its_direction() -> None:
    html = report(evaluation(LINES), shown=3)
    shown = re.findall(r"<span>line (\d+)</span>", html)
    assert shown == ["1", "2", "3", "17", "16", "15"]
    assert len(re.findall(r'<dd class="[a-z]*" dir="auto">', html)) == 6 * 3
    few = re.findall(r"<span>line (\d+)</span>", report(evaluation(LINES[:4]), shown=3))
    assert few == ["1", "2", "3", "4"]


def test_a_line_shows_its_closest_reference_marked_and_the_others_plain() -> None:
    one = line(
        1, 9.0, references=("quite another thing", "the old cat"), hypothesis="the new cat", suspicions=("loop",)
    )
    html = report(evaluation((one,)))
    assert 'dir="auto">the <del>old</del> cat</dd>' in html
    assert 'dir="auto">the <ins>new</ins> cat</dd>' in html
    assert '<dt>also right</dt><dd class="other" dir="auto">quite another thing</dd>' in html
    assert "a word or a phrase over and over</span>" in html


def test_an_empty_output_is_said_in_words() -> None:
    assert 'dir="auto">(nothing)</dd>' in report(evaluation((line(1, 0.0, hypothesis=" "),)))


def test_what_is_not_known_is_left_out() -> None:
    bare = tuple(line(number, 50.0, confidence=None) for number in (1, 2, 3))
    html = report(evaluation(bare, speed=None))
    assert "confidence" not in html
    assert "a second" not in html
    assert "the translator itself" not in html
    assert html.count("<figure>") == 2


def points_of(svg: str, tag: str, *names: str) -> list[list[float]]:
    return [[float(element.get(name, "")) for name in names] for element in ElementTree.fromstring(svg).iter(tag)]


def test_bars_are_as_high_as_their_values() -> None:
    svg = bars([Bar("1-5", "7 pairs", 40.0), Bar("6-10", "3 pairs", 10.0), Bar("11+", "2 pairs", 0.0)], "BLEU", "words")
    heights = [height for (height,) in points_of(svg, "rect", "height")]
    assert heights[0] == pytest.approx(4 * heights[1], rel=0.01)
    assert heights[2] == 0
    bottoms = {y + height for y, height in points_of(svg, "rect", "y", "height")}
    assert max(bottoms) - min(bottoms) < 0.2


def test_a_histogram_counts_every_value_once() -> None:
    values = [0.0, 4.9, 5.0, 52.0, 53.0, 54.0, 95.0, 100.0]
    titles = [title.text for title in ElementTree.fromstring(histogram(values, "chrF", "chrF")).iter("title")]
    assert {title for title in titles if title and not title.endswith(": 0")} == {
        "0 to 5: 2", "5 to 10: 1", "50 to 55: 3", "95 to 100: 2"
    }  # fmt: skip
    assert len(titles) == 20


def test_a_dot_is_further_right_and_higher_as_its_values_are() -> None:
    dots = points_of(scatter([(0.0, 0.0), (0.5, 100.0), (1.0, 50.0)], "chrF", "confidence"), "circle", "cx", "cy")
    (x0, y0), (x1, y1), (x2, y2) = dots
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert x0 < x1
    assert y0 - y2 == pytest.approx(y2 - y1, abs=0.2)
    assert y1 < y2


def test_too_many_dots_are_thinned_and_the_page_says_so() -> None:
    points = [(i / 4001, 50.0) for i in range(4001)]
    assert MOST_DOTS / 2 < len(points_of(scatter(points, "chrF", "confidence"), "circle")) <= MOST_DOTS
    many = tuple(line(i, 50.0, confidence=0.5) for i in range(1, MOST_DOTS + 2))
    assert f"Not every one of {MOST_DOTS + 1:,} dots is drawn" in report(evaluation(many))


def test_the_trend_goes_through_the_mean_of_each_tenth() -> None:
    points = [(0.25, 20.0), (0.25, 40.0)] * 3 + [(0.75, 90.0)] * 5
    svg = ElementTree.fromstring(scatter(points, "chrF", "confidence"))
    (trend,) = svg.iter("polyline")
    dots = points_of(scatter([(0.25, 30.0), (0.75, 90.0)], "chrF", "confidence"), "circle", "cx", "cy")
    assert [list(map(float, point.split(","))) for point in trend.get("points", "").split()] == dots


def test_a_thread_joins_its_two_words() -> None:
    svg = threads(Part("le vieux chat", "the old cat", (Link(2, 2, 0.8), Link(0, 0, 0.31), Link(1, 1, 0.05))))
    tree = ElementTree.fromstring(svg)
    middles = {(text.text, text.get("y")): text.get("x") for text in tree.iter("text")}
    paths = list(tree.iter("path"))
    assert [path.findtext("title") for path in paths] == ["le – the: 0.31", "chat – cat: 0.80"]
    numbers = re.findall(r"\d+", paths[1].get("d", ""))
    assert (numbers[0], numbers[-2]) == (middles["chat", "20"], middles["cat", "118"])
    assert float(paths[0].get("stroke-width", "")) < float(paths[1].get("stroke-width", ""))


def test_words_of_a_row_do_not_run_into_each_other_and_arabic_begins_at_the_right() -> None:
    svg = threads(Part("القط ينام هنا", "the cat sleeps here", (Link(0, 1, 0.9),)))
    rows: dict[str, list[float]] = {}
    for text in ElementTree.fromstring(svg).iter("text"):
        rows.setdefault(text.get("y", ""), []).append(float(text.get("x", "")))
    arabic, english = rows.values()
    assert arabic == sorted(arabic, reverse=True)
    assert english == sorted(english)
    assert len(set(arabic)) == 3


def test_no_links_no_threads_and_links_past_the_end_are_left_out() -> None:
    assert threads(Part("a b", "c d", ())) == ""
    assert threads(Part("a b", "c d", (Link(2, 0, 0.9), Link(0, -1, 0.9), Link(0, 0, 0.01)))) == ""
    assert threads(Part("", "", (Link(0, 0, 0.9),))) == ""


@pytest.mark.parametrize(
    ("words", "other", "html"),
    [
        ("a b c", "a b c", "a b c"),
        ("a x y c", "a b c", "a <ins>x y</ins> c"),
        ("a <b", "a", "a <ins>&lt;b</ins>"),
        ("", "a", ""),
        ("a", "", "<ins>a</ins>"),
    ],
)
def test_words_that_the_other_lacks_are_marked(words: str, other: str, html: str) -> None:
    assert marked(words, other, "ins") == html


def test_the_closest_reference_is_the_one_that_shares_most() -> None:
    assert closest("the old cat", ("a dog", "an old cat", "the old cat sat")) == 2
    assert closest("x", ("a", "b")) == 0


@pytest.mark.parametrize(("text", "rtl"), [("שלום world", True), ("12 قط", True), ("Tom שלום", False), ("12!", False)])
def test_the_direction_is_that_of_the_first_letter(text: str, rtl: bool) -> None:
    assert reads_right_to_left(text) == rtl
