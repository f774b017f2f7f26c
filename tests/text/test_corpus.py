"""Reading parallel text: what a line is, what a pair is, and what is said where there is none."""

import gzip
import io
import json
import lzma
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError, MissingExtraError
from dragoman.recipe import CorpusConfig
from dragoman.text import lines
from dragoman.text.corpus import (
    Fault,
    Pair,
    content_hash,
    corpus_languages,
    corpus_of,
    read_pairs,
    read_records,
    spool,
)
from dragoman.text.lines import lines_of

COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}
SIDE = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r\0")).map(str.strip)


def corpus(path: Path, contents: bytes | str, **settings: Any) -> CorpusConfig:
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return CorpusConfig(path=str(path), **settings)


def aligned(folder: Path, source: bytes | str, target: bytes | str) -> CorpusConfig:
    return CorpusConfig(
        path=corpus(folder / "train.fr", source).path, target_path=corpus(folder / "train.en", target).path
    )


def sides(corpus: CorpusConfig) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_pairs(corpus)]


class Input:
    """Standard input with these bytes in it."""

    def __init__(self, contents: bytes) -> None:
        self.buffer = io.BytesIO(contents)


# ---------------------------------------------------------------------------------------------------------- lines


def test_only_newline_ends_a_line(tmp_path: Path) -> None:
    odd = "un\u2028deux\u2029trois\u0085quatre\x0bcinq\x0csix\x1csept\rhuit"
    assert sides(aligned(tmp_path, f"{odd}\nfin\n", "one\nend\n")) == [(odd, "one"), ("fin", "end")]


@given(st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=7))
def test_what_is_written_as_tsv_is_read_back(tmp_path_factory: pytest.TempPathFactory, pairs: list[Any]) -> None:
    path = tmp_path_factory.mktemp("tsv") / "pairs.tsv"
    # A byte order mark that opens a file is no text, so a sentence that opens with one is not asked of the format.
    pairs[0] = (pairs[0][0].lstrip("\ufeff").strip(), pairs[0][1])
    assert sides(corpus(path, "".join(f"{source}\t{target}\n" for source, target in pairs))) == pairs


def test_line_ends_of_windows_a_byte_order_mark_and_a_missing_last_end_change_nothing(tmp_path: Path) -> None:
    plain = sides(corpus(tmp_path / "plain.tsv", "un\tone\ndeux\ttwo\n"))
    assert sides(corpus(tmp_path / "odd.tsv", "\ufeffun\tone\r\ndeux\ttwo")) == plain


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("name", ["pairs.tsv.{}", "misnamed.tsv"])
def test_a_compressed_corpus_equals_the_plain_one(tmp_path: Path, ending: str, name: str) -> None:
    text = "".join(f"phrase {i}\tsentence {i}\n" for i in range(4999))
    packed = COMPRESS[ending](text.encode())
    assert sides(corpus(tmp_path / name.format(ending), packed)) == sides(corpus(tmp_path / "plain.tsv", text))


@pytest.mark.parametrize("ending", COMPRESS)
def test_parts_compressed_one_by_one_are_read_to_the_end(tmp_path: Path, ending: str) -> None:
    pack = COMPRESS[ending]
    assert sides(corpus(tmp_path / f"p.tsv.{ending}", pack(b"un\tone\n") + pack(b"deux\ttwo\n"))) == [
        ("un", "one"),
        ("deux", "two"),
    ]


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_truncated_file_is_not_taken_for_a_whole_one(tmp_path: Path, ending: str) -> None:
    packed = COMPRESS[ending]("".join(f"{i * 7919}\t{i * 104729}\n" for i in range(4999)).encode())
    with pytest.raises(DataError, match=r"cut\.tsv\.\w+ ends in the middle of its compressed data: copy or download"):
        list(read_pairs(corpus(tmp_path / f"cut.tsv.{ending}", packed[:-13])))


