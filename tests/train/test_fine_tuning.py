"""Going on from a model: its weights, pieces and shape, what it knew before, adapters, and both directions."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from commands import weights_hash
from small_runs import events, run_small, small_recipe, stop_at, translate, weights, write_corpus
from synthetic import make_pairs

from dragoman.bundle import Bundle
from dragoman.errors import ConfigError
from dragoman.recipe import CorpusConfig, SearchConfig


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusConfig:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def trained(corpus: CorpusConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "model"
    run_small(small_recipe(corpus), folder)
    return folder


def test_fine_tuning_starts_from_the_weights_and_pieces_of_its_base(
    corpus: CorpusConfig, trained: Path, tmp_path: Path
) -> None:
    recipe = small_recipe(corpus, max_steps=1, learning_rate=1e-30, optimizer="adam")
    run_small(recipe, tmp_path / "model", init=str(trained))
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (trained / "tokenizer.json").read_bytes()
    for name, array in weights(trained).items():
        assert (weights(tmp_path / "model")[name] == array).all(), name
    sources = [source for source, _ in make_pairs(23, seed=3)]
    assert translate(tmp_path / "model", sources) == translate(trained, sources)


def test_fine_tuning_watches_what_its_base_was_validated_on(trained: Path, tmp_path: Path) -> None:
    new = write_corpus(tmp_path, 101, "new.tsv", seed=7)
    recipe = small_recipe(new, max_steps=1, learning_rate=1e-30, optimizer="adam")
    run_small(recipe, tmp_path / "model", init=str(trained))
    (told,) = events(tmp_path / "model", "validation")
    losses = [event["loss"] for event in events(trained, "validation")]
    assert told["watched_loss"] == pytest.approx(min(losses), rel=1e-5)
    assert told["loss"] != pytest.approx(told["watched_loss"], rel=1e-3)


def test_a_model_that_goes_on_knows_what_its_base_has_met(trained: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.tsv"
    new.write_text("".join(f"{place} zuvi\t{place} moon\n" for place in range(60)), encoding="utf-8")
    recipe = small_recipe(CorpusConfig(path=str(new), languages="xx-yy"), max_steps=1)
    run_small(recipe, tmp_path / "model", init=str(trained))
    base, tuned = (Bundle.open(folder).known_words for folder in (trained, tmp_path / "model"))
    assert base is not None
    assert tuned is not None
    assert [(word in base, word in tuned) for word in ("taro", "zuvi", "oyelaran")] == [
        (True, True), (False, True), (False, False)
    ]  # fmt: skip


def test_the_shape_is_the_bases_and_dropout_the_recipes(corpus: CorpusConfig, trained: Path, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, max_steps=1, model={"d_model": 64, "dropout": 0.3})
    run_small(recipe, tmp_path / "model", init=str(trained))
    config = Bundle.open(tmp_path / "model").model_config
    assert (config.d_model, config.dropout) == (32, 0.3)


def test_what_is_not_asked_for_is_the_bases(trained: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(trained, base, ignore=shutil.ignore_patterns("run"))
    for name, changes in (
        ("scorecard.json", {"licence": "CC BY 2.0", "limits": "news"}),
        ("config.json", {"search": {"beam": 2, "length_penalty": 2.5}}),
    ):
        values = json.loads((base / name).read_text(encoding="utf-8"))
        (base / name).write_text(json.dumps(values | changes), encoding="utf-8")
    (tmp_path / "more.tsv").write_text("taro ba\tthe cat\n" * 40 + "miku\ttree\n" * 40, encoding="utf-8")
    more = CorpusConfig(path=str(tmp_path / "more.tsv"))
    recipe = replace(small_recipe(more, max_steps=2), search=SearchConfig())
    run_small(recipe, tmp_path / "tuned", init=str(base))
    tuned = Bundle.open(tmp_path / "tuned")
    assert tuned.directions == ("xx-yy",)
    assert (tuned.search.beam, tuned.search.length_penalty) == (2, 2.5)
    assert (tuned.scorecard["licence"], tuned.scorecard["limits"]) == ("CC BY 2.0", "news")
    assert [one["name"] for one in tuned.scorecard["data"]] == ["pairs.tsv", "more.tsv"]


def test_a_base_of_several_directions_wants_to_be_told_which(trained: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(trained, base, ignore=shutil.ignore_patterns("run"))
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    (base / "config.json").write_text(json.dumps(config | {"directions": ["xx-yy", "yy-xx"]}), encoding="utf-8")
    (tmp_path / "more.tsv").write_text("taro ba\tthe cat\n" * 40, encoding="utf-8")
    recipe = small_recipe(CorpusConfig(path=str(tmp_path / "more.tsv")), max_steps=2)
    with pytest.raises(ConfigError, match="base knows xx-yy, yy-xx: say which with --from and --to"):
        run_small(recipe, tmp_path / "tuned", init=str(base))


def test_adapters_are_merged_into_a_plain_model(corpus: CorpusConfig, trained: Path, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, lora=3)
    result = run_small(recipe, tmp_path / "model", init=str(trained))
    assert (result.reason, result.step) == ("finished", 20)
    before, after = weights(trained), weights(tmp_path / "model")
    assert {name: array.shape for name, array in after.items()} == {n: array.shape for n, array in before.items()}
    moved = {name for name in before if (before[name] != after[name]).any()}
    assert moved == {name for name, array in before.items() if array.ndim == 2 and "embedding" not in name}
    assert len(translate(tmp_path / "model", ["taro ba miku de peli ."])) == 1
    losses = [event["loss"] for event in events(tmp_path / "model", "validation")]
    assert losses[-1] < min(event["loss"] for event in events(trained, "validation"))


def test_adapters_are_taken_up_again(corpus: CorpusConfig, trained: Path, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, lora=3, ema_decay=0.5)
    run_small(recipe, tmp_path / "whole", init=str(trained))
    run_small(recipe, tmp_path / "model", init=str(trained), trackers=[stop_at(10)])
    run_small(recipe, tmp_path / "model", init=str(trained), resume=True)
    assert weights_hash(tmp_path / "model") == weights_hash(tmp_path / "whole")


def test_one_model_learns_both_ways_and_can_be_gone_on_from(corpus: CorpusConfig, tmp_path: Path) -> None:
    both = replace(corpus, both_ways=True)
    run_small(small_recipe(both), tmp_path / "model")
    bundle = Bundle.open(tmp_path / "model")
    assert bundle.directions == ("xx-yy", "yy-xx")
    assert set(bundle.tokenizer.languages) == {"xx", "yy"}
    assert bundle.known_words is not None
    lexicons = bundle.known_words.lexicons
    assert (lexicons["xx-yy"]["taro"], lexicons["yy-xx"]["cat"]) == (("cat",), ("taro",))
    for language, text in (("yy", "taro ba miku de peli ."), ("xx", "the red cat sees the big dog .")):
        assert len(translate(tmp_path / "model", [text], language)) == 1
    run_small(small_recipe(corpus, max_steps=2), tmp_path / "tuned", init=str(tmp_path / "model"))
    assert "watched_loss" in events(tmp_path / "tuned", "validation")[0]


def test_a_lexicon_is_learned_from_corpora_in_both_orders(corpus: CorpusConfig, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, max_steps=1)
    few = replace(write_corpus(tmp_path, 23, "few.tsv", seed=7), languages="yy-xx", swap=True)
    run_small(replace(recipe, data=replace(recipe.data, train=(*recipe.data.train, few))), tmp_path / "model")
    known = Bundle.open(tmp_path / "model").known_words
    assert known is not None
    assert (known.lexicons["xx-yy"]["taro"], known.lexicons["yy-xx"]["cat"]) == (("cat",), ("taro",))


def test_contractions_are_learned_by_language_from_corpora_in_both_orders(corpus: CorpusConfig, tmp_path: Path) -> None:
    recipe = small_recipe(corpus, max_steps=1)
    (tmp_path / "few.tsv").write_text("the do'gs\tta'ros ba\n" * 10, encoding="utf-8")
    few = CorpusConfig(path=str(tmp_path / "few.tsv"), languages="yy-xx")
    run_small(replace(recipe, data=replace(recipe.data, train=(*recipe.data.train, few))), tmp_path / "model")
    known = Bundle.open(tmp_path / "model").known_words
    assert known is not None
    assert known.contractions == {"xx": {"taros": "ta'ros"}, "yy": {"dogs": "do'gs"}}
