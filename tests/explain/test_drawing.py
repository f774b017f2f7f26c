"""What is drawn is what the trace holds: characters, pictures, the page in one file."""

import base64
import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import image

from dragoman.errors import DataError, DragomanError
from dragoman.explain import Explainer, Trace, figures, page, terminal
from dragoman.explain.answers import whole_page
from dragoman.explain.curves import smoothed_losses
from dragoman.train.loss import smoothed_loss

# Characters


def test_a_grid_is_darker_where_there_is_more() -> None:
    lines = terminal.draw_grid(["a", "bé"], ["x", "long"], np.array([[1, 0], [0.3, 0.7]], dtype=np.float32), 80)
    assert lines == ["      l", "      o", "      n", "    x g", "a   █ ·", "bé  ░ ▓"]


def test_what_is_too_wide_for_a_grid_is_a_list() -> None:
    matrix, columns = np.array([[0.02, 0.9, 0.08, 0, 0]], dtype=np.float32), ["one", "two", "three", "four", "five"]
    assert terminal.draw_grid(["word"], columns, matrix, 15) == ["word  two 0.90"]
    assert terminal.draw_grid(["word"], columns, matrix, 16)[-1] == "word  · █ · · ·"


@given(
    st.lists(st.text(st.characters(blacklist_categories=["Cc", "Cs"]), max_size=30), min_size=1, max_size=40),
    st.lists(st.text(st.characters(blacklist_categories=["Cc", "Cs"]), max_size=30), min_size=1, max_size=40),
)
def test_no_line_is_wider_than_the_terminal(rows: list[str], columns: list[str]) -> None:
    matrix = np.full((len(rows), len(columns)), 1 / len(columns), dtype=np.float32)
    for line in terminal.draw_grid(rows, columns, matrix, 80):
        assert terminal.text_width(line) <= 80


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("翻訳", 4), (unicodedata.normalize("NFD", "é"), 1), ("", 0)])
def test_width_is_that_of_a_terminal(text: str, width: int) -> None:
    assert terminal.text_width(text) == width
    assert terminal.text_width(terminal.filled(text, 7)) == 7


def test_a_head_is_drawn_between_the_right_pieces(trace: Trace) -> None:
    inputs = ["<s>", *(piece.text for piece in trace.target.pieces[:-1])]
    lines = terminal.draw_head(trace, "decoder.0.self_attention.1", 80)
    assert [line.split()[0] for line in lines[-len(inputs) :]] == [text.split()[0] for text in inputs]
    lines = terminal.draw_head(trace, "decoder.1.cross_attention.0", 80)
    weights = trace.tensors["decoder.1.cross_attention.weights"][0]
    for line, row in zip(lines[-len(weights) :], weights.tolist(), strict=True):
        assert line.endswith(" ".join(terminal.shade(weight) for weight in row).rstrip())


def test_a_step_shows_its_candidates_and_every_layers_word(trace: Trace) -> None:
    lines = terminal.draw_step(trace, 2, 80)
    before, chosen = trace.target.pieces[0].text, trace.steps[1].chosen
    assert lines[0] == f"Piece 2 of {len(trace.steps)}: reads {before!r}, writes {chosen.text!r}"
    assert f"{trace.steps[1].top[0].probability:.3f}" in lines[1]
    assert sum(line.startswith("  decoder.") for line in lines) == 3
    rare = replace(trace, steps=(trace.steps[0], replace(trace.steps[1], chosen=replace(chosen, id=5, rank=77))))
    assert any("number 77" in line for line in terminal.draw_step(rare, 2, 80))


def test_the_tree_marks_what_was_chosen(trace: Trace) -> None:
    lines = terminal.draw_tree(trace, 80)
    for line, piece in zip(lines, trace.target.pieces, strict=False):
        assert f"[{piece.text}]" in line
    assert terminal.draw_tree(replace(trace, beam=None), 80) == ["(nothing was searched)"]


# Pictures


def test_every_picture_is_drawn(tmp_path: Path, explainer: Explainer, trace: Trace) -> None:
    files = figures.draw_all(trace, tmp_path / "png", explainer.effects(trace.request))
    names = [file.name for file in files]
    assert names[:4] == ["alignment.png", "heads-encoder-self.png", "heads-decoder-self.png", "heads-cross.png"]
    assert names[-3:] == ["positions.png", "learning-rate.png", "label-smoothing.png"]
    assert len(names) == 4 + figures.TELLING + 3
    for file in files:
        height, width, _ = image.imread(file).shape
        assert min(height, width) > 200


@pytest.mark.parametrize("kind", figures.KINDS)
def test_a_heat_map_holds_the_weights_under_the_right_names(trace: Trace, kind: str) -> None:
    head = next(one for one in trace.heads if one.kind == kind)
    axes = figures.head_figure(trace, head.name).axes[0]
    name, number = head.name.rsplit(".", 1)
    np.testing.assert_array_equal(axes.images[0].get_array(), trace.tensors[f"{name}.weights"][int(number)])
    rows = [tick.get_text() for tick in axes.get_yticklabels()]
    columns = [tick.get_text() for tick in axes.get_xticklabels()]
    source, target = [piece.text for piece in trace.source.pieces], [piece.text for piece in trace.target.pieces]
    assert columns == (["<s>", *target[:-1]] if kind == "decoder_self" else source)
    assert rows == {"encoder_self": source, "decoder_self": ["<s>", *target[:-1]], "cross": target}[kind]


