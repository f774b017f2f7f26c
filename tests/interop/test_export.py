"""An exported model does what it did, where it now runs; one that does not is not left behind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers

from dragoman.bundle import Bundle, state_to_weights
from dragoman.engine import probe
from dragoman.engine.engine import DecodeOptions
from dragoman.engine.torch_engine import TorchEngine
from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.interop import ctranslate2_export, marian_export
from dragoman.interop.export import _pairs, export
from dragoman.interop.marian_import import import_marian
from dragoman.interop.parity import Parity, Threshold, check, probe_sources
from dragoman.recipe import SearchConfig
from dragoman.text.known_words import KnownWords
from interop.marian_models import texts, write_marian
from tiny_bundle import tiny_config, tiny_model, tiny_texts, write_tiny_bundle

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def generate(folder: Path, some: list[str]) -> list[str]:
    """What transformers writes, greedily."""
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    found = model.generate(**tokenizer(some, return_tensors="pt", padding=True), num_beams=1, forced_eos_token_id=None)
    return [" ".join(one.split()) for one in tokenizer.batch_decode(found, skip_special_tokens=True)]


def translate(bundle: Bundle, some: list[str], language: str = "") -> list[str]:
    """What ours writes, greedily."""
    tokenizer = bundle.tokenizer
    head = [tokenizer.language_id(language)] if language else []
    sources = [[*head, *ids, tokenizer.end_id] for ids in tokenizer.ids_batch(some)]
    options = DecodeOptions(search=SearchConfig(beam=1, extra_length=1000))
    found = TorchEngine(bundle.load_model()).translate_ids(sources, options)
    return [" ".join(tokenizer.target_side.decode(one[0].ids).split()) for one in found]


@pytest.mark.parametrize(
    "changes",
    [{}, {"position": "sinusoid-halves", "activation": "swish", "attention_bias": True, "output_bias": True},
     {"share_embeddings": False, "activation": "gelu"}],
    ids=["the paper's", "Marian's own", "two matrices"],
)  # fmt: skip
def test_transformers_runs_our_model_and_writes_the_same(tmp_path: Path, changes: dict[str, Any]) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours", seed=7, **changes)
    parity = export(bundle, tmp_path / "marian", "marian")
    assert (parity.token_agreement, parity.tokenizer_agreement) == (1.0, 1.0)
    some = tiny_texts(23, seed=5)
    assert generate(tmp_path / "marian", some) == translate(bundle, some)


def test_transformers_gives_our_logits(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours")
    export(bundle, tmp_path / "marian", "marian")
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    source, target = torch.randint(3, bundle.model_config.vocab_size, (2, 5, 11))
    with torch.no_grad():
        theirs = model(input_ids=source, decoder_input_ids=target).logits
        torch.testing.assert_close(theirs, bundle.load_model()(source, target), rtol=0, atol=1e-4)


def test_a_language_is_asked_for_as_marian_does(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours", directions=("fr-en", "fr-de"), languages=("en", "de"))
    export(bundle, tmp_path / "marian", "marian")
    some = tiny_texts(7, seed=5)
    found = generate(tmp_path / "marian", [f">>de<< {one}" for one in some])
    assert found == translate(bundle, some, "de")
    assert '[">>en<< ..."]' in (tmp_path / "marian" / "README.md").read_text(encoding="utf-8")


def test_a_model_of_one_direction_with_the_tags_of_its_base_is_asked_for_that(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours", directions=("en-fr",), languages=("en", "fr"))
    tag = bundle.tokenizer.language_id("fr")
    assert bundle.head_ids == [tag]
    assert {source[0] for source in probe_sources(bundle)} == {tag}
    assert {source[0] for source in probe.probe_sources(bundle)} == {str(tag)}
    assert f'"{bundle.tokenizer.piece(tag)}", ' in ctranslate2_export.example(bundle, "float32")
    assert ">>fr<< ..." in marian_export.example(bundle)


def test_test_pairs_whose_name_tells_the_other_way_are_turned_round(tmp_path: Path) -> None:
    for name in ("test.fr-en.tsv", "test.en-fr.tsv", "test.tsv"):
        (tmp_path / name).write_text("un\tone\n", encoding="utf-8")
    found = [_pairs(str(tmp_path / name), ("en", "fr")) for name in ("test.fr-en.tsv", "test.en-fr.tsv", "test.tsv")]
    assert found == [[("one", "un")], [("un", "one")], [("un", "one")]]


@pytest.mark.parametrize("separate", [False, True])
def test_export_and_import_are_the_identity(tmp_path: Path, separate: bool) -> None:
    write_marian(tmp_path / "marian", separate=separate, languages=("en", "de"))
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    export(bundle, tmp_path / "again", "marian")
    again = import_marian(tmp_path / "again", tmp_path / "back")
    assert again.model_config == bundle.model_config
    assert (again.search, again.directions) == (bundle.search, bundle.directions)
    assert again.weights_hash() == bundle.weights_hash()
    assert again.tokenizer.fingerprint() == bundle.tokenizer.fingerprint()


def test_our_model_comes_back_as_another_shape_of_the_same_model(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours")
    export(bundle, tmp_path / "marian", "marian")
    again = import_marian(tmp_path / "marian", tmp_path / "back")
    assert (bundle.model_config.position, again.model_config.position) == ("sinusoid", "sinusoid-halves")
    some = tiny_texts(11, seed=4)
    assert translate(again, some) == translate(bundle, some)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"norm": "rms"}, "RMSNorm, where Marian has LayerNorm"),
        ({"norm_order": "pre"}, "pre-norm, where Marian normalises after each sub-layer"),
        ({"activation": "swiglu"}, "SwiGLU, where Marian's feed-forward network has no gate"),
        ({"position": "learned"}, "learned positions, where Marian computes sinusoids"),
        ({"position_base": 500.0}, "a position_base of 500, where Marian's is 10000"),
        ({"d_k": 5}, "heads of d_k 5 and d_v 11, where Marian's have d_model / num_heads"),
    ],
)
def test_what_marian_cannot_express_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours", **changes)
    with pytest.raises(ConfigError) as caught:
        export(bundle, tmp_path / "marian", "marian")
    assert f"Marian cannot express this model: it has {reason}" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_the_readme_of_a_ctranslate2_export_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quantization: Any
) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours", search=SearchConfig(beam=1, extra_length=13))
    loose = Threshold(token_agreement=0.5, logit_difference=9.0)
    parity = export(bundle, tmp_path / "ct2", "ctranslate2", quantization=quantization, threshold=loose)
    assert parity.token_agreement == 1.0 or quantization == "int8"
    text, expected = next(pair for one in tiny_texts(29) if (pair := (one, translate(bundle, [one])[0]))[1])
    run(tmp_path / "ct2", text)
    written = capsys.readouterr().out.strip("\n")
    assert expected.startswith(written[:3]) if quantization == "int8" else written.startswith(expected)


def run(folder: Path, text: str) -> dict[str, Any]:
    """Run the example that an export's README shows."""
    readme = (folder / "README.md").read_text(encoding="utf-8")
    code = readme.partition("```python\n")[2].partition("```")[0]
    scope: dict[str, Any] = {}
    exec(code.replace("FOLDER", str(folder)).replace('"..."', json.dumps(text)), scope)
    return scope