@pytest.mark.parametrize("ending", COMPRESS)
def test_damaged_compression_says_so(tmp_path: Path, ending: str) -> None:
    packed = bytearray(COMPRESS[ending]("".join(f"{i * 7919}\t{i}\n" for i in range(4999)).encode()))
    packed[6 : len(packed) // 2] = bytes(len(packed) // 2 - 6)
    with pytest.raises(DataError, match=r"bad\.\w+ cannot be read: ."):
        list(read_pairs(corpus(tmp_path / f"bad.{ending}", bytes(packed))))


def test_zstandard_that_is_not_installed_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = corpus(tmp_path / "p.tsv.zst", COMPRESS["zst"](b"un\tone\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"reading \.zst files needs zstandard: pip install .*\[train\]"):
        list(read_pairs(packed))


def test_standard_input_is_read_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = Input(COMPRESS["gz"](b"un\tone\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert sides(CorpusConfig(path="-")) == [("un", "one")]
    assert not stdin.buffer.closed


def test_a_line_that_is_typed_is_read_before_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        os.write(writing, b"un\n")
        seen: list[str] = []
        first = lines_of("-")
        waiting = threading.Thread(target=lambda: seen.append(next(first)), daemon=True)
        waiting.start()
        waiting.join(timeout=30)
        assert seen == ["un"]
        os.close(writing)
        assert list(first) == []


def test_lines_of_names_the_file_and_line_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("naïve\ncafé\n".encode() + "café\n".encode("latin-1"))
    read = lines_of(str(tmp_path / "a.txt"))
    assert [next(read), next(read)] == ["naïve", "café"]
    with pytest.raises(DataError, match=r"a\.txt:3: byte 0xe9 at byte 4 of the line is not UTF-8: .* iconv -f LATIN1"):
        next(read)


def test_a_binary_file_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"text\n\x7fELF\0\0\1\n")
    with pytest.raises(DataError, match=r"a\.bin:2: a NUL character, expected UTF-8 text: is this a binary file"):
        list(lines_of(str(tmp_path / "a.bin")))


def test_utf16_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"p\.tsv is UTF-16, expected UTF-8: convert it, say with iconv -f UTF-16"):
        list(read_pairs(corpus(tmp_path / "p.tsv", "un\tone\n".encode("utf-16"))))


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1 << 20)
    (tmp_path / "a.txt").write_bytes(b"short\n" + bytes([65]) * (1 << 20))
    with pytest.raises(DataError, match=r"a\.txt:2: a line of more than 1 MiB: is this text\?"):
        list(lines_of(str(tmp_path / "a.txt")))


def test_an_empty_text_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf")
    assert list(lines_of(str(tmp_path / "a.txt"))) == []


# ---------------------------------------------------------------------------------------------------- TSV, aligned


def test_further_columns_are_ignored_and_white_space_around_a_side_is_not_text(tmp_path: Path) -> None:
    assert sides(corpus(tmp_path / "p.tsv", " Va ! \tGo.\tCC-BY 2.0\tAnn\n")) == [("Va !", "Go.")]


def test_pairs_may_be_swapped_where_columns_are_sides(tmp_path: Path) -> None:
    swapped = corpus(tmp_path / "a.fr-en.tsv", "un\tone\tanna\n\ndeux\ttwo\n", swap=True)
    assert sides(swapped) == [("one", "un"), ("", ""), ("two", "deux")]
    assert corpus_languages(swapped) == ("en", "fr")
    assert corpus_languages(replace(swapped, languages="en-oc")) == ("en", "oc")
    with pytest.raises(DataError, match=r"train\.fr is read as two files: swap is for the columns of TSV"):
        sides(replace(aligned(tmp_path, "un\n", "one\n"), swap=True))


def test_a_pair_knows_its_line(tmp_path: Path) -> None:
    assert list(read_pairs(corpus(tmp_path / "p.tsv", "un\tone\n\ndeux\ttwo\n"))) == [
        Pair("un", "one", 1),
        Pair("", "", 2),
        Pair("deux", "two", 3),
    ]


def test_one_column_says_how_to_give_two_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"p\.tsv:2: one column, expected source<TAB>target; .* --source and --target"):
        list(read_pairs(corpus(tmp_path / "p.tsv", "un\tone\ndeux\n")))


def test_the_lenient_reader_goes_on_after_a_fault(tmp_path: Path) -> None:
    records = list(read_records(corpus(tmp_path / "p.tsv", b"deux\nca\xe9\tx\nun\tone\n")))
    assert [type(record) for record in records] == [Fault, Fault, Pair]
    assert [(r.kind, r.number, r.excerpt) for r in records if isinstance(r, Fault)] == [
        ("columns", 1, "deux"),
        ("encoding", 2, "ca\\xe9\tx"),
    ]


@pytest.mark.parametrize(("bad", "place"), [(0, r"train\.fr:2"), (1, r"train\.en:2")])
def test_invalid_utf8_names_the_side_that_has_it(tmp_path: Path, bad: int, place: str) -> None:
    texts = [b"un\ndeux\n", b"one\ntwo\n"]
    texts[bad] = b"un\n\xff\n"
    with pytest.raises(DataError, match=place + ": byte 0xff at byte 1"):
        list(read_pairs(aligned(tmp_path, *texts)))


@pytest.mark.parametrize(("num_sources", "num_targets"), [(3, 5), (5, 3), (0, 2), (2, 0), (3, 4), (4, 3)])
def test_files_of_different_lengths_are_named_with_their_counts(
    tmp_path: Path, num_sources: int, num_targets: int
) -> None:
    mismatched = aligned(tmp_path, "a\n" * num_sources, "b\n" * num_targets)
    expected = rf"^\S*train\.fr has {num_sources} lines and \S*train\.en has {num_targets}, expected as many: line i"
    with pytest.raises(DataError, match=expected):
        list(read_pairs(mismatched))
    *pairs, fault = read_records(mismatched)
    assert len(pairs) == min(num_sources, num_targets)
    assert isinstance(fault, Fault)
    assert fault.kind == "line-counts"


@pytest.mark.parametrize("name", ["p.tsv", "p.jsonl", "p.tsv.gz"])
def test_an_empty_corpus_says_what_a_corpus_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        DataError, match=r"no pairs in \S*p\.\S+, read as (TSV|JSON lines): give a file with a pair a line"
    ):
        list(read_records(corpus(tmp_path / name, b"")))


