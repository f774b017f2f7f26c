"""Text to pieces and back: nothing lost, nothing special in raw text, one file that is the same every time."""

import itertools
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import BundleError, ConfigError, DataError
from dragoman.recipe import TokenizerConfig
from dragoman.text.learning import LARGEST_VOCABULARY, choose_alphabet, choose_vocab_size, draw_sample
from dragoman.text.tokenizer import Encoded, Tokenizer

SUBJECTS = ["le chat", "un oiseau", "l'homme", "la vieille dame", "the cat", "a bird", "the man", "die Katze"]
VERBS = ["regarde", "n'aime pas", "appelle", "watches", "doesn't like", "calls", "sieht", "mag"]
ENDS = ["la mer.", "le 23 août !", "the sea (again).", "“home”?", "das Meer; 1947", "l'été", "aujourd'hui…"]


def sentences(count: int, seed: int = 5) -> list[str]:
    draw = random.Random(seed)
    return [f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(ENDS)}" for _ in range(count)]


def learned(kind: str = "bpe", **settings: object) -> Tokenizer:
    config = TokenizerConfig(kind=kind, vocab_size=431, **settings)  # type: ignore[arg-type]
    return Tokenizer.learn(sentences(499), config, ["fr", "en", "pt-BR"])


BPE, UNIGRAM, WORD, LOWERCASE = learned(), learned("unigram"), learned("word"), learned(lowercase=True)
ANY_KIND = pytest.mark.parametrize(
    "tokenizer", [BPE, UNIGRAM, WORD, LOWERCASE], ids=["bpe", "unigram", "word", "lowercase"]
)

# Letters of the data among everything else, so that words, spaces, marks and accents meet.
SPICED = st.one_of(
    st.text(),
    st.text(alphabet=" \t\n▁aehlt'’.1é\u0301\u0323\u200d\u2028\u00a0\x00\ufdd0\ufeff👩👧猫שЯİǰJ\u030cΣ<>/sp0x2"),
    st.lists(st.sampled_from([*sentences(7), "</s>", "<0x41>", "<2en>", " ", "▁", "e\u0301"])).map("".join),
)


@ANY_KIND
@given(text=SPICED)
@example(text="▁ ▁▁a\u2581")
@example(text="J\u030c")
@example(text="a\u0301\u0323 \u0344")
def test_decoding_gives_back_the_normalised_text(tokenizer: Tokenizer, text: str) -> None:
    normal = tokenizer.normalize(text)
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == normal
    assert tokenizer.normalize(normal) == normal
    assert not tokenizer.special_ids & set(ids)


@ANY_KIND
@given(texts=st.lists(SPICED, max_size=5))
def test_the_fast_path_gives_the_ids_of_the_plain_one(tokenizer: Tokenizer, texts: list[str]) -> None:
    assert tokenizer.ids_batch(texts) == [encoded.ids for encoded in tokenizer.encode_batch(texts)]


@ANY_KIND
@given(text=SPICED)
def test_spans_stay_inside_the_text_in_its_order_and_miss_no_visible_character(tokenizer: Tokenizer, text: str) -> None:
    spans = tokenizer.encode(text).spans
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    covered = {place for start, end in spans for place in range(start, end)}
    for place, character in enumerate(text):
        if character.isalnum():
            assert place in covered, (text, spans)


def test_a_span_is_what_the_piece_says_in_the_text_as_given() -> None:
    text = "  Le chat\t\tregarde:  (le 23 aou\u0302t) "
    encoded = BPE.encode(text)
    for id, (start, end) in zip(encoded.ids, encoded.spans, strict=True):
        if id not in BPE.byte_ids:
            assert BPE.normalize(text[start:end]) == BPE.piece(id).removeprefix("▁")
    assert text[slice(*encoded.spans[-2])] == "aou\u0302t"


def test_bytes_of_one_character_share_its_span() -> None:
    encoded = BPE.encode("a 猫")
    assert BPE.pieces(encoded.ids)[-3:] == ["<0xE7>", "<0x8C>", "<0xAB>"]
    assert encoded.spans[-3:] == [(2, 3)] * 3


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  a \t b\n", "a b"),
        ("a\u2028b\u00a0c\u3000d", "a b c d"),
        ("e\u0301", "é"),
        ("a\x00b\x1bc\x7f", "abc"),
        ("A ▁ B", "A ▁ B"),
        ("\ufdd0", ""),
        ("half \ud83d pair", "half \ufffd pair"),
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert BPE.normalize(text) == normal
    assert LOWERCASE.normalize(text) == normal.lower()
    assert BPE.decode(BPE.encode(text).ids) == normal


