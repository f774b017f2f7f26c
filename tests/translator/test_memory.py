"""A translation memory: pairs in a file that translations go by."""

from pathlib import Path

import pytest

from dragoman.bundle import Bundle
from dragoman.engine import ensemble
from dragoman.errors import ConfigError, DataError
from dragoman.recipe import CorpusConfig
from dragoman.search import recall
from dragoman.translator import load
from dragoman.translator.memory import read_memory
from tiny_bundle import tiny_texts, write_tiny_bundle

PAIRS = list(zip(tiny_texts(29, seed=2), tiny_texts(29, seed=3), strict=True))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return write_tiny_bundle(tmp_path_factory.mktemp("memory") / "tiny")


@pytest.fixture(autouse=True)
def _believe_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained model's vectors are all alike, so only the very same is near."""
    monkeypatch.setattr(recall, "SHARE", 0.97)
    monkeypatch.setattr(recall, "TEMPERATURE", 1e-9)


def written(folder: Path, pairs: list[tuple[str, str]], name: str = "memory.tsv") -> str:
    path = folder / name
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


def test_what_is_in_the_memory_is_translated_as_there(bundle: Bundle, tmp_path: Path) -> None:
    translator = load(bundle.path, memory=written(tmp_path, PAIRS))
    alone = load(bundle.path, engine="torch")
    sources = [source for source, _ in PAIRS]
    by_memory, by_itself = ([one.text for one in each.translate(sources, guards=False)] for each in (translator, alone))
    as_there = [text == target for text, (_, target) in zip(by_memory, PAIRS, strict=True)]
    assert sum(as_there) > 5  # an untrained model hardly knows what it has written, so not all of the 29
    assert not any(text == target for text, (_, target) in zip(by_itself, PAIRS, strict=True))
    assert translator.engine_name == "torch"


def test_two_files_are_a_memory_too(bundle: Bundle, tmp_path: Path) -> None:
    for place, name in enumerate(("m.fr", "m.en")):
        (tmp_path / name).write_text("".join(f"{pair[place]}\n" for pair in PAIRS), encoding="utf-8")
    both = load(bundle.path, memory=f"{tmp_path / 'm.fr'},{tmp_path / 'm.en'}")
    one = load(bundle.path, memory=written(tmp_path, PAIRS))
    assert both.translate(PAIRS[0][0], guards=False) == one.translate(PAIRS[0][0], guards=False)


def test_a_memory_goes_with_an_ensemble(bundle: Bundle, tmp_path: Path) -> None:
    other = write_tiny_bundle(tmp_path / "other", seed=2)
    together = load(bundle.path, ensemble=[other.path], memory=written(tmp_path, PAIRS))
    assert together.translate(PAIRS[4][0], guards=False).text == PAIRS[4][1]


def read(bundle: Bundle, path: str, languages: str = "") -> tuple[list[list[int]], list[list[int]]]:
    config = CorpusConfig(path=path, languages=languages)
    examples = read_memory(config, bundle.tokenizer, bundle.languages, bundle.model_config.max_length)
    return list(examples.sources), list(examples.targets)


def test_pairs_are_read_as_the_model_reads_them(bundle: Bundle, tmp_path: Path) -> None:
    sources, targets = read(bundle, written(tmp_path, PAIRS[:3]))
    encode = bundle.tokenizer.ids_batch
    assert sources == [[*ids, 2] for ids in encode([source for source, _ in PAIRS[:3]])]
    assert targets == [[*ids, 2] for ids in encode([target for _, target in PAIRS[:3]])]


def test_pairs_of_the_other_direction_are_turned_round(bundle: Bundle, tmp_path: Path) -> None:
    turned = [(target, source) for source, target in PAIRS]
    assert read(bundle, written(tmp_path, turned), "en-fr") == read(bundle, written(tmp_path, PAIRS, "b.tsv"))
    assert read(bundle, written(tmp_path, turned, "en-fr.tsv")) == read(bundle, written(tmp_path, PAIRS, "fr-en.tsv"))


def test_a_tmx_file_tells_its_languages_itself(bundle: Bundle, tmp_path: Path) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en-GB"><seg>{target}</seg></tuv><tuv xml:lang="fr-FR"><seg>{source}</seg></tuv></tu>'
        for source, target in PAIRS
    )
    path = tmp_path / "memory.tmx"
    path.write_text(f'<tmx version="1.4"><header srclang="en-GB"/><body>{units}</body></tmx>', encoding="utf-8")
    assert read(bundle, str(path)) == read(bundle, written(tmp_path, PAIRS))


def test_a_model_of_both_directions_remembers_both(tmp_path: Path) -> None:
    both = write_tiny_bundle(tmp_path / "both", directions=("fr-en", "en-fr"), languages=("en", "fr"))
    sources, targets = read(both, written(tmp_path, PAIRS[:2], "fr-en.tsv"))
    english, french = (both.tokenizer.language_id(language) for language in ("en", "fr"))
    assert [ids[0] for ids in sources] == [english, english, french, french]
    assert [ids[1:] for ids in sources[2:]] == targets[:2]
    with pytest.raises(ConfigError, match="does not tell its languages, and the model translates fr-en, en-fr"):
        read(both, written(tmp_path, PAIRS))


def test_what_no_model_could_write_is_left_out(bundle: Bundle, tmp_path: Path) -> None:
    long = " ".join(["babaceba"] * 90)
    pairs = [("", "Ba."), ("Ba.", ""), (long, "Ba."), ("Ba.", long), ("Ce.", "Di.")]
    assert len(read(bundle, written(tmp_path, pairs))[0]) == 1
    with pytest.raises(DataError, match=r"memory\.tsv has no pair that the model could have written"):
        read(bundle, written(tmp_path, pairs[:-1]))
    with pytest.raises(DataError, match=r"memory\.tsv has no pair that the model could have written"):
        read(bundle, written(tmp_path, pairs[:2]))


def test_a_memory_of_other_languages_is_refused(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"de-fi\.tsv is de-fi, the model translates fr-en: give other pairs"):
        load(bundle.path, memory=written(tmp_path, PAIRS, "de-fi.tsv"))


def test_the_fast_engine_ranks_what_it_found_by_the_memory(tmp_path: Path) -> None:
    """What the model finds second best is first, if that is what the memory has for a sentence alike."""
    alone = load("en-fr", engine="ctranslate2")
    first = alone.translate("Are you ready to leave?", alternatives=1)
    second = first.alternatives[0]
    memory = written(tmp_path, [("Are you ready to leave now?", second), ("It rains.", "Il pleut.")])
    together = load("en-fr", engine="ctranslate2", memory=memory)
    assert together.translate("Are you ready to leave?").text == second != first.text
    assert together.translate("The cat sleeps.") == alone.translate("The cat sleeps.")
    assert together.engine_name == "ctranslate2"


def test_without_torch_a_memory_ranks(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "has_torch", lambda: False)
    assert load(bundle.path, memory=written(tmp_path, PAIRS)).engine_name == "ctranslate2"