def test_a_directory_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a directory, expected a file: name the files in it"):
        list(read_pairs(CorpusConfig(path=str(tmp_path))))
    with pytest.raises(DataError, match=r"none\.tsv: no such file"):
        list(read_pairs(CorpusConfig(path=str(tmp_path / "none.tsv"))))
    with pytest.raises(DataError, match="a corpus has no path"):
        list(read_pairs(CorpusConfig()))


# ------------------------------------------------------------------------------------------------------------- TMX


def tmx(*units: str, header: str = 'srclang="fr"', before: str = "") -> str:
    return f'<?xml version="1.0"?>{before}<tmx><header {header}/><body>\n{chr(10).join(units)}\n</body></tmx>'


def unit(**segments: str) -> str:
    variants = (f'<tuv xml:lang="{tag}"><seg>{text}</seg></tuv>' for tag, text in segments.items())
    return f"<tu>{''.join(variants)}</tu>"


def test_tmx_languages_match_whatever_their_region_and_case(tmp_path: Path) -> None:
    text = tmx(
        unit(**{"EN-us": "one", "FR_ca": "un", "de": "eins"}),
        unit(**{"fr": "deux", "fr-BE": "septante", "en": "two"}),
        unit(fr="trois"),
    )
    assert list(read_pairs(corpus(tmp_path / "m.tmx", text, languages="fr-en"))) == [
        Pair("un", "one", 2),
        Pair("deux", "two", 3),
        Pair("trois", "", 4),
    ]