def test_special_pieces_come_first_then_tags_then_bytes() -> None:
    first = BPE.pieces(range(16))
    assert first[:4] == ["<pad>", "<s>", "</s>", "<ph0>"]
    assert first[10:] == ["<ph7>", "<2fr>", "<2en>", "<2pt-BR>", "<0x00>", "<0x01>"]
    assert (BPE.padding_id, BPE.begin_id, BPE.end_id) == (0, 1, 2)
    assert list(BPE.placeholder_ids) == list(range(3, 11))
    assert BPE.special_ids == frozenset(range(14))
    assert BPE.byte_ids == frozenset(range(14, 14 + 256))
    assert BPE.id("<0xFF>") == max(BPE.byte_ids)
    assert BPE.languages == ("fr", "en", "pt-BR")
    assert BPE.language_id("en") == 12


@ANY_KIND
@pytest.mark.parametrize("text", ["</s>", "<pad> <s>", "<0x41>", "<2en>", "<ph3>", "x<s>y"])
def test_raw_text_is_never_a_special_piece(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text).ids
    assert not tokenizer.special_ids & set(ids)
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_text_full_of_special_names_learns_none_of_them(kind: str) -> None:
    texts = ["<s> </s> <0x41> <2en> <pad>"] * 31
    tokenizer = Tokenizer.learn(texts, TokenizerConfig(kind=kind, vocab_size=331), ["en"])  # type: ignore[arg-type]
    assert not tokenizer.special_ids & set(tokenizer.encode(texts[0]).ids)
    assert tokenizer.decode(tokenizer.encode(texts[0]).ids) == texts[0]


def test_specials_are_skipped_in_decoding() -> None:
    ids = BPE.encode("the cat").ids
    assert BPE.decode([BPE.language_id("en"), 1, *ids, 4, 2, 0, 0]) == "the cat"


def test_punctuation_and_digits_stand_alone_and_apostrophes_stay_in_their_word() -> None:
    assert BPE.pre_tokens("l'homme") == ["▁l'homme"]
    assert BPE.pre_tokens("(1947)...") == ["▁(", "1", "9", "4", "7", ")", ".", ".", "."]
    assert BPE.pre_tokens("'tis") == ["▁'", "tis"]
    assert BPE.pre_tokens("n°5") == ["▁n", "°", "5"]


def test_bytes_that_are_no_text_become_a_replacement_character() -> None:
    broken = [BPE.id("<0xE7>"), BPE.id("<0x8C>")]
    assert BPE.decode([*BPE.encode("the").ids, *broken, *BPE.encode("cat").ids]) == "the\ufffd cat"
    assert BPE.decode([BPE.id("<0xFF>")]) == "\ufffd"


@ANY_KIND
@given(text=SPICED)
def test_a_partial_decoding_only_ever_grows(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text).ids
    shown = ""
    for count in range(len(ids) + 1):
        longer = tokenizer.decode(ids[:count], partial=True)
        assert longer.startswith(shown)
        shown = longer
    assert shown == tokenizer.normalize(text)


@ANY_KIND
@given(text=SPICED)
def test_words_are_those_that_whitespace_separates(tokenizer: Tokenizer, text: str) -> None:
    encoded = tokenizer.encode(text)
    groups = tokenizer.words(encoded)
    written = [tokenizer.decode([encoded.ids[place] for place in group]) for group in groups]
    assert written == tokenizer.normalize(text).split()
    assert [place for group in groups for place in group] == list(range(len(encoded.ids)))


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_the_same_text_gives_the_same_file(kind: str) -> None:
    assert len({learned(kind).file for _ in range(3)}) == 1


