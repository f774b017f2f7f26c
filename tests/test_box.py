"""What the box ships: models of the promised size, with cards that say where they come from and what they score."""

import re
from pathlib import Path

import pytest
from safetensors import safe_open

from dragoman.bundle import Bundle, find, in_the_box

ROOT = Path(__file__).parents[1]
MOST_BYTES = 40_000_000


@pytest.fixture(params=("fr-en", "en-fr"))
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return Bundle.open(find(request.param))


def bleu(bundle: Bundle, direction: str) -> float:
    (found,) = [
        score["score"]
        for score in bundle.scorecard["scores"]
        if score["metric"] == "BLEU" and score["on"].startswith(f"{direction} test.tsv.gz, 3,000 pairs, beam 4")
    ]
    return float(found)


def test_both_directions_fit_into_the_size_that_was_promised() -> None:
    files = [path for name in in_the_box() for path in find(name).iterdir()]
    assert in_the_box() == ["fr-en", "en-fr"]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


def test_weights_are_float16(bundle: Bundle) -> None:
    with safe_open(bundle.path / "model.safetensors", framework="numpy") as weights:
        names = weights.keys()
        assert {weights.get_slice(name).get_dtype() for name in names} == {"F16"}


def test_a_card_names_data_licence_recipe_scores_and_limits(bundle: Bundle) -> None:
    card = (bundle.path / "README.md").read_text(encoding="utf-8")
    for told in ("CC BY 2.0", "tatoeba.org", "dragoman train ", "|version:2.", "news", "long sentences"):
        assert told in card.replace("\\|", "|"), told
    assert all(score["signature"] for score in bundle.scorecard["scores"])
    kinds = {"tidy sentence", "missing full stop", "all capitals", "typographic apostrophes", "single word"}
    for behaviour in bundle.scorecard["behaviour"].values():
        assert kinds <= {row["kind"] for row in behaviour}


@pytest.mark.parametrize("direction", ["fr-en", "en-fr"])
def test_documents_tell_the_scores_of_the_cards(direction: str) -> None:
    score = f"{bleu(Bundle.open(find(direction)), direction):.1f}"
    quality, changes = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/quality.md", "CHANGELOG.md"))
    assert re.search(rf"^\| {direction}, in the box .*\| Tatoeba \| {score} \|", quality, re.MULTILINE)
    assert f"`{direction}`, {score} BLEU" in changes