def test_tmx_text_is_one_line_without_the_markup_of_its_document(tmp_path: Path) -> None:
    segment = "Cliquez\n   <bpt i='1'>{\\b </bpt>ici<ept i='1'>}</ept> &amp; <hi>l\u00e0</hi><ph>%s</ph>\u2028."
    text = tmx(unit(fr=segment, en="Click"))
    assert sides(corpus(tmp_path / "m.tmx", text, languages="fr-en")) == [("Cliquez ici & là .", "Click")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tmx_tells_its_languages_and_its_encoding(tmp_path: Path, encoding: str) -> None:
    text = tmx(unit(**{"en-US": "café two", "pt-BR": "café dois"}), header='srclang="pt-br"').removeprefix(
        '<?xml version="1.0"?>'
    )
    memory = corpus(tmp_path / "memory.tmx", text.encode(encoding))
    assert corpus_languages(memory) == ("pt", "en")
    assert sides(memory) == [("café dois", "café two")]


def test_a_tmx_entity_is_refused_before_it_can_explode(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    text = tmx(unit(fr="&b;", en="ha"), before=bomb)
    with pytest.raises(DataError, match=r"m\.tmx declares the entity 'a', which a TMX file has no use for"):
        list(read_pairs(corpus(tmp_path / "m.tmx", text, languages="fr-en")))


def test_a_plain_doctype_is_welcome(tmp_path: Path) -> None:
    text = tmx(unit(fr="un", en="one"), before='<!DOCTYPE tmx SYSTEM "tmx14.dtd">')
    assert sides(corpus(tmp_path / "m.tmx", text, languages="fr-en")) == [("un", "one")]


@pytest.mark.parametrize(("encoding", "problem"), [("shift_jis", "multi-byte encodings"), ("none-such", "unknown enc")])
def test_a_tmx_in_an_encoding_that_is_not_known_says_so(tmp_path: Path, encoding: str, problem: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><tmx/>'
    with pytest.raises(DataError, match=rf"m\.tmx: {problem}.*: convert it to UTF-8"):
        list(read_pairs(corpus(tmp_path / "m.tmx", text, languages="fr-en")))


def test_a_damaged_tmx_names_the_line(tmp_path: Path) -> None:
    text = tmx(unit(fr="un", en="one"), "<tu><tuv>")
    with pytest.raises(DataError, match=r"m\.tmx:4: not a TMX file, or a damaged one: mismatched tag"):
        list(read_pairs(corpus(tmp_path / "m.tmx", text, languages="fr-en")))


def test_a_tmx_in_other_languages_says_which_it_holds(tmp_path: Path) -> None:
    text = tmx(unit(fr="un", en="one"))
    with pytest.raises(DataError, match=r"no unit in both 'de' and 'en', it holds fr, en: say which two to read with"):
        list(read_pairs(corpus(tmp_path / "m.tmx", text, languages="de-en")))


def test_tmx_units_are_given_out_before_the_file_is_read_to_its_end(tmp_path: Path) -> None:
    text = tmx(*(unit(fr=f"phrase {i}", en=f"sentence {i}") for i in range(2003)), "<broken")
    assert next(read_pairs(corpus(tmp_path / "m.tmx", text, languages="fr-en"))).target == "sentence 0"


# ------------------------------------------------------------------------------------------------------ JSON lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"source": "un", "target": "one"}, ("un", "one")),
        ({"translation": {"en": "one", "fr": "un"}}, ("un", "one")),
        ({"id": 7, "en": "one", "fr": "un"}, ("un", "one")),
        ({"source": "un\n  deux\u2028", "target": "\tone two "}, ("un deux", "one two")),
        ({"source": None, "target": "one"}, ("", "one")),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "json", "ndjson"])
def test_every_form_of_json_lines_is_read(tmp_path: Path, line: Any, expected: tuple[str, str], ending: str) -> None:
    text = json.dumps(line) + "\n"
    assert sides(corpus(tmp_path / f"p.{ending}", text, languages="fr-en")) == [expected]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[", r"p\.jsonl:2: not JSON, expected an object a line"),
        ("[" * 100_000, "not JSON"),
        ("[1]", r'no JSON object with text in it, expected \{"source": \.\., "target": \.\.\}'),
        ('{"translation": "un"}', "no JSON object with text in it"),
        ('{"translation": {"de": "x", "en": "y"}}', r"keys 'de', 'en', expected .*\"fr\": .* --from and --to"),
        ('{"source": ["un"], "target": "one"}', r'a side is \["un"\], expected text'),
        (r'{"source": "\ud800", "target": "one"}', "half a character"),
    ],
)
def test_a_json_line_that_is_no_pair_is_explained(tmp_path: Path, line: str, message: str) -> None:
    bad = corpus(tmp_path / "p.jsonl", f'{{"source": "un", "target": "one"}}\n{line}\n', languages="fr-en")
    with pytest.raises(DataError, match=message):
        list(read_pairs(bad))
    assert [type(record) for record in read_records(bad)] == [Pair, Fault]