def test_the_same_text_gives_the_same_file_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\n".join(sentences(499)))
    program = (
        "import sys; from dragoman.text.tokenizer import Tokenizer, TokenizerConfig;"
        "texts = open(sys.argv[1]).read().split('\\n');"
        "print(Tokenizer.learn(texts, TokenizerConfig(vocab_size=431), ['fr', 'en', 'pt-BR']).fingerprint())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "text")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == BPE.fingerprint()


@ANY_KIND
def test_what_is_saved_is_what_is_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    again = Tokenizer.load(path)
    assert again.fingerprint() == tokenizer.fingerprint()
    assert (again.languages, again.lowercase) == (tokenizer.languages, tokenizer.lowercase)
    assert again.ids_batch(sentences(17)) == tokenizer.ids_batch(sentences(17))
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@ANY_KIND
def test_the_plain_library_opens_the_file_and_agrees(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    plain = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in [*sentences(17), "猫 ▁ é </s>", " l'été\t👩‍👧"]:
        ids = plain.encode(text).ids
        assert ids == tokenizer.encode(text).ids
        assert plain.decode(ids) == tokenizer.normalize(text)


def test_a_damaged_file_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(BundleError, match=r"cannot read the tokenizer .*tokenizer.json: No such file"):
        Tokenizer.load(path)
    path.write_bytes(BPE.file[:-97])
    with pytest.raises(BundleError, match=r"tokenizer.json is damaged: .*: copy or train the model again"):
        Tokenizer.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BundleError, match=r"tokenizer.json is damaged"):
        Tokenizer.load(path)


def test_a_file_that_others_made_is_refused() -> None:
    settings = json.loads(BPE.file)
    settings["model"] = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}
    with pytest.raises(BundleError, match="the tokenizer is not a tokenizer of dragoman: its first pieces are a, b"):
        Tokenizer(json.dumps(settings).encode())
    for part, other in (("normalizer", None), ("pre_tokenizer", {"type": "Whitespace"}), ("decoder", {"type": "Fuse"})):
        settings = json.loads(BPE.file) | {part: other}
        with pytest.raises(BundleError, match=f"has a {part} that this version does not know: upgrade dragoman"):
            Tokenizer(json.dumps(settings).encode())


def test_vocab_size_counts_every_piece() -> None:
    assert BPE.vocab_size == 431
    assert UNIGRAM.vocab_size <= 431
    assert BPE.piece(430) in json.loads(BPE.file)["model"]["vocab"]


def test_vocab_size_is_chosen_from_the_data() -> None:
    short, medium, long = (choose_vocab_size(count, 269) for count in (100_000, 10_650_000, 10**9))
    assert 700 < short < 1500
    assert 7_500 < medium < 8_500
    assert long == LARGEST_VOCABULARY
    tokenizer = Tokenizer.learn(sentences(499), TokenizerConfig())
    assert tokenizer.vocab_size <= choose_vocab_size(sum(map(len, sentences(499))), 267)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_pieces_can_be_learned_from_next_to_nothing(kind: str) -> None:
    tokenizer = Tokenizer.learn(["¿"], TokenizerConfig(kind=kind))  # type: ignore[arg-type]
    assert tokenizer.decode(tokenizer.encode("¿ què?").ids) == "¿ què?"


@given(st.integers(0, 10**10), st.integers(0, 300))
def test_a_larger_corpus_never_has_a_smaller_vocabulary(num_characters: int, num_reserved: int) -> None:
    size = choose_vocab_size(num_characters, num_reserved)
    assert choose_vocab_size(num_characters * 2, num_reserved) >= size
    assert size % 64 == 0


def test_rare_characters_are_left_to_the_bytes() -> None:
    counts = Counter({"a": 5_000_000, "b": 13, "é": 3, "x": 2, "▁": 99, " ": 1})
    assert choose_alphabet(counts, 7) == {"a", "b", "é", "x", " "}
    assert choose_alphabet(counts + Counter(a=1_000_000), 7) == {"a", "b", "é", " "}
    assert choose_alphabet(counts, 2) == {"a", "b", " "}
    tokenizer = Tokenizer.learn([*sentences(97), "¿"], TokenizerConfig(vocab_size=401))
    assert BPE.byte_ids & set(tokenizer.encode("¿").ids)


