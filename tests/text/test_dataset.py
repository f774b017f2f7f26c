"""Pairs as ids on disk: what goes in comes out, what is dropped is counted, a folder is whole or not there."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DataError
from dragoman.recipe import TokenizerConfig
from dragoman.text import chunks
from dragoman.text.chunks import Rules, reason_to_drop
from dragoman.text.dataset import Dataset, build, cached
from dragoman.text.merge_dropout import MergeDropout
from dragoman.text.mixture import Mixture, stretch
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Pair:
    source: str
    target: str


def make_pairs(count: int, seed: int = 2) -> list[Pair]:
    draw = random.Random(seed)
    words = ["".join(draw.choices("aeilnrst", k=draw.randint(1, 7))) for _ in range(53)]

    def sentence() -> str:
        return " ".join(draw.choices(words, k=draw.randint(1, 11)))

    return [Pair(f"  {sentence()}", f"{sentence()} !") for _ in range(count)]


PAIRS = make_pairs(211)
TOKENIZER = Tokenizer.learn((text for pair in PAIRS for text in (pair.source, pair.target)), TokenizerConfig(), ["fr"])


def built(
    folder: Path, pairs: list[Pair] = PAIRS, *, keep_text: bool = False, target_tag: int | None = None
) -> Dataset:
    return build(
        pairs, TOKENIZER, folder, max_length=97, max_ratio=9.0, keep_text=keep_text, target_tag=target_tag, workers=1
    )


def all_ids(data: Dataset | Mixture) -> list[tuple[list[int], list[int]]]:
    return [(pair.source.tolist(), pair.target.tolist()) for pair in map(data.pair, range(len(data)))]


def test_every_pair_comes_back_in_order_with_its_end_and_its_tag(tmp_path: Path) -> None:
    tag = TOKENIZER.language_id("fr")
    data = built(tmp_path / "data", target_tag=tag)
    assert len(data) == len(PAIRS)
    for number, pair in enumerate(PAIRS):
        source, target = data.pair(number)
        assert source.tolist() == [tag, *TOKENIZER.encode(pair.source).ids, TOKENIZER.end_id]
        assert target.tolist() == [*TOKENIZER.encode(pair.target).ids, TOKENIZER.end_id]
        assert (data.source_lengths[number], data.target_lengths[number]) == (len(source), len(target))


def test_text_is_kept_normalised_when_asked(tmp_path: Path) -> None:
    data = built(tmp_path / "with", keep_text=True)
    assert [tuple(data.text(n)) for n in range(len(data))] == [(p.source.strip(), p.target) for p in PAIRS]
    without = built(tmp_path / "without")
    assert not list((tmp_path / "without").glob("*.text*"))
    with pytest.raises(ConfigError, match="without was built without text, which BPE-dropout needs"):
        without.text(0)


def test_a_folder_that_is_opened_again_is_the_same(tmp_path: Path) -> None:
    data = built(tmp_path / "data", keep_text=True)
    again = Dataset.open(tmp_path / "data")
    assert all_ids(again) == all_ids(data)
    assert again.meta == data.meta
    assert again.meta["tokenizer"] == TOKENIZER.fingerprint()


def test_the_number_of_workers_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_PAIRS", 31)
    pairs = [*PAIRS, Pair("", "a"), Pair("half \ud83d", "é\u2028▁")]
    for workers in (1, 3):
        build(pairs, TOKENIZER, tmp_path / str(workers), max_length=97, max_ratio=9, keep_text=True, workers=workers)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert len(names) == 11
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "3" / name).read_bytes()


def test_a_worker_that_dies_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_PAIRS", 5)
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments: object, **settings: object) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **settings))  # type: ignore[call-overload]
        return started[-1]

    def pairs() -> Iterator[Pair]:
        for number, pair in enumerate(PAIRS):
            if number == 101:
                for process in started:
                    process.kill()
            yield pair

    monkeypatch.setattr(chunks.subprocess, "Popen", start)
    with pytest.raises(DataError, match="a process that encodes text ended with status -9: is there memory left"):
        build(pairs(), TOKENIZER, tmp_path / "data", max_length=97, max_ratio=9, workers=2)
    assert list(tmp_path.iterdir()) == []


def test_dropped_pairs_are_counted_by_reason(tmp_path: Path) -> None:
    long = " ".join(["a"] * 96)
    pairs = [*PAIRS[:13], Pair("", "a"), Pair("a", "\x00 "), Pair(long + " a", long), Pair(long, "a")]
    data = built(tmp_path / "data", pairs)
    assert data.dropped == {"empty": 2, "overlong": 1, "ratio": 1}
    assert len(data) == data.meta["num_pairs"] == 13


@pytest.mark.parametrize(
    ("num_source", "num_target", "tag", "reason"),
    [
        (0, 5, None, "empty"),
        (5, 0, None, "empty"),
        (16, 16, None, None),
        (17, 16, None, "overlong"),
        (16, 17, None, "overlong"),
        (16, 16, 11, "overlong"),
        (15, 16, 11, None),
        (13, 1, None, None),
        (14, 1, None, "ratio"),
        (1, 14, None, "ratio"),
    ],
)
def test_when_a_pair_is_dropped(num_source: int, num_target: int, tag: int | None, reason: str | None) -> None:
    rules = Rules(target_tag=tag, max_length=17, max_ratio=3.0, keep_text=False)
    assert reason_to_drop(num_source, num_target, rules) == reason


def test_nothing_left_is_an_error_and_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no pair is left: 2 empty"):
        built(tmp_path / "data", [Pair("", "a"), Pair("a", "")])
    with pytest.raises(DataError, match="no pair is left: the corpus is empty"):
        built(tmp_path / "data", [])
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_that_breaks_off_leaves_no_folder(tmp_path: Path) -> None:
    def pairs() -> Iterator[Pair]:
        yield from PAIRS
        raise DataError("corpus.tsv line 212 is not UTF-8")

    with pytest.raises(DataError, match="line 212"):
        build(pairs(), TOKENIZER, tmp_path / "data", max_length=97, max_ratio=9)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_away(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from dragoman.text.writing import made_whole\n"
        "with made_whole(Path(sys.argv[1])) as unfinished:\n"
        "    (unfinished / 'source.ids').write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "data")])
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    foreign = tmp_path / f".data.{socket.gethostname()}.{os.getppid()}"
    foreign.mkdir()
    (tmp_path / f".data.{socket.gethostname()}.{os.getpid()}").mkdir()  # a process before us, in a container
    built(tmp_path / "data")
    assert sorted(tmp_path.iterdir()) == [foreign, tmp_path / "data"]


def test_a_folder_that_exists_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError, match="data exists already: delete it, or choose another folder"):
        built(tmp_path / "data")


def damage(folder: Path, how: str) -> None:
    if how == "short":
        (folder / "target.ids").write_bytes((folder / "target.ids").read_bytes()[:-1])
    elif how == "missing":
        (folder / "source.offsets").unlink()
    elif how == "meta":
        (folder / "meta.json").write_text("{")
    elif how == "key":
        meta = json.loads((folder / "meta.json").read_text())
        del meta["dtype"]
        (folder / "meta.json").write_text(json.dumps(meta))
    elif how == "version":
        meta = json.loads((folder / "meta.json").read_text())
        (folder / "meta.json").write_text(json.dumps(meta | {"version": 99}))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("short", r"target.ids has \d+ bytes, expected \d+: delete the folder"),
        ("missing", "data does not hold encoded pairs, or is damaged: .*: delete it"),
        ("meta", "is damaged"),
        ("key", "is damaged: KeyError.*dtype"),
        ("version", "data has encoded pairs of version 99, expected 1: delete it"),
    ],
)
def test_damage_is_seen_when_a_folder_is_opened(tmp_path: Path, how: str, message: str) -> None:
    built(tmp_path / "data")
    damage(tmp_path / "data", how)
    with pytest.raises(DataError, match=message):
        Dataset.open(tmp_path / "data")


def test_a_cache_builds_once_for_a_key_and_again_when_damaged(tmp_path: Path) -> None:
    folders = []

    def builder(folder: Path) -> Dataset:
        folders.append(folder)
        return built(folder)

    first = cached(tmp_path, {"corpus": "abc", "max_length": 97}, builder)
    again = cached(tmp_path, {"max_length": 97, "corpus": "abc"}, builder)
    assert len(folders) == 1
    assert all_ids(first) == all_ids(again)
    cached(tmp_path, {"corpus": "abc", "max_length": 101}, builder)
    assert len(set(folders)) == 2
    damage(folders[0], "short")
    assert all_ids(cached(tmp_path, {"corpus": "abc", "max_length": 97}, builder)) == all_ids(first)
    assert folders[2] == folders[0]


def test_dropout_redraws_a_pair_and_keeps_its_tag_end_and_text(tmp_path: Path) -> None:
    tag = TOKENIZER.language_id("fr")
    data = built(tmp_path / "data", keep_text=True, target_tag=tag)
    dropout = MergeDropout(TOKENIZER, 0.5, seed=1)
    rng = np.random.default_rng(3)
    drawn = [data.drawn_pair(number, partial(dropout.ids_batch, rng=rng)) for number in range(len(data))]
    for number, (source, target) in enumerate(drawn):
        assert source[0] == tag
        assert (source[-1], target[-1]) == (TOKENIZER.end_id, TOKENIZER.end_id)
        assert (TOKENIZER.decode(source), TOKENIZER.decode(target)) == data.text(number)
    assert sum(len(source) for source, _ in drawn) > data.source_lengths.sum()


def test_dropout_never_makes_a_side_longer_than_allowed(tmp_path: Path) -> None:
    longest = max(len(TOKENIZER.encode(pair.source).ids) + 1 for pair in PAIRS)
    data = build(PAIRS, TOKENIZER, tmp_path / "data", max_length=longest, max_ratio=9, keep_text=True)
    split = partial(MergeDropout(TOKENIZER, 0.9, seed=1).ids_batch, rng=np.random.default_rng(3))
    place = int(data.source_lengths.argmax())
    assert all(len(data.drawn_pair(n, split).source) <= longest for n in range(len(data)))
    drawn, plain = data.drawn_pair(place, split), data.pair(place)
    assert [side.tolist() for side in drawn] == [side.tolist() for side in plain]


def test_a_mixture_is_its_corpora_end_to_end(tmp_path: Path) -> None:
    one, other = built(tmp_path / "one", PAIRS[:37]), built(tmp_path / "other", PAIRS[37:], keep_text=True)
    mixture = Mixture([one, other])
    assert all_ids(mixture) == all_ids(built(tmp_path / "both"))
    assert mixture.source_lengths.tolist() == [len(source) for source, _ in all_ids(mixture)]
    assert mixture.target_lengths.tolist() == [len(target) for _, target in all_ids(mixture)]
    assert mixture.text(41) == other.text(4)
    assert mixture.epoch(seed=1, epoch=0) is None


def test_weights_say_how_often_an_epoch_goes_through_a_corpus(tmp_path: Path) -> None:
    one, other = built(tmp_path / "one", PAIRS[:37]), built(tmp_path / "other", PAIRS[37:101])
    mixture = Mixture([one, other], [2, 0.5])
    first, second = (mixture.epoch(seed=5, epoch=epoch) for epoch in (0, 1))
    assert first is not None
    assert second is not None
    for chosen in (first, second):
        counts = np.bincount(chosen, minlength=len(mixture))
        assert counts[:37].tolist() == [2] * 37
        assert counts[37:].sum() == 32
        assert counts[37:].max() == 1
    halves = [set(chosen[chosen >= 37].tolist()) for chosen in (first, second)]
    assert halves[0] | halves[1] == set(range(37, 101))
    again = mixture.epoch(seed=5, epoch=0)
    assert again is not None
    assert again.tolist() == first.tolist()
    assert set(mixture.epoch(seed=6, epoch=0)[-32:].tolist()) != halves[0]  # type: ignore[index]


@given(st.integers(1, 23), st.floats(0.05, 3.7), st.integers(1, 7))
def test_over_epochs_no_pair_is_favoured(num_pairs: int, weight: float, num_epochs: int) -> None:
    drawn = np.concatenate([stretch(num_pairs, weight, epoch, (1,)) for epoch in range(num_epochs)])
    counts = np.bincount(drawn, minlength=num_pairs)
    assert len(drawn) == round(num_epochs * weight * num_pairs)
    assert counts.max() - counts.min() <= 1


def test_weights_that_cannot_be_are_named(tmp_path: Path) -> None:
    data = built(tmp_path / "data")
    with pytest.raises(ConfigError, match="1 corpora have 2 weights: give one for each"):
        Mixture([data], [1, 2])
    with pytest.raises(ConfigError, match=r"a corpus has the weight 0.0, expected a number above 0"):
        Mixture([data], [0])