def test_the_readme_of_an_imported_models_ctranslate2_export_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_marian(tmp_path / "marian")
    bundle = replace(import_marian(tmp_path / "marian", tmp_path / "ours"), search=SearchConfig(beam=1))
    export(bundle, tmp_path / "ct2", "ctranslate2")
    text, expected = next(pair for one in texts(53) if (pair := (one, translate(bundle, [one])[0]))[1])
    capsys.readouterr()
    run(tmp_path / "ct2", text)
    assert capsys.readouterr().out.split() == expected.split()
    vocabulary = json.loads((tmp_path / "ct2" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    assert vocabulary == bundle.tokenizer.pieces(range(bundle.tokenizer.vocab_size))


def test_a_tokenizer_that_lies_beside_an_export_is_the_models_own(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours")
    export(bundle, tmp_path / "ct2", "ctranslate2")
    beside = tokenizers.Tokenizer.from_file(str(tmp_path / "ct2" / "tokenizer.json"))
    some = tiny_texts(5, seed=6)
    assert [beside.encode(one).ids for one in some] == bundle.tokenizer.ids_batch(some)


def test_parity_is_written_beside_the_files_with_bleu_if_there_is_a_test_set(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours", seed=7)
    some = tiny_texts(7, seed=5)
    lines = [f"{source}\t{target}\n" for source, target in zip(some, translate(bundle, some), strict=True)]
    (tmp_path / "test.fr-en.tsv").write_text("".join(line for line in lines if line[-2] != "\t"), encoding="utf-8")
    parity = export(bundle, tmp_path / "ct2", "ctranslate2", test=str(tmp_path / "test.fr-en.tsv"))
    assert parity.bleu_difference == 0
    assert parity.bleu is not None
    assert parity.bleu > 30
    written = json.loads((tmp_path / "ct2" / "parity.json").read_text(encoding="utf-8"))
    assert written["format"] == "ctranslate2"
    assert written["token_agreement"] == parity.token_agreement
    assert written["bleu"] == parity.bleu
    assert written["largest_logit_difference"] < 1e-3


@pytest.mark.parametrize("format", ["marian", "ctranslate2"])
def test_an_export_that_does_something_else_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Any
) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours")
    other = state_to_weights(tiny_model(tiny_config(), seed=2))
    if format == "marian":
        known = marian_export.to_marian
        monkeypatch.setattr(marian_export, "to_marian", lambda weights, config: known(other, config))
    else:
        make_spec = ctranslate2_export.make_spec
        monkeypatch.setattr(
            ctranslate2_export, "make_spec", lambda config, weights, *rest: make_spec(config, other, *rest)
        )
    with pytest.raises(BundleError, match=f"as {format} this model writes .* % of the pieces .*: nothing was exported"):
        export(bundle, tmp_path / "out", format)
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def parity_of(**changes: Any) -> Parity:
    same = {"num_sentences": 3, "num_pieces": 7, "token_agreement": 1.0, "largest_logit_difference": 0.0}
    return Parity(**{**same, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"largest_logit_difference": 0.5}, "as onnx this model's logits differ by 0.5, expected at most 0.01"),
        ({"largest_logit_difference": float("nan")}, "as onnx this model's logits differ by nan"),
        ({"tokenizer_agreement": 0.5}, "as onnx 50.0 % of ordinary sentences are cut into the pieces that they are"),
        ({"token_agreement": 0.5}, "as onnx this model writes 50.0 % of the pieces that it writes here, expected 99 %"),
    ],
)
def test_each_threshold_has_its_line(changes: dict[str, Any], message: str) -> None:
    check(parity_of(), Threshold(), "onnx")
    with pytest.raises(BundleError) as caught:
        check(parity_of(**changes), Threshold(), "onnx")
    assert message in str(caught.value)


def test_mistakes_are_told_before_anything_is_written(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours")
    with pytest.raises(ConfigError, match="unknown format 'onxx': did you mean 'onnx'"):
        export(bundle, tmp_path / "out", "onxx")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="quantization int8 is for --format ctranslate2: onnx does not take it"):
        export(bundle, tmp_path / "out", "onnx", quantization="int8")
    with pytest.raises(BundleError, match="ours is there already: give a new folder with --output"):
        export(bundle, tmp_path / "ours", "ctranslate2")
    (tmp_path / "empty.fr-en.tsv").write_text("one column\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"empty.fr-en.tsv:1: one column, expected source<TAB>target"):
        export(bundle, tmp_path / "out", "ctranslate2", test=str(tmp_path / "empty.fr-en.tsv"))
    assert not (tmp_path / "out").exists()


def test_onnx_writes_the_same_in_batches_too(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "ours", encoder_layers=1, decoder_layers=2, d_v=7)
    parity = export(bundle, tmp_path / "onnx", "onnx")
    assert parity.token_agreement == 1.0
    assert parity.largest_logit_difference < 1e-3
    import onnxruntime

    encoder, decoder = (
        onnxruntime.InferenceSession(str(tmp_path / "onnx" / f"{one}.onnx")) for one in ("encoder", "decoder")
    )
    source = np.random.default_rng(1).integers(3, 331, (3, 7))
    source[1, 4:] = bundle.model_config.padding_id
    mask, memory_keys, memory_values = encoder.run(None, {"source": source})
    keys, values = np.zeros((2, 3, 2, 0, 11), np.float32), np.zeros((2, 3, 2, 0, 7), np.float32)
    target = np.random.default_rng(2).integers(3, 331, (3, 5))
    rows = []
    for last in target.T:
        inputs = {"last": last, "mask": mask, "memory_keys": memory_keys, "memory_values": memory_values}
        logits, keys, values = decoder.run(None, {**inputs, "keys": keys, "values": values})
        rows.append(logits)
    with torch.no_grad():
        expected = bundle.load_model()(torch.from_numpy(source), torch.from_numpy(target))
    np.testing.assert_allclose(np.stack(rows, axis=1), expected.numpy(), atol=1e-3)


def test_a_model_folder_of_half_the_size_does_the_same_and_keeps_its_card(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / "model", known_words=KnownWords.collect([("le chat", "the cat")]))
    parity = export(bundle, tmp_path / "half", "dragoman", quantization="float16")
    half = Bundle.open(tmp_path / "half")
    assert half.known_words == bundle.known_words
    assert half.dtype == "float16"
    assert half.weights_bytes < 0.6 * bundle.weights_bytes
    assert (half.path / "README.md").read_text() == (bundle.path / "README.md").read_text()
    assert half.scorecard == bundle.scorecard
    assert parity.token_agreement > 0.97
    assert 0 < parity.largest_logit_difference < 0.2