def test_a_sample_is_the_same_every_time_and_no_larger_than_asked() -> None:
    texts = [str(number) for number in range(997)]
    first, second = (draw_sample(iter(texts), lowercase=False, most=101) for _ in range(2))
    assert first == second
    assert len(set(first.texts)) == 101
    assert first.num_characters == sum(map(len, texts))
    assert any(int(text) > 101 for text in first.texts)


def test_threads_may_share_a_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.text.tokenizer.CACHED_WORDS", 3)
    texts = sentences(211)
    expected = BPE.ids_batch(texts)
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda: results.append([BPE.ids_batch([text])[0] for text in texts])) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 5


def test_no_more_words_are_kept_than_there_is_room_for_and_no_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.text.tokenizer.CACHED_WORDS", 31)
    tokenizer = learned()
    long = "abc" * 17_001
    for text in (f"le {long} chat", long[:33], long[:32], " ".join(map(str, range(28)))):
        assert tokenizer.ids_batch([text, "le chat"])[0] == tokenizer.encode(text).ids
    assert {"le", "chat", long[:32], "27"} <= set(tokenizer._word_ids)
    assert max(map(len, tokenizer._word_ids)) == 32
    tokenizer.ids_batch([" ".join(map(str, range(997)))])
    assert len(tokenizer._word_ids) <= 31


def test_importing_needs_no_torch_and_sets_no_environment() -> None:
    program = (
        "import os, sys; before = dict(os.environ); import dragoman.text.tokenizer;"
        "assert dict(os.environ) == before; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_empty_text_has_no_pieces() -> None:
    for text in ("", " \t\n", "\x00"):
        assert BPE.encode(text) == Encoded([], [])
        assert BPE.ids_batch([text]) == [[]]
    assert BPE.decode([]) == ""


def test_mistakes_are_named() -> None:
    with pytest.raises(DataError, match="there is no text to learn pieces from: every line is empty"):
        Tokenizer.learn([" ", "\x00"], TokenizerConfig())
    with pytest.raises(
        ConfigError, match=r"vocab_size is 270, of which special pieces, .* take 268: give at least 284"
    ):
        Tokenizer.learn(["a"], TokenizerConfig(vocab_size=270), ["fr"])
    with pytest.raises(ConfigError, match=r"'f r' is not a language: write letters, digits, - and _ only"):
        Tokenizer.learn(["a"], TokenizerConfig(), ["f r"])
    with pytest.raises(ConfigError, match="languages fr, fr name one twice"):
        Tokenizer.learn(["a"], TokenizerConfig(), ["fr", "fr"])
    with pytest.raises(ConfigError, match=r"does not know the target language 'de': known are en, fr, pt-BR"):
        BPE.language_id("de")
    with pytest.raises(ConfigError, match="'de': it has no language tags"):
        Tokenizer.learn(["a b"], TokenizerConfig()).language_id("de")
    with pytest.raises(ConfigError, match="'zebra' is not among the 431 pieces"):
        BPE.id("zebra")
    with pytest.raises(ConfigError, match="these pieces were not learned by merging"):
        _ = UNIGRAM.merges


def test_words_seen_twice_are_one_piece_and_others_are_spelled() -> None:
    texts = ["the cat sees the dog.", "the dog sees a bird!", "a big cat?"]
    tokenizer = Tokenizer.learn(texts, TokenizerConfig(kind="word", vocab_size=431))
    assert tokenizer.pieces(tokenizer.encode("the dog sees the cat").ids) == ["▁the", "▁dog", "▁sees", "▁the", "▁cat"]
    assert tokenizer.pieces(tokenizer.encode("a bird").ids) == ["▁a", "▁", "b", "i", "<0x72>", "d"]
    assert tokenizer.decode(tokenizer.encode("a bird, ☃ and the cat").ids) == "a bird, ☃ and the cat"


def test_a_small_vocabulary_of_words_has_the_commonest() -> None:
    words = ["".join(letters) for size in (2, 3) for letters in itertools.product("abc", repeat=size)]
    texts = [" ".join([word] * (len(words) - rank + 2)) for rank, word in enumerate(words)]
    tokenizer = Tokenizer.learn(texts, TokenizerConfig(kind="word", vocab_size=267 + 23))
    known = [word for word in words if len(tokenizer.encode(word).ids) == 1]
    assert known == words[: 23 - len("▁abc")]
    assert tokenizer.vocab_size == 267 + 23
