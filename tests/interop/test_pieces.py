"""SentencePiece's pieces serve wherever ours do, and ours go into a SentencePiece model."""

import json
import unicodedata
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, ConfigError
from dragoman.interop.marian_import import import_marian
from dragoman.interop.parity import tokenizer_agreement
from dragoman.interop.probe_texts import PROBE_TEXTS
from dragoman.interop.sentencepiece_model import to_sentencepiece
from dragoman.recipe import TokenizerConfig
from dragoman.text.chunks import Rules, encode_pairs
from dragoman.text.corpus import Pair
from dragoman.text.merge_dropout import MergeDropout
from dragoman.text.sentencepiece_tokenizer import SentencePieceTokenizer, load_tokenizer, unpack
from dragoman.text.tokenizer import Tokenizer
from interop.marian_models import spm_model, texts, vocabulary, write_marian
from tiny_bundle import tiny_texts, write_tiny_bundle

SETTINGS = {"pad_token": "<pad>", "begin_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def make_tokenizer(languages: tuple[str, ...] = ()) -> SentencePieceTokenizer:
    source, target = spm_model(1), spm_model(2, 113)
    files = {
        "source.spm": source,
        "target.spm": target,
        "vocab.json": json.dumps(vocabulary(source, target, languages=languages)).encode(),
        "tokenizer_config.json": json.dumps({**SETTINGS, "languages": list(languages)}).encode(),
    }
    return SentencePieceTokenizer(files)


TOKENIZER = make_tokenizer(("en",))


def test_each_side_has_its_own_pieces() -> None:
    some = texts(29, seed=3)
    assert TOKENIZER.ids_batch(some) != TOKENIZER.target_side.ids_batch(some)
    assert TOKENIZER.target_side.target_side is TOKENIZER.target_side
    assert TOKENIZER.target_side.languages == ()


def test_text_comes_back_where_every_character_has_a_piece() -> None:
    for side in (TOKENIZER, TOKENIZER.target_side):
        for text in texts(53, seed=1):
            assert side.decode(side.encode(text).ids) == side.normalize(text) == text


def test_a_sentence_has_the_pieces_of_its_words() -> None:
    """A second reading (`translator/readings.py`) puts a sentence together from them."""
    for text in texts(53, seed=5):
        words = TOKENIZER.ids_batch(text.split(" "))
        assert [id for ids in words for id in ids] == TOKENIZER.ids_batch([text])[0]


@given(st.text())
def test_any_text_is_taken_and_never_becomes_a_special_piece(text: str) -> None:
    encoded = TOKENIZER.encode(text)
    assert TOKENIZER.ids_batch([text]) == [encoded.ids]
    assert not (TOKENIZER.special_ids - {TOKENIZER.unknown_id}) & set(encoded.ids)
    ends = [end for _, end in encoded.spans]
    assert ends == sorted(ends)
    assert all(0 <= start <= end <= len(text) for start, end in encoded.spans)


def test_special_pieces_in_a_text_are_text() -> None:
    assert not TOKENIZER.special_ids - {TOKENIZER.unknown_id} & set(TOKENIZER.ids_batch(["</s> <pad> >>en<<"])[0])
    assert TOKENIZER.decode([TOKENIZER.end_id, TOKENIZER.language_id("en"), TOKENIZER.padding_id]) == ""


def test_spans_and_words_are_those_of_the_text() -> None:
    text = "Bace  dià, 17 字."
    encoded = TOKENIZER.encode(text)
    words = ["".join(text[slice(*encoded.spans[place])] for place in places) for places in TOKENIZER.words(encoded)]
    assert words == ["Bace", "dià,", "17", "字."]


def test_it_travels_in_one_piece_and_does_the_same() -> None:
    again = unpack(TOKENIZER.file)
    some = texts(17, seed=4)
    assert again.fingerprint() == TOKENIZER.fingerprint()
    assert tokenizer_agreement(TOKENIZER, again, some) == 1.0
    own = Tokenizer.learn(tiny_texts(), TokenizerConfig(vocab_size=331))
    assert unpack(own.file).fingerprint() == own.fingerprint()


def test_pairs_are_encoded_by_their_sides_in_any_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.text.chunks.CHUNK_PAIRS", 7)
    pairs = [Pair(source, target, 0) for source, target in zip(texts(29, 3), texts(29, 4), strict=True)]
    rules = Rules(target_tag=None, max_length=67, max_ratio=9.0, keep_text=True)
    alone, shared = (list(encode_pairs(pairs, TOKENIZER, rules, workers)) for workers in (1, 2))
    assert alone == shared
    assert b"".join(chunk.source.text for chunk in alone).decode() == "".join(pair.source for pair in pairs)


def test_merges_cannot_be_left_out_of_them() -> None:
    with pytest.raises(ConfigError, match=r"these pieces are SentencePiece's, .* set tokenizer.dropout to 0"):
        MergeDropout(TOKENIZER, 0.1, 1)


def test_a_folder_has_pieces_of_one_kind(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "ours")
    imported = import_marian(tmp_path / "marian", tmp_path / "other")
    own = write_tiny_bundle(tmp_path / "ours")
    assert type(load_tokenizer(tmp_path / "ours")) is Tokenizer
    assert not (tmp_path / "ours" / "source.spm").exists()
    Bundle.write(
        tmp_path / "ours",
        model_config=imported.model_config,
        search=own.search,
        tokenizer=imported.tokenizer,
        weights=imported.weights(),
        directions=["fr-en"],
    )
    assert type(load_tokenizer(tmp_path / "ours")) is SentencePieceTokenizer
    assert not (tmp_path / "ours" / "tokenizer.json").exists()


def test_a_folder_that_lost_some_of_them_is_refused(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "ours")
    (tmp_path / "ours" / "target.spm").unlink()
    with pytest.raises(BundleError, match=r"ours lacks target.spm, so it is not a whole model folder"):
        Bundle.open(tmp_path / "ours")
    with pytest.raises(BundleError, match=r"ours lacks target.spm, which its pieces need"):
        load_tokenizer(tmp_path / "ours")
    with pytest.raises(BundleError, match=r"for a transformers model there is `dragoman import"):
        Bundle.open(tmp_path / "marian")


def test_a_vocabulary_of_another_size_than_the_models_is_refused(tmp_path: Path) -> None:
    write_marian(tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "ours")
    file = tmp_path / "ours" / "vocab.json"
    known = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**known, "one more": len(known)}), encoding="utf-8")
    with pytest.raises(BundleError, match=f"has {len(known) + 1} pieces, config.json says {len(known)}"):
        _ = Bundle.open(tmp_path / "ours").tokenizer


