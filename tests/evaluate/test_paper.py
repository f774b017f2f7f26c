"""`dragoman paper`: every figure agrees, and a model that is not the paper's is found out."""

import pytest
import torch

from dragoman.config import PRESETS
from dragoman.evaluate import paper
from dragoman.evaluate.paper import Check, run_checks


@pytest.fixture(scope="module")
def rows() -> dict[str, Check]:
    checks = run_checks()
    by_name = {row.check: row for row in checks}
    assert len(by_name) == len(checks)
    return by_name


def failing(*checks: object) -> set[str]:
    return {row.check for check in checks for row in check() if not row.passed}


def test_every_figure_agrees(rows: dict[str, Check]) -> None:
    assert [row for row in rows.values() if not row.passed] == []


def test_every_row_of_table_3_is_counted(rows: dict[str, Check]) -> None:
    for name, preset in PRESETS.items():
        assert (f"Table 3 {name}: parameters of the body" in rows) == (preset.bleu is not None)
        printed = [check for check in rows if check.startswith(f"Table 3 {name}: printed column")]
        assert len(printed) == (preset.parameters_millions is not None)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("q1.k1", "112, 96"),
        ("sqrt(d_k)", "14, 12"),
        ("softmax", "0.88, 0.12"),
        ("Q K^T", "2x2, 2x64"),
        ("8 heads", "2x512, 2x512"),
        ("'robot'", "0.14, -0.99, 0.30, 0.96"),
        ("Table 3 base: parameters", "44,101,632"),
        ("attention biases", "44,138,496"),
        ("big body", "176,283,648"),
        ("base: printed", "65 M"),
        ("big: printed", "213 M"),
        ("step 1,", "1.747e-07"),
        ("step 4,000", "6.988e-04"),
        ("step 100,000", "1.398e-04"),
        ("smoothing", "0.7798"),
        ("length penalty of 1 pieces", "1.0000"),
        ("later target piece", "same before, differs after"),
        ("without positions", "equal"),
        ("with positions", "different"),
        ("padding a source", "equal"),
    ],
)
def test_what_the_table_must_show(rows: dict[str, Check], words: str, wanted: str) -> None:
    found = [row for row in rows.values() if words in row.check]
    assert wanted in [row.wanted for row in found]


def test_a_row_passes_when_what_was_got_is_what_was_wanted() -> None:
    assert Check("legs of a robot", "2", "2").passed
    assert not Check("legs of a robot", "2", "4").passed


def test_positions_in_the_other_layout_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = paper.sinusoid
    monkeypatch.setattr(paper, "sinusoid", lambda *a, **k: right(*a, **k, interleaved=False))
    assert len(failing(paper.positions)) == 4


def test_a_model_that_sees_the_future_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dragoman.model.multi_head.fused_attention", lambda q, k, v, mask, causal, rate: blind_mean(v, q)
    )
    assert "a later target piece changes no earlier output, exactly" in failing(paper.behaviour)


def blind_mean(value_BHKC: torch.Tensor, query_BHQC: torch.Tensor) -> torch.Tensor:
    """Attention that heeds no mask."""
    return value_BHKC.mean(dim=2, keepdim=True).expand(-1, -1, query_BHQC.shape[2], -1)


def test_a_model_that_heeds_padding_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.model.transformer.padding_mask", lambda ids, padding_id: None)
    assert failing(paper.behaviour) == {"padding a source changes no output"}


def test_a_loss_without_smoothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = paper.smoothed_loss
    monkeypatch.setattr(paper, "smoothed_loss", lambda logits, target, smoothing: right(logits, target, 0.0))
    assert failing(paper.training) == {"label smoothing 0.1 of p = (1/2, 1/4, 1/8, 1/8)"}