# ----------------------------------------------------------------------------------- languages, hashes, several reads


@pytest.mark.parametrize(
    ("path", "target_path", "expected"),
    [
        ("train.fr", "train.en", ("fr", "en")),
        ("a/train.tok.fr.gz", "a/train.tok.en.gz", ("fr", "en")),
        ("fr.txt", "en.txt", ("fr", "en")),
        ("europarl-v7.de-en.de", "europarl-v7.de-en.en", ("de", "en")),
        ("europarl-v7.de-en.en", "europarl-v7.de-en.de", ("en", "de")),
        ("train.src", "train.tgt", ("source", "target")),
        ("wmt14-fr-en.tsv.xz", "", ("fr", "en")),
        ("data/deu-eng/train.tsv", "", ("deu", "eng")),
        ("data/en_FR/train.tsv", "", ("en", "fr")),
        ("fr-en/train.de-nl.tsv", "", ("de", "nl")),
        ("my-new-data.tsv", "", ("source", "target")),
        ("en-en.tsv", "", ("source", "target")),
        ("-", "", ("source", "target")),
    ],
)
def test_languages_are_read_off_the_names(path: str, target_path: str, expected: tuple[str, str]) -> None:
    assert corpus_languages(CorpusConfig(path=path, target_path=target_path)) == expected


def test_languages_that_are_given_win_over_names() -> None:
    assert corpus_languages(CorpusConfig(path="train.fr-en.tsv", languages="de-nl")) == ("de", "nl")


def test_two_files_are_named_with_a_comma(tmp_path: Path) -> None:
    assert corpus_of("a.fr,a.en", "fr-en") == CorpusConfig(path="a.fr", target_path="a.en", languages="fr-en")
    (tmp_path / "a,b.tsv").touch()
    assert corpus_of(str(tmp_path / "a,b.tsv")) == CorpusConfig(path=str(tmp_path / "a,b.tsv"))


def test_the_hash_follows_the_bytes_and_their_division_into_files(tmp_path: Path) -> None:
    one = corpus(tmp_path / "one.tsv", "un\tone\n")
    same = corpus(tmp_path / "same.tsv", "un\tone\n", weight=2.0)
    other = corpus(tmp_path / "other.tsv", "un\tOne\n")
    pair = CorpusConfig(path=one.path, target_path=other.path)
    assert content_hash([one]) == content_hash([same])
    assert len({content_hash(corpora) for corpora in ([one], [other], [one, other], [other, one], [pair])}) == 5


def test_standard_input_has_no_hash() -> None:
    with pytest.raises(DataError, match="standard input can be read only once, so it has no hash: spool it"):
        content_hash([CorpusConfig(path="-")])


def test_spooled_standard_input_can_be_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(COMPRESS["xz"](b"un\tone\n")))
    spooled = spool(CorpusConfig(path="-", weight=3.0), tmp_path)
    assert spooled.weight == 3.0
    assert [sides(spooled), sides(spooled)] == [[("un", "one")], [("un", "one")]]
    assert len(content_hash([spooled])) == 64


def test_a_pipe_is_spooled_and_keeps_the_languages_of_its_names(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.fr")
    (tmp_path / "pipe.en").write_text("one\n")
    (tmp_path / "spool").mkdir()
    writer = threading.Thread(target=(tmp_path / "pipe.fr").write_text, args=("un\n",))
    writer.start()
    piped = CorpusConfig(path=str(tmp_path / "pipe.fr"), target_path=str(tmp_path / "pipe.en"))
    spooled = spool(piped, tmp_path / "spool")
    writer.join()
    assert corpus_languages(spooled) == ("fr", "en")
    assert spooled.target_path == piped.target_path
    assert sides(spooled) == sides(spooled) == [("un", "one")]


def test_a_plain_file_is_not_copied(tmp_path: Path) -> None:
    plain = corpus(tmp_path / "pairs.tsv", "un\tone\n")
    assert spool(plain, tmp_path / "nowhere") == plain


def test_standard_input_cannot_be_both_sides(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="standard input is given as both sides: give two files, or one that holds both"
    ):
        spool(CorpusConfig(path="-", target_path="-"), tmp_path)