# Ours as a SentencePiece model

CORPUS = [*PROBE_TEXTS, *texts(199, seed=6), *tiny_texts(199)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_sentencepiece_cuts_ordinary_text_into_our_pieces(kind: str, lowercase: bool) -> None:
    ours = Tokenizer.learn(CORPUS, TokenizerConfig(kind=kind, vocab_size=509, lowercase=lowercase))  # type: ignore[arg-type]
    theirs = sentencepiece.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(to_sentencepiece(ours))
    spelled_out = [unicodedata.normalize("NFD", text) for text in PROBE_TEXTS]
    odd = ["", "  a \t b\u00a0c\r\n", "a\x01b\x7f", "Å ﬁ 한국어", unicodedata.normalize("NFD", "한국어 ệ"), "a\u2003b"]
    some = [*CORPUS, *spelled_out, *odd]
    assert [ours.pieces(ids) for ids in ours.ids_batch(some)] == theirs.encode(some, out_type=str)


def test_sentencepiece_spells_our_pieces_as_we_do() -> None:
    ours = Tokenizer.learn(CORPUS, TokenizerConfig(vocab_size=509))
    theirs = sentencepiece.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(to_sentencepiece(ours))
    for text in PROBE_TEXTS:
        ids = ours.ids_batch([text])[0]
        assert theirs.decode(ours.pieces(ids)) == ours.decode(ids)
