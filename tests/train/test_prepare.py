"""From corpora to pieces, ids and a validation set: in every direction, once, and with nothing on both sides."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_runs import small_recipe, write_corpus
from synthetic import make_pairs, write_pairs

from dragoman.errors import ConfigError, DataError
from dragoman.recipe import CorpusConfig, TokenizerConfig
from dragoman.text.mixture import Mixture
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.prepare import Direction, directions_of, prepare


def texts(data: Mixture) -> list[tuple[str, str]]:
    return [tuple(data.text(index)) for index in range(len(data))]


def heads(data: Mixture) -> set[int]:
    return {int(data.pair(index).source[0]) for index in range(len(data))}


def test_a_corpus_is_learned_as_it_stands_and_the_other_way_if_asked(tmp_path: Path) -> None:
    one, other = write_corpus(tmp_path, 7, "a.tsv"), CorpusConfig(path="b.fr-en.tsv", both_ways=True)
    assert directions_of([one, other]) == [
        Direction(one, "xx", "yy", reverse=False),
        Direction(other, "fr", "en", reverse=False),
        Direction(other, "en", "fr", reverse=True),
    ]
    assert [direction.name for direction in directions_of([one, other])] == ["xx-yy", "fr-en", "en-fr"]


def test_held_out_and_trained_on_are_all_pairs_and_share_no_sentence(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, 211)
    prepared = prepare(small_recipe(corpus), tmp_path)
    train, valid = texts(prepared.train), texts(prepared.valid)
    assert sorted(train + valid) == sorted(make_pairs(211))
    assert len(valid) == 17
    for side in (0, 1):
        assert not {pair[side] for pair in train} & {pair[side] for pair in valid}
    assert [(pair.source, pair.target) for pair in prepared.valid_pairs] == valid
    assert {pair.language for pair in prepared.valid_pairs} == {"yy"}
    assert prepared.directions == ("xx-yy",)


def test_a_given_validation_set_is_used_and_nothing_is_held_out(tmp_path: Path) -> None:
    train, valid = write_corpus(tmp_path, 211), write_corpus(tmp_path, 13, "valid.tsv", seed=7)
    prepared = prepare(small_recipe(train, valid=(valid,)), tmp_path)
    assert len(prepared.train) == 211
    assert texts(prepared.valid) == make_pairs(13, seed=7)


def test_with_one_target_language_sources_have_no_tag(tmp_path: Path) -> None:
    prepared = prepare(small_recipe(write_corpus(tmp_path)), tmp_path)
    assert prepared.tokenizer.languages == ()
    for index in (0, 5, 13):
        source = prepared.train.pair(index).source
        assert prepared.tokenizer.decode(source) == prepared.train.text(index).source
        assert source[-1] == prepared.tokenizer.end_id


def test_both_ways_puts_the_target_language_at_the_head_of_every_source(tmp_path: Path) -> None:
    corpus = replace(write_corpus(tmp_path), both_ways=True)
    prepared = prepare(small_recipe(corpus), tmp_path)
    assert prepared.directions == ("xx-yy", "yy-xx")
    assert len(prepared.train) == 2 * (211 - 17)
    there, back = (Mixture([dataset]) for dataset in prepared.train.datasets)
    assert heads(there) == {prepared.tokenizer.language_id("yy")}
    assert heads(back) == {prepared.tokenizer.language_id("xx")}
    assert texts(back) == [(target, source) for source, target in texts(there)]
    assert {pair.language for pair in prepared.valid_pairs} == {"xx", "yy"}
    # Held out is held out both ways.
    assert not {source for source, _ in texts(there)} & {target for _, target in texts(prepared.valid)}


def test_corpora_of_several_languages_are_told_apart_by_their_targets(tmp_path: Path) -> None:
    one = write_corpus(tmp_path, 101, "one.tsv")
    other = replace(write_corpus(tmp_path, 103, "other.tsv", seed=7), languages="xx-zz")
    prepared = prepare(small_recipe(one, other), tmp_path)
    assert prepared.directions == ("xx-yy", "xx-zz")
    assert [heads(Mixture([dataset])) for dataset in prepared.train.datasets] == [
        {prepared.tokenizer.language_id("yy")},
        {prepared.tokenizer.language_id("zz")},
    ]


def test_two_corpora_keep_their_weights_and_each_its_own_held_out_pairs(tmp_path: Path) -> None:
    one, other = write_corpus(tmp_path, 101, "one.tsv"), write_corpus(tmp_path, 107, "other.tsv", seed=7)
    prepared = prepare(small_recipe(one, replace(other, weight=3.0)), tmp_path)
    assert prepared.train.weights == [1.0, 3.0]
    first, second = (texts(Mixture([dataset])) for dataset in prepared.train.datasets)
    assert set(first) < set(make_pairs(101))
    assert set(second) < set(make_pairs(107, seed=7))
    assert not set(first + second) & set(texts(prepared.valid))
    epoch = prepared.train.epoch(seed=1, epoch=0)
    assert epoch is not None
    assert np.sum(epoch < len(first)) == len(first)
    assert np.sum(epoch >= len(first)) == 3 * len(second)


def test_a_small_corpus_beside_a_large_one_may_have_nothing_held_out(tmp_path: Path) -> None:
    large, small = write_corpus(tmp_path, 211, "large.tsv"), write_corpus(tmp_path, 2, "small.tsv", seed=7)
    recipe = small_recipe(large, small)
    prepared = prepare(replace(recipe, data=replace(recipe.data, valid_pairs=3)), tmp_path)
    assert [len(dataset) for dataset in prepared.train.datasets] == [208, 2]
    assert len(prepared.valid) == len(prepared.valid_pairs) == 3


def test_a_validation_set_the_wrong_way_round_is_refused(tmp_path: Path) -> None:
    corpus, valid = write_corpus(tmp_path), write_corpus(tmp_path, 13, "valid.tsv", seed=7)
    turned = replace(valid, languages="yy-xx", swap=True)
    with pytest.raises(
        ConfigError, match=r"valid\.tsv is to validate yy-xx, and what is learned is xx-yy: turn one of"
    ):
        prepare(small_recipe(corpus, valid=(turned,)), tmp_path)
    both = prepare(small_recipe(replace(corpus, both_ways=True), valid=(turned,)), tmp_path)
    assert {pair.language for pair in both.valid_pairs} == {"xx"}


def test_two_languages_of_one_file_are_two_corpora(tmp_path: Path) -> None:
    lines = [{"en": f"one {n}", "de": f"eins {n}", "fr": f"un {n}"} for n in range(31)]
    path = tmp_path / "three.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    corpora = [CorpusConfig(path=str(path), languages=languages) for languages in ("en-fr", "de-fr")]
    recipe = small_recipe(*corpora, valid=(write_corpus(tmp_path, 13, "valid.tsv", seed=7),))
    prepared = prepare(recipe, tmp_path, tokenizer=Tokenizer.learn(["one eins un"], TokenizerConfig(vocab_size=300)))
    assert [dataset.text(0).source for dataset in prepared.train.datasets] == ["one 0", "eins 0"]


def test_pieces_of_a_model_for_one_language_do_not_tell_two_apart(tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["the cat sees the dog"], TokenizerConfig(vocab_size=300))
    corpus = replace(write_corpus(tmp_path), both_ways=True)
    with pytest.raises(ConfigError, match="was made for one language to write, the data have xx, yy"):
        prepare(small_recipe(corpus), tmp_path, tokenizer=tokenizer)


def test_what_was_validated_on_stays_in_the_folder_for_those_who_go_on(tmp_path: Path) -> None:
    one, other = write_corpus(tmp_path, 101, "one.tsv"), write_corpus(tmp_path, 107, "other.tsv", seed=7)
    prepared = prepare(small_recipe(replace(one, both_ways=True), other), tmp_path)
    kept = {
        path.name: [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in tmp_path.glob("valid.*.tsv")
    }
    assert sorted(kept) == ["valid.xx-yy.tsv", "valid.yy-xx.tsv"]
    by_language: dict[str, list[tuple[str, str]]] = {"yy": [], "xx": []}
    for pair in prepared.valid_pairs:
        by_language[pair.language].append((pair.source, pair.target))
    assert sorted(kept["valid.xx-yy.tsv"]) == sorted(by_language["yy"])
    assert sorted(kept["valid.yy-xx.tsv"]) == sorted(by_language["xx"])


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    recipe, said = small_recipe(write_corpus(tmp_path)), []
    first = prepare(recipe, tmp_path, say=said.append)
    assert said == ["holding out pairs to validate on", "learning the pieces", "encoding the pairs"]
    said.clear()
    second = prepare(recipe, tmp_path, say=said.append)
    assert said == ["encoding the pairs"]  # which are found in the cache
    assert second.tokenizer.fingerprint() == first.tokenizer.fingerprint()
    assert [d.folder for d in second.train.datasets] == [d.folder for d in first.train.datasets]
    assert texts(second.valid) == texts(first.valid)


def test_a_changed_corpus_is_encoded_anew(tmp_path: Path) -> None:
    corpus, valid = write_corpus(tmp_path, 101), write_corpus(tmp_path, 13, "valid.tsv", seed=7)
    recipe = small_recipe(corpus, valid=(valid,))
    assert len(prepare(recipe, tmp_path).train) == 101
    write_pairs(Path(corpus.path), make_pairs(103))
    assert len(prepare(recipe, tmp_path).train) == 103


def test_given_pieces_are_used_as_they_are(tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["the cat sees the dog"], TokenizerConfig(vocab_size=300))
    prepared = prepare(small_recipe(write_corpus(tmp_path)), tmp_path, tokenizer=tokenizer)
    assert prepared.tokenizer is tokenizer
    assert not (tmp_path / "tokenizer.json").exists()


def test_given_pieces_that_lack_a_target_language_are_refused(tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["the cat sees the dog"], TokenizerConfig(vocab_size=300), ["fr", "en"])
    with pytest.raises(ConfigError, match="this tokenizer does not know the target language 'yy'"):
        prepare(small_recipe(write_corpus(tmp_path)), tmp_path, tokenizer=tokenizer)


def test_a_watched_set_is_encoded_beside_the_rest(tmp_path: Path) -> None:
    corpus, watched = write_corpus(tmp_path), write_corpus(tmp_path, 13, "old.tsv", seed=7)
    assert prepare(small_recipe(corpus), tmp_path).watched is None
    prepared = prepare(small_recipe(corpus, watch=(watched,)), tmp_path)
    assert prepared.watched is not None
    assert texts(prepared.watched) == make_pairs(13, seed=7)
    assert len(prepared.train) + len(prepared.valid) == 211


def test_lines_that_are_no_pair_are_passed_over_and_pairs_that_cannot_be_learned_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    write_pairs(path, [*make_pairs(101), ("", "no source"), ("a", "b " * 97)])
    with path.open("a") as file:
        file.write("one column\n")
    valid = write_corpus(tmp_path, 13, "valid.tsv", seed=7)
    prepared = prepare(small_recipe(CorpusConfig(path=str(path)), valid=(valid,)), tmp_path)
    assert len(prepared.train) == 101
    assert prepared.num_skipped == 2


def test_files_that_are_not_aligned_are_refused(tmp_path: Path) -> None:
    for name, count in (("a.fr", 101), ("a.en", 103)):
        (tmp_path / name).write_text("a line\n" * count)
    corpus = CorpusConfig(path=str(tmp_path / "a.fr"), target_path=str(tmp_path / "a.en"))
    with pytest.raises(DataError, match=r"a\.fr has 101 lines and \S*a\.en has 103, expected as many"):
        prepare(small_recipe(corpus), tmp_path)
