"""A model folder: what goes in comes out, and every way to be damaged has its own clear line."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.bundle import Bundle, box, expected_shapes, find, find_direction, in_the_box, model_card, state_to_weights
from dragoman.config import PRESETS, ModelConfig
from dragoman.errors import BundleError
from dragoman.model.transformer import Transformer
from dragoman.recipe import SearchConfig
from dragoman.text.known_words import KnownWords
from tiny_bundle import tiny_config, tiny_model, tiny_tokenizer, write_tiny_bundle

SHAPES: list[dict[str, Any]] = [
    {},
    {"norm_order": "pre", "norm": "rms", "activation": "swiglu"},
    {"attention_bias": True, "output_bias": True, "share_embeddings": False, "position": "learned"},
    {"d_k": 5, "d_v": 7, "decoder_layers": 1},
]


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def error_of(folder: Path) -> str:
    with pytest.raises(BundleError) as caught:
        Bundle.open(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What goes in comes out


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_have_the_names_and_shapes_of_the_torch_model(shape: dict[str, Any]) -> None:
    config = tiny_config(**shape)
    weights = state_to_weights(Transformer(config))
    assert {name: array.shape for name, array in weights.items()} == expected_shapes(config)


@pytest.mark.parametrize("name", ["base", "big", "B-dk16", "E"])
def test_shapes_add_up_to_the_paper_s_parameters(name: str) -> None:
    config = PRESETS[name].model
    total = sum(int(np.prod(shape)) for shape in expected_shapes(config).values())
    with torch.device("meta"):
        assert total == Transformer(config).num_parameters()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_that_is_written_and_loaded_says_the_same(shape: dict[str, Any], tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "model", seed=3, **shape)
    original, loaded = tiny_model(bundle.model_config, seed=3), Bundle.open(tmp_path / "model").load_model()
    source, target = torch.randint(3, 331, (2, 5, 7))
    assert torch.equal(original(source, target), loaded(source, target))
    assert not loaded.training


def test_a_bundle_tells_what_it_was_given(tmp_path: Path) -> None:
    written = write_tiny_bundle(
        tmp_path, directions=("fr-en", "en-fr"), languages=("en", "fr"), scorecard={"minutes": 7}, d_ff=41
    )
    bundle = Bundle.open(tmp_path)
    assert bundle == written
    assert bundle.languages == (("fr", "en"), ("en", "fr"))
    assert bundle.model_config.d_ff == 41
    assert bundle.search == SearchConfig(extra_length=13)
    assert bundle.scorecard == {"minutes": 7}
    assert bundle.tokenizer.fingerprint() == tiny_tokenizer(("en", "fr")).fingerprint()
    assert bundle.num_parameters == Transformer(bundle.model_config).num_parameters()
    bundle.verify()


def test_half_precision_halves_the_file_and_rounds_the_weights(tmp_path: Path) -> None:
    config, tokenizer = tiny_config(), tiny_tokenizer()
    weights = state_to_weights(tiny_model(config))
    arguments: dict[str, Any] = {
        "model_config": config, "search": SearchConfig(), "tokenizer": tokenizer, "weights": weights,
        "directions": ["fr-en"],
    }  # fmt: skip
    whole = Bundle.write(tmp_path / "whole", **arguments)
    half = Bundle.write(tmp_path / "half", dtype="float16", **arguments)
    assert half.weights_bytes < 0.6 * whole.weights_bytes
    name = "decoder.blocks.0.cross_attention.w_qkv"
    assert half.weights()[name].dtype == np.float16
    np.testing.assert_array_equal(half.weights()[name], whole.weights()[name].astype(np.float16))
    assert half.load_model().decoder.blocks[0].cross_attention.w_qkv.dtype == torch.float32


def test_opening_and_reading_weights_loads_no_torch(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path)
    code = (
        "import sys; from dragoman.bundle import Bundle; b = Bundle.open(sys.argv[1]); b.tokenizer; b.weights(); "
        "print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_a_second_write_replaces_the_first_and_leaves_other_files(tmp_path: Path) -> None:
    first = write_tiny_bundle(tmp_path, seed=1)
    (tmp_path / "training.jsonl").write_text("{}\n", encoding="utf-8")
    second = write_tiny_bundle(tmp_path, seed=2)
    assert first.weights_hash() != second.weights_hash()
    names = {"config.json", "tokenizer.json", "model.safetensors", "README.md", "scorecard.json", "training.jsonl"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_model_tells_which_words_it_has_met(tmp_path: Path) -> None:
    known = KnownWords.collect([("Où habite Tom ?", "Where does Tom live?")] * 20)
    bundle = write_tiny_bundle(tmp_path, known_words=known)
    assert bundle.known_words == known
    # Another model in this place has not met them.
    assert write_tiny_bundle(tmp_path).known_words is None


# Every way to be damaged


def test_known_words_that_are_damaged(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path, known_words=KnownWords.collect([("a", "b")]))
    (tmp_path / "words.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BundleError, match=r"words\.json cannot be understood: .*: copy or train the model again"):
        bundle.known_words  # noqa: B018


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert error_of(tmp_path / "none") == (
        f"there is no model at {tmp_path / 'none'}: give a folder that `dragoman train` wrote"
    )


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "is a file, expected a model folder with config.json" in error_of(tmp_path / "file")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write_tiny_bundle(tmp_path)
    (tmp_path / name).unlink()
    assert error_of(tmp_path) == f"{tmp_path} lacks {name}, so it is not a whole model folder: copy or train it again"


def test_weights_that_are_cut_short(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-11])
    size = bundle.weights_bytes
    assert f"model.safetensors has {size - 11} bytes, config.json says {size}: the file is cut short" in error_of(
        tmp_path
    )


def test_weights_that_are_no_safetensors(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * bundle.weights_bytes)
    with pytest.raises(BundleError, match=r"model\.safetensors cannot be read: .*: copy the model again"):
        bundle.weights()


def test_weights_that_changed_are_found_when_they_are_verified(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(BundleError, match=r"does not have the hash that config\.json gives: the file is damaged"):
        bundle.verify()


def test_a_weight_of_another_shape_is_named(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path)
    model = {**json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))["model"], "d_ff": 41}
    change_config(tmp_path, model=model)
    message = re.escape(
        "has 'encoder.blocks.0.feed_forward.w_1.weight' of shape (37, 22), config.json calls for (41, 22)"
    )
    with pytest.raises(BundleError, match=message):
        Bundle.open(bundle.path).weights()


def test_a_missing_and_a_surplus_weight_are_named(tmp_path: Path) -> None:
    config = tiny_config()
    weights = state_to_weights(tiny_model(config))
    arguments: dict[str, Any] = {
        "model_config": config, "search": SearchConfig(), "tokenizer": tiny_tokenizer(), "directions": ["fr-en"],
    }  # fmt: skip
    less = {name: array for name, array in weights.items() if name != "decoder.blocks.1.feed_forward.w_2.bias"}
    with pytest.raises(BundleError, match=r"lacks the weight 'decoder\.blocks\.1\.feed_forward\.w_2\.bias'"):
        Bundle.write(tmp_path, weights=less, **arguments)
    with pytest.raises(BundleError, match=r"has the weight 'odd', which config\.json does not call for"):
        Bundle.write(tmp_path, weights={**weights, "odd": np.zeros(3)}, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_weight_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    config = tiny_config()
    weights = state_to_weights(tiny_model(config))
    weights["target_embedding.pieces.weight"][5, 3] = 1e7
    with pytest.raises(BundleError, match=r"'target_embedding\.pieces\.weight' has values that float16 cannot hold"):
        Bundle.write(
            tmp_path, model_config=config, search=SearchConfig(), tokenizer=tiny_tokenizer(), weights=weights,
            directions=["fr-en"], dtype="float16",
        )  # fmt: skip


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    config = tiny_config(vocab_size=337)
    with pytest.raises(BundleError, match="the tokenizer has 331 pieces and the model 337"):
        Bundle.write(
            tmp_path, model_config=config, search=SearchConfig(), tokenizer=tiny_tokenizer(),
            weights=state_to_weights(tiny_model(config)), directions=["fr-en"],
        )  # fmt: skip
    bundle = write_tiny_bundle(tmp_path)
    tiny_tokenizer(("en", "fr")).save(tmp_path / "tokenizer.json")
    with pytest.raises(BundleError, match=r"tokenizer\.json has 333 pieces, config\.json says 331"):
        _ = Bundle.open(bundle.path).tokenizer


def test_a_bundle_from_a_newer_version(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path)
    change_config(tmp_path, format=2)
    assert re.fullmatch(
        r".* is a model of format 2, this dragoman \S+ reads up to 1: upgrade dragoman", error_of(tmp_path)
    )


def test_a_config_that_is_not_json_or_not_ours(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path)
    config = tmp_path / "config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text[:-9], encoding="utf-8")
    assert "config.json is not JSON (" in error_of(tmp_path)
    config.write_text("[1]", encoding="utf-8")
    assert "config.json holds a list, expected a JSON object" in error_of(tmp_path)
    config.write_text('{"model_type": "marian"}', encoding="utf-8")
    assert "gives no format, so it is not the config.json of a dragoman model" in error_of(tmp_path)
    config.write_text(text.replace('"search"', '"serach"'), encoding="utf-8")
    assert "config.json lacks 'search': copy or train the model again" in error_of(tmp_path)
    config.write_text(text.replace('"beam": 4', '"beam": "four"'), encoding="utf-8")
    assert "config.json cannot be understood: beam is 'four', expected a whole number" in error_of(tmp_path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BundleError, match=r"cannot write the model to .*file/model: Not a directory"):
        write_tiny_bundle(tmp_path / "file" / "model")


# The box


def test_an_empty_box_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path / "none")
    assert in_the_box() == []
    with pytest.raises(
        BundleError, match="there is no model at xx-yy, and none of that name in the box, which has none"
    ):
        find("xx-yy")
    with pytest.raises(BundleError, match="no model translates from fr in the box, which has none"):
        find_direction("fr", None)


def test_a_model_is_found_by_path_by_name_and_by_direction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path / "box")
    write_tiny_bundle(tmp_path / "box" / "en-fr", directions=("en-fr",))
    write_tiny_bundle(tmp_path / "box" / "fr-en", directions=("fr-en", "fr-de"))
    own = write_tiny_bundle(tmp_path / "own").path
    assert in_the_box() == ["fr-en", "en-fr"]
    assert find(own) == own
    assert find("fr-en") == tmp_path / "box" / "fr-en"
    assert find_direction("fr", "de") == find_direction(None, "de") == find_direction("fr", None) == find("fr-en")
    assert find_direction(None, "fr") == find_direction("en-GB", "FR_ca") == find("en-fr")
    with pytest.raises(
        BundleError, match="no model translates from de in the box, which has fr-en, fr-de, en-fr: give --model FOLDER"
    ):
        find_direction("de", None)


def test_a_model_for_one_direction_goes_before_one_for_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path / "box")
    for name, directions in {
        "all": ("en-fr", "de-fr", "fr-en"),
        "en-fr": ("en-fr",),
        "fr-en": ("fr-en", "en-fr"),
    }.items():
        write_tiny_bundle(tmp_path / "box" / name, directions=directions)
    assert in_the_box() == ["fr-en", "all", "en-fr"]
    assert find_direction("en", "fr") == find_direction(None, "fr") == find("en-fr")
    assert find_direction(None, None) == find_direction("fr", None) == find("fr-en")
    assert find_direction("de", None) == find("all")
    write_tiny_bundle(tmp_path / "box" / "de-en", directions=("de-en",))
    assert find_direction(None, "en") == find("fr-en"), "what comes first tells the direction, then the specialist"


def test_a_folder_here_does_not_hide_a_model_in_the_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "BOX", tmp_path / "box")
    write_tiny_bundle(tmp_path / "box" / "fr-en")
    (tmp_path / "fr-en").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find("fr-en") == tmp_path / "box" / "fr-en"
    assert find("box") == Path("box")


# The card


def test_the_card_tells_what_is_known_and_nothing_else() -> None:
    scorecard = {
        "scores": [{"metric": "BLEU", "score": 41.256, "signature": "nrefs:1|case:mixed", "on": "test, 3 pairs"}],
        "data": [{"name": "pairs.tsv", "pairs": 12345, "sha256": "abc", "licence": "CC-BY 2.0"}],
        "command": "dragoman train pairs.tsv",
        "minutes": 93.7,
        "limits": "Long sentences.",
    }
    card = model_card(
        directions=["fr-en"], model_config=ModelConfig(norm_order="pre"), num_parameters=7_654_321, scorecard=scorecard,
    )  # fmt: skip
    for text in (
        "# Translates fr → en", "7,654,321 parameters", "norm order pre", "| BLEU | 41.26 | test, 3 pairs |",
        r"nrefs:1\|case:mixed", "| pairs.tsv | 12,345 | CC-BY 2.0 | abc |", "    dragoman train pairs.tsv",
        "in 94 minutes", "## Limits\n\nLong sentences.",
    ):  # fmt: skip
        assert text in card
    assert "Samples" not in card
    assert "attribution" not in card
    bare = model_card(directions=["fr-en"], model_config=ModelConfig(), num_parameters=3, scorecard={})
    assert "##" not in bare
