"""An imported model is the same model: transformers' own MarianMT says what it must do."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import dragoman
from dragoman.bundle import Bundle
from dragoman.engine.auto import open_engine
from dragoman.engine.engine import DecodeOptions
from dragoman.engine.torch_engine import TorchEngine
from dragoman.errors import BundleError, ConfigError
from dragoman.interop.marian_import import import_marian
from dragoman.recipe import SearchConfig
from interop.marian_models import texts, write_marian

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

SHAPES: dict[str, dict[str, Any]] = {
    "swish": {},
    "relu, not scaled": {"activation_function": "relu", "scale_embedding": False},
    "gelu, two matrices": {"activation_function": "gelu", "share_encoder_decoder_embeddings": False},
    "two vocabularies": {"separate": True},
    "two vocabularies, not scaled": {"separate": True, "scale_embedding": False, "encoder_layers": 1},
    "language tags": {"languages": ("en", "de")},
    "one layer, one head": {"decoder_layers": 1, "encoder_attention_heads": 1, "decoder_attention_heads": 1},
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))


def sources_of(folder: Path, some: list[str]) -> transformers.BatchEncoding:
    return transformers.MarianTokenizer.from_pretrained(folder)(some, return_tensors="pt", padding=True)


def own_ids(bundle: Bundle, some: list[str]) -> list[list[int]]:
    return [[*ids, bundle.tokenizer.end_id] for ids in bundle.tokenizer.ids_batch(some)]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_the_logits_are_those_of_transformers(tmp_path: Path, shape: dict[str, Any]) -> None:
    model = write_marian(tmp_path / "marian", **shape)
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    config = bundle.model_config
    batch = sources_of(tmp_path / "marian", texts(7, seed=3))
    target = torch.randint(config.vocab_size, (7, 13))
    with torch.no_grad():
        theirs = model(**batch, decoder_input_ids=target).logits
        ours = bundle.load_model()(batch.input_ids, target)
    assert theirs.std() > 1
    written = [id for id in range(config.vocab_size) if id != config.padding_id]
    torch.testing.assert_close(ours[..., written], theirs[..., written], rtol=0, atol=1e-4)
    # The padding, which is never written, has no share of the probability, as in Marian itself.
    assert ours[..., config.padding_id].max() < -9000


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_searching_finds_what_transformers_finds(tmp_path: Path, shape: dict[str, Any]) -> None:
    model = write_marian(tmp_path / "marian", **shape)
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    some = texts(31, seed=5)
    batch, end, padding = sources_of(tmp_path / "marian", some), bundle.tokenizer.end_id, bundle.tokenizer.padding_id
    engine = TorchEngine(bundle.load_model())
    for beam in (1, 3):
        # Without a length penalty the two rank alike, and neither stops before the likeliest has ended.
        found = model.generate(
            **batch,
            num_beams=beam,
            length_penalty=0.0,
            max_length=bundle.model_config.max_length,
            forced_eos_token_id=None,
        )
        theirs = [[id for id in row[1:] if id not in (end, padding)] for row in found.tolist()]
        search = SearchConfig(beam=beam, length_penalty=0.0, extra_length=1000)
        ours = engine.translate_ids(own_ids(bundle, some), DecodeOptions(search=search))
        assert [list(one[0].ids) for one in ours] == theirs


@pytest.mark.parametrize("separate", [False, True])
def test_text_becomes_the_ids_of_transformers_and_back(tmp_path: Path, separate: bool) -> None:
    write_marian(tmp_path / "marian", separate=separate)
    tokenizer = import_marian(tmp_path / "marian", tmp_path / "ours").tokenizer
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path / "marian")
    some = [*texts(53, seed=9), "", "  Ba   ce ", "字 unknown ☃", "Ba\tce\u00a0di", "▁", "l'eau, 17 2024,"]
    assert own_ids_of(tokenizer, some) == theirs(some).input_ids
    targets = theirs(text_target=some).input_ids
    assert own_ids_of(tokenizer.target_side, some) == targets
    decoded = [theirs.decode(ids, skip_special_tokens=True, use_source_tokenizer=False) for ids in targets]
    assert [tokenizer.target_side.decode(ids) for ids in targets] == decoded


def own_ids_of(tokenizer: dragoman.text.tokenizer.Tokenizer, some: list[str]) -> list[list[int]]:
    return [[*ids, tokenizer.end_id] for ids in tokenizer.ids_batch(some)]


def test_the_engines_agree_on_500_sentences(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian", share_encoder_decoder_embeddings=False, pull=5.0)
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    sources = own_ids(bundle, texts(500, seed=11))
    options = DecodeOptions(search=SearchConfig(extra_length=3))
    exact = open_engine(bundle, "torch").translate_ids(sources, options)
    fast = open_engine(bundle, "ctranslate2", "float32", 1).translate_ids(sources, options)
    assert len({one[0].ids for one in exact}) > 149
    # Random weights find several translations about equally good; `ctranslate2_search` says what may differ then.
    assert sum(ours[0].ids == theirs[0].ids for ours, theirs in zip(exact, fast, strict=True)) >= 498


def test_two_vocabularies_run_on_both_engines(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian", separate=True)
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    assert bundle.model_config.num_source_pieces != bundle.model_config.vocab_size
    some = texts(17, seed=2)
    exact, fast = (
        dragoman.load(tmp_path / "ours", engine=engine, compute_type="float32").translate(
            some, align=True, guards=False
        )
        for engine in ("torch", "ctranslate2")
    )
    assert [one.text for one in fast] == [one.text for one in exact]


def test_settings_come_along(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    config = bundle.model_config
    assert bundle.directions == ("fr-en",)
    assert (bundle.search.beam, bundle.search.length_penalty) == (3, 1.0)
    assert (config.position, config.activation, config.norm_order) == ("sinusoid-halves", "swish", "post")
    assert (config.begin_id, config.padding_id, config.end_id) == (config.vocab_size - 1, config.vocab_size - 1, 0)
    assert config.max_length == 67
    assert "length^1, here it is ((5 + length) / 6)^1" in (tmp_path / "ours" / "README.md").read_text(encoding="utf-8")


def test_the_target_language_is_asked_for_by_its_tag(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian", languages=("en", "pt_BR"))
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    assert bundle.directions == ("fr-en", "fr-pt_BR")
    assert bundle.tokenizer.piece(bundle.tokenizer.language_id("pt_BR")) == ">>pt_BR<<"
    # A tag in the text itself is text.
    assert not bundle.tokenizer.special_ids & set(bundle.tokenizer.ids_batch([">>en<< Ba"])[0][:-1]) - {1}
    with pytest.raises(ConfigError, match="does not know the target language 'it': known are en, pt_BR"):
        bundle.tokenizer.language_id("it")
    translator = dragoman.load(tmp_path / "ours", engine="torch")
    assert translator.translate("Bace di.", target="en") != translator.translate("Bace di.", target="pt_BR")


def test_a_model_without_languages_is_told_them(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    (tmp_path / "marian" / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match="marian does not say which languages it translates: give --languages"):
        import_marian(tmp_path / "marian", tmp_path / "ours")
    with pytest.raises(ConfigError, match="languages is 'fr', expected source-target, say fr-en"):
        import_marian(tmp_path / "marian", tmp_path / "ours", directions=["fr"])
    assert import_marian(tmp_path / "marian", tmp_path / "ours", directions=["it-en"]).directions == ("it-en",)
    (tmp_path / "marian").rename(tmp_path / "opus-mt-tc-big-fr-de")
    assert import_marian(tmp_path / "opus-mt-tc-big-fr-de", tmp_path / "named").directions == ("fr-de",)


def test_a_language_without_a_tag_among_some_with_one_is_refused(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian", languages=("en", "de"))
    with pytest.raises(ConfigError, match="has no tag >>it<<, but one for en: leave out it"):
        import_marian(tmp_path / "marian", tmp_path / "ours", directions=["fr-en", "fr-it"])


def test_single_pieces_that_are_forbidden_are_never_written(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    change(tmp_path / "marian" / "generation_config.json", bad_words_ids=[[3], [5]])
    bundle = import_marian(tmp_path / "marian", tmp_path / "ours")
    bias_V = bundle.weights()["output_bias_V"]
    assert (bias_V < -9000).nonzero()[0].tolist() == [3, 5, bundle.tokenizer.padding_id]


def change(file: Path, **values: Any) -> None:
    contents = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**contents, **values}), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "bart"}, "is a model of type 'bart', expected 'marian'"),
        ({"normalize_before": True}, "has normalize_before true, which makes it a model that we do not have"),
        ({"static_position_embeddings": False}, "has static_position_embeddings false"),
        ({"activation_function": "gelu_new"}, "has the activation 'gelu_new', we have gelu, relu, silu, swish"),
        ({"decoder_ffn_dim": 41}, "has encoder_ffn_dim 37 and decoder_ffn_dim 41"),
        ({"decoder_attention_heads": 1}, "has encoder_attention_heads 2 and decoder_attention_heads 1"),
        ({"d_model": None}, "has d_model None, expected a whole number"),
        ({"encoder_layers": 0}, "cannot be expressed here: encoder_layers is 0, expected at least 1"),
        ({"decoder_vocab_size": 19}, "decoder_vocab_size 19 is not vocab_size"),
        ({"d_model": 26}, "of shape .*, its config calls for"),
        ({"encoder_layers": 3}, "lacks the weight 'model.encoder.layers.2"),
        ({"encoder_layers": 1}, "has the weight 'model.encoder.layers.1.* does not have"),
        ({"share_encoder_decoder_embeddings": False}, "lacks the weight 'model.decoder.embed_tokens.weight'"),
    ],
)
def test_what_cannot_be_expressed_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_marian(tmp_path / "marian")
    change(tmp_path / "marian" / "config.json", **changes)
    with pytest.raises(BundleError, match=message):
        import_marian(tmp_path / "marian", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bad_words_ids": [[3, 5]]}, r"forbids the pieces \[3, 5\] in a row"),
        ({"bad_words_ids": [[10**6]]}, "forbids the piece 1000000, outside"),
        ({"eos_token_id": [0, 2]}, r"ends sentences with any of \[0, 2\]: our models have one end piece"),
    ],
)
def test_generation_settings_that_cannot_be_kept_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_marian(tmp_path / "marian")
    change(tmp_path / "marian" / "generation_config.json", **changes)
    with pytest.raises(BundleError, match=message):
        import_marian(tmp_path / "marian", tmp_path / "ours")


def test_nothing_is_written_over(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    with pytest.raises(BundleError, match="is there already: give a new or empty folder with --output"):
        import_marian(tmp_path / "marian", tmp_path / "marian")
    with pytest.raises(BundleError, match=r"there is no folder .*none: give that of a transformers Marian model"):
        import_marian(tmp_path / "none", tmp_path / "ours")