def test_text_is_drawn_as_it_stands(tmp_path: Path) -> None:
    figure = figures.heat_map(np.ones((1, 2), dtype=np.float32), ["$x^{$"], ["a_b$", "翻"], "50 $ \\frac")
    figures.save(figure, tmp_path / "odd.png")
    assert image.imread(tmp_path / "odd.png").size


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot write the picture"):
        figures.save(figures.heat_map(np.ones((1, 1), dtype=np.float32), ["a"], ["b"], ""), tmp_path / "file" / "a.png")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_smoothing_curve_is_the_loss_that_is_trained_on(smoothing: float) -> None:
    share, num_pieces = 0.7, 31
    probabilities = torch.full((1, num_pieces), (1 - share) / (num_pieces - 1))
    probabilities[0, 3] = share
    expected = smoothed_loss(probabilities.log(), torch.tensor([3]), smoothing)
    assert smoothed_losses([share], smoothing, num_pieces) == pytest.approx([float(expected)], rel=1e-5)


# The page


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small page."""
    files = {
        "web/index.html": "<html><head><title>x</title>\n"
        '<link rel="stylesheet" href="web/css/a.css">\n'
        '<script type="module" src="web/js/main.js"></script></head></html>',
        "web/css/a.css": "p { color: red }\n",
        "web/js/main.js": 'import { b } from "./views/b.js";\nimport "./c.js";\nb(await import("./c.js"));\n',
        "web/js/views/b.js": "import * as c from '../c.js';\nexport { d } from \"./d.js\";\nexport const b = c;\n",
        "web/js/views/d.js": 'export const d = "imported from ./nowhere";\n',
        "web/js/c.js": "export const c = 1;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def data_of(text: str) -> dict[str, Any]:
    match = re.search(r"window\.DRAGOMAN_TRACE = (.*);</script>", text)
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])
    return data


def test_the_page_holds_the_trace(package: Path, trace: Trace) -> None:
    text = page.offline_page(trace, {"effects": {"before": -1}}, package)
    data = data_of(text)
    assert data["meta"] == trace.meta()
    assert data["effects"] == {"before": -1}
    tensors = safetensors.numpy.load(base64.b64decode(data["tensors"]))
    assert set(tensors) == set(trace.tensors) - {"logits"}
    for name, array in tensors.items():
        np.testing.assert_array_equal(array, trace.tensors[name])


def test_the_page_asks_for_nothing_from_elsewhere(package: Path, trace: Trace) -> None:
    text = page.offline_page(trace, package=package)
    assert "<style>\np { color: red }\n</style>" in text
    assert 'src="' not in text
    assert 'href="' not in text
    match = re.search(r'<script type="importmap">(.*)</script>', text)
    assert match is not None
    imports = json.loads(match[1])["imports"]
    code = {name: base64.b64decode(address.partition(",")[2]).decode() for name, address in imports.items()}
    assert set(code) == {f"dragoman/web/js/{name}.js" for name in ("main", "c", "views/b", "views/d")}
    assert 'from "dragoman/web/js/views/b.js"' in code["dragoman/web/js/main.js"]
    assert 'import("dragoman/web/js/c.js")' in code["dragoman/web/js/main.js"]
    assert "from 'dragoman/web/js/c.js'" in code["dragoman/web/js/views/b.js"]
    assert code["dragoman/web/js/views/d.js"] == 'export const d = "imported from ./nowhere";\n'


def test_no_text_can_end_the_script(package: Path, explainer: Explainer) -> None:
    text = "</script><script>alert(1)</script><!-- "
    whole = page.offline_page(explainer.trace(text), package=package)
    assert "alert(1)</script>" not in whole
    assert whole.count("<script") == 3
    assert data_of(whole)["meta"]["request"]["text"] == text
    assert "<title>dragoman: &lt;/script&gt;" in whole


def test_a_page_that_lacks_a_file_is_told(tmp_path: Path, package: Path, trace: Trace) -> None:
    (package / "web/js/c.js").unlink()
    with pytest.raises(DragomanError, match=r"the page lacks web/js/c.js \(No such file or directory\)"):
        page.offline_page(trace, package=package)
    (package / "web/index.html").write_text("<html></html>", encoding="utf-8")
    with pytest.raises(DragomanError, match=r"web/index.html has no module to start with"):
        page.offline_page(trace, package=package)


def test_the_real_page_has_the_answers_and_the_search_inside(explainer: Explainer, trace: Trace) -> None:
    data = data_of(whole_page(explainer, trace.request))
    assert set(data) == {"meta", "tensors", "importance", "effects", "shuffle"}
    assert trace.beam is not None
    assert data["meta"]["beam"]["best"] == list(trace.beam.best)
    other = replace(trace.request, target_ids=(*(trace.request.target_ids or ())[:-2], 2))
    assert data_of(whole_page(explainer, other))["meta"]["beam"] is None


def test_an_explainer_gives_the_page_itself(explainer: Explainer, trace: Trace) -> None:
    assert data_of(explainer.page(trace.request)) == data_of(whole_page(explainer, trace.request))
