"""Files from elsewhere are read with suspicion: truncated, renamed or malicious ones end in a line, not in a mess."""

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from dragoman.errors import BundleError
from dragoman.interop.checkpoint_file import read_checkpoint, read_pickle, read_safetensors
from dragoman.interop.marian_import import import_marian
from interop.marian_models import spm_model, write_marian


class Bomb:
    """What runs when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_weights_of_every_precision_are_read(tmp_path: Path) -> None:
    wanted = torch.randn(7, 5)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        safetensors.torch.save_file({"one": wanted.to(dtype)}, tmp_path / "one.safetensors")
        read = read_safetensors(tmp_path / "one.safetensors")["one"]
        assert read.dtype == np.float32
        torch.testing.assert_close(torch.from_numpy(read), wanted.to(dtype).float(), rtol=0, atol=1e-7)


def test_a_pickle_is_read_only_if_allowed_and_then_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_marian(tmp_path / "safe")
    write_marian(tmp_path / "pickled", pickled=True)
    with pytest.raises(BundleError, match=r"a pickle, and pickles can run programs: .* give --allow-pickle"):
        import_marian(tmp_path / "pickled", tmp_path / "ours")
    bundle = import_marian(tmp_path / "pickled", tmp_path / "ours", allow_pickle=True)
    assert "reading the pickle pytorch_model.bin, as weights only" in caplog.text
    assert bundle.weights_hash() == import_marian(tmp_path / "safe", tmp_path / "other").weights_hash()


def test_a_pickle_that_would_run_a_program_does_not(tmp_path: Path) -> None:
    for file in ("new.bin", "old.bin"):
        contents = {"weight": torch.zeros(3), "other": Bomb(tmp_path / "exploded")}
        torch.save(contents, tmp_path / file, _use_new_zipfile_serialization=file == "new.bin")
        with pytest.raises(BundleError, match="holds something else than weights, or is damaged, and is not read"):
            read_pickle(tmp_path / file)
    (tmp_path / "plain.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    with pytest.raises(BundleError, match="holds something else than weights"):
        read_pickle(tmp_path / "plain.bin")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ([1, 2], "holds a list, expected weights by name"),
        ({"one": "text"}, "holds 'one', which is not a weight"),
        ({"one": torch.zeros(3, dtype=torch.int64)}, "holds 'one', which is not a weight"),
        ({"one": torch.tensor([float("nan")])}, "has the weight 'one' with values that are no numbers"),
    ],
)
def test_a_pickle_without_weights_is_refused(tmp_path: Path, contents: object, message: str) -> None:
    torch.save(contents, tmp_path / "one.bin")
    with pytest.raises(BundleError, match=message):
        read_pickle(tmp_path / "one.bin")


def header(length: int, contents: bytes = b"") -> bytes:
    return struct.pack("<Q", length) + contents


OUTSIDE = json.dumps({"one": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04cnothing of the kind",
        header(2**62),
        header(10**9, b"{}"),
        header(10, b"[1, 2, 3]]"),
        header(len(OUTSIDE), OUTSIDE),
    ],
    ids=["empty", "a pickle", "a huge header", "a header beyond the end", "another JSON", "data beyond the end"],
)
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(BundleError, match="is not a whole safetensors file"):
        read_checkpoint(tmp_path)


def test_whole_numbers_and_infinities_are_no_weights(tmp_path: Path) -> None:
    safetensors.torch.save_file({"one": torch.zeros(3, dtype=torch.int32)}, tmp_path / "one.safetensors")
    with pytest.raises(BundleError, match="has the weight 'one' in I32, expected floating-point numbers"):
        read_safetensors(tmp_path / "one.safetensors")
    safetensors.torch.save_file({"one": torch.tensor([float("inf")])}, tmp_path / "one.safetensors")
    with pytest.raises(BundleError, match="has the weight 'one' with values that are no numbers"):
        read_safetensors(tmp_path / "one.safetensors")


def test_folders_without_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"has neither model.safetensors nor pytorch_model.bin"):
        read_checkpoint(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BundleError, match=r"has its weights in several files: save it as one model.safetensors"):
        read_checkpoint(tmp_path)


@pytest.fixture
def marian(tmp_path: Path) -> Path:
    write_marian(tmp_path / "marian")
    return tmp_path / "marian"


def refusal(folder: Path) -> str:
    with pytest.raises(BundleError) as caught:
        import_marian(folder, folder.parent / "ours", allow_pickle=True)
    assert not (folder.parent / "ours").exists()
    return str(caught.value)


@pytest.mark.parametrize("name", ["../../outside", "/etc/outside", "model.encoder.layers.0.fc9.weight"])
def test_a_weight_of_another_name_is_refused_whatever_the_name(marian: Path, name: str) -> None:
    weights = safetensors.torch.load_file(marian / "model.safetensors")
    safetensors.torch.save_file({**weights, name: torch.zeros(3)}, marian / "model.safetensors")
    assert f"has the weight {name!r}, which a Marian model of its config does not have" in refusal(marian)


def test_matrices_that_should_be_one_are_compared(marian: Path) -> None:
    weights = safetensors.torch.load_file(marian / "model.safetensors")
    (name,) = (name for name in weights if name in ("model.shared.weight", "lm_head.weight"))
    other = {"model.decoder.embed_tokens.weight": weights[name] + 1}
    safetensors.torch.save_file({**weights, **other}, marian / "model.safetensors")
    assert "and another in 'model.decoder.embed_tokens.weight': ours are one and the same" in refusal(marian)


@pytest.mark.parametrize("name", ["config.json", "source.spm", "target.spm", "vocab.json", "model.safetensors"])
def test_a_truncated_file_is_refused(marian: Path, name: str) -> None:
    data = (marian / name).read_bytes()
    (marian / name).write_bytes(data[: len(data) // 2])
    assert name in refusal(marian)


@pytest.mark.parametrize("name", ["config.json", "source.spm", "target.spm", "vocab.json", "model.safetensors"])
def test_a_missing_or_renamed_file_is_refused(marian: Path, name: str) -> None:
    (marian / name).rename(marian / f"other-{name}")
    assert name in refusal(marian)


def test_files_in_each_others_place_are_refused(marian: Path) -> None:
    (marian / "source.spm").write_bytes((marian / "model.safetensors").read_bytes())
    assert "source.spm is not a SentencePiece model" in refusal(marian)


def test_pieces_of_another_model_are_refused(marian: Path) -> None:
    kept = ("</s>", "<unk>", "<pad>")
    strange = {piece if piece in kept else f"{piece}x": id for id, piece in enumerate(pieces(marian))}
    (marian / "vocab.json").write_text(json.dumps(strange), encoding="utf-8")
    assert "% of the pieces of" in refusal(marian)


def pieces(folder: Path) -> list[str]:
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    return sorted(vocabulary, key=vocabulary.__getitem__)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        ([1, 2], "does not give each piece a whole number"),
        ({"</s>": 0, "<unk>": "1"}, "does not give each piece a whole number"),
        ({"</s>": 0, "<unk>": 2}, "has 2 pieces, whose ids are not 0 to 1"),
        ({"</s>": 0, "<unk>": 1, "<pad>": 2}, "has 3 pieces, config.json says"),
    ],
)
def test_a_vocabulary_that_is_none_or_of_another_size_is_refused(marian: Path, vocabulary: Any, message: str) -> None:
    (marian / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    assert message in refusal(marian)


def test_special_pieces_must_be_where_the_config_says(marian: Path) -> None:
    settings = {"source_lang": "fr", "target_lang": "en", "eos_token": "▁"}
    (marian / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    assert "calls its eos_token '▁', which is not the piece 0 of its vocabulary" in refusal(marian)
    (marian / "tokenizer_config.json").write_text(json.dumps({**settings, "eos_token": None, "unk_token": "?"}))
    assert "has no piece '?' on its source side, the unk_token of its config" in refusal(marian)


def test_a_settings_file_of_absurd_size_or_depth_is_refused(marian: Path) -> None:
    (marian / "generation_config.json").write_text("[" * 100_000, encoding="utf-8")
    assert "generation_config.json is not JSON" in refusal(marian)
    with (marian / "generation_config.json").open("wb") as file:
        file.truncate(1 << 30)
    assert "generation_config.json has 1,073,741,824 bytes, expected at most" in refusal(marian)


def test_a_sentencepiece_model_of_no_pieces_is_refused(marian: Path) -> None:
    (marian / "target.spm").write_bytes(b"")
    assert "target.spm is not a SentencePiece model" in refusal(marian)
    (marian / "target.spm").write_bytes(spm_model(2, 113))
    assert import_marian(marian, marian.parent / "ours").directions == ("fr-en",)
