"""`recipes/risk.py`: a model is told which of its translations were the better ones, and which the worse."""

import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dragoman.bundle import Bundle
from dragoman.recipe import CorpusConfig
from tiny_bundle import write_tiny_bundle

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))

import risk

FOUND = [
    risk.Found("Who are you?", ["Qui es-tu ?", "Toi qui ?"], [0.2, 0.9], ["Qui êtes-vous ?"]),
    risk.Found("Go.", ["Va.", "Pars donc.", "Aller."], [0.5, 0.1, 0.8], ["Pars !"]),
]


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write_tiny_bundle(tmp_path / "tiny", directions=("en-fr",))


def batch_of(bundle: Bundle) -> risk.Rows:
    sources = bundle.tokenizer.ids_batch(one.source for one in FOUND)
    return risk.rows(FOUND, sources, bundle.tokenizer, random.Random(1))


def test_what_a_model_finds_costs_more_the_less_people_wrote_it_and_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = CorpusConfig(path=str(tmp_path / "pairs.tsv"), swap=True)
    Path(corpus.path).write_text("Va-t'en d'ici !\tGo away.\n", encoding="utf-8")
    found = SimpleNamespace(text="Pars !", alternatives=("Va-t'en d'ici !", "Va-t'en !", "Pars !"))
    translator = SimpleNamespace(stream=lambda texts, **options: [found for _ in texts])
    loaded: list[str] = []
    monkeypatch.setattr(risk, "load", lambda name: loaded.append(name) or translator)
    for _ in range(2):
        (one,) = risk.find_translations("F", corpus, tmp_path / "more" / "found.jsonl")
    assert loaded == ["F"]
    assert (one.source, one.written) == ("Go away.", ["Va-t'en d'ici !"])
    assert one.translations == ["Pars !", "Va-t'en d'ici !", "Va-t'en !"]  # each once
    assert one.costs[1] == pytest.approx(0)
    assert one.costs[1] < one.costs[2] < one.costs[0] < 1


def test_a_row_has_the_log_probability_that_the_model_gives_it(bundle: Bundle) -> None:
    model, batch = bundle.load_model().eval(), batch_of(bundle)
    logits_RTV = model(batch.source_BS[batch.source_R], batch.target_in_RT)
    each_RT = logits_RTV.log_softmax(-1).gather(2, batch.target_out_RT[..., None]).squeeze(2)
    expected_R = (each_RT * (batch.target_out_RT != bundle.tokenizer.padding_id)).sum(1)
    assert batch.source_R.tolist() == [0, 0, 0, 1, 1, 1, 1]
    torch.testing.assert_close(risk.log_probability(model, batch), expected_R)


def test_risk_is_the_cost_to_be_expected_among_what_was_found(bundle: Bundle) -> None:
    batch = batch_of(bundle)
    log_probability_R = torch.tensor([-1.0, -3.0, -5.0, -2.0, -2.0, -4.0, -7.0])
    first = torch.tensor([-1.0, -3.0]).mul(risk.SHARPNESS).softmax(0) @ torch.tensor([0.2, 0.9])
    second = torch.tensor([-2.0, -2.0, -4.0]).mul(risk.SHARPNESS).softmax(0) @ torch.tensor([0.5, 0.1, 0.8])
    expected, written = risk.risk(log_probability_R, batch)
    assert expected.item() == pytest.approx((first + second).item())
    assert written.item() == 12.0


def test_training_lowers_the_risk_and_leaves_a_model_folder(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "found.jsonl"
    found.write_text(
        "\n".join(json.dumps([one.source, one.translations, one.costs, one.written]) for one in FOUND), encoding="utf-8"
    )
    paths = ["--init", str(bundle.path), "--found", str(found), "--output", str(tmp_path / "out")]
    paths += ["--corpus", "its translations were found before"]
    monkeypatch.setattr(sys, "argv", ["risk.py", *paths, "--steps", "20", "--rate", "0.01", "--dropout", "0"])
    risk.main()
    batch = batch_of(bundle)
    before, after = (
        risk.risk(risk.log_probability(model.eval(), batch), batch)[0].item()
        for model in (bundle.load_model(), Bundle.open(tmp_path / "out").load_model())
    )
    assert after < before - 0.1
    assert capsys.readouterr().out.startswith("step 10/20  risk 0.")


def test_a_model_of_several_directions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = write_tiny_bundle(tmp_path / "both", directions=("en-fr", "fr-en"))
    paths = ["--init", str(both.path), "--corpus", "pairs.tsv", "--output", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["risk.py", *paths])
    with pytest.raises(SystemExit):
        risk.main()
    assert (
        "translates en-fr, fr-en, and would forget all but one: give a model of one direction"
        in capsys.readouterr().err
    )
