"""The doctor: a sound corpus has no findings, and each sickness that is put into one is found, counted and placed."""

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.recipe import CorpusConfig, DataConfig
from dragoman.text.characters import describe, junk_of, repair, strays_of
from dragoman.text.corpus import Pair
from dragoman.text.diagnosis import Diagnosis, Finding, counted, percent, visible
from dragoman.text.doctor import examine
from dragoman.text.doctor_report import report
from dragoman.text.filter import Filter, estimate_pieces
from dragoman.text.shift import ShiftFinder
from dragoman.text.sizes import SizeProbe

SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "za")
Sides = tuple[str, str]


def sentences(count: int, seed: int = 1) -> list[Sides]:
    """Pairs of a small invented language, in which a word becomes a word of another form; some ask, some count."""
    draw = random.Random(seed)
    pairs = []
    for number in range(count):
        words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(draw.randint(2, 17))]
        digits = str(draw.randint(10, 9999)) if draw.random() < 0.2 else ""
        end = draw.choice(".?.!")
        source = " ".join([f"v{number}", *words, digits]).strip() + end
        target = " ".join([f"x{number}", *(word[::-1] for word in words), digits]).strip() + end
        pairs.append((source, target))
    return pairs


def tsv(path: Path, sides: Iterable[Sides]) -> CorpusConfig:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in sides), encoding="utf-8")
    return CorpusConfig(path=str(path))


def finding(diagnosis: Diagnosis, kind: str) -> Finding:
    (found,) = [finding for finding in diagnosis.findings if finding.kind == kind]
    return found


# ------------------------------------------------------------------------------------------------ the whole examination


def test_a_sound_corpus_has_no_findings(tmp_path: Path) -> None:
    train, valid, test = (tsv(tmp_path / f"{count}.tsv", sentences(count, seed=count)) for count in (1009, 211, 103))
    diagnosis = examine([train], [valid], [test])
    assert diagnosis.findings == ()
    assert diagnosis.verdict == "ready to train, nothing found"
    assert [(s.name, s.pairs, s.kept) for s in diagnosis.sets] == [
        ("train", 1009, 1009),
        ("valid", 211, 211),
        ("test", 103, 103),
    ]


def test_sizes_are_those_of_the_text(tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "fr-en.tsv", [("un deux trois", "one two"), ("quatre", "four five six seven eight")])
    diagnosis = examine([corpus])
    source, target = diagnosis.sets[0].source, diagnosis.sets[0].target
    assert diagnosis.languages == ("fr", "en")
    assert (source.words, source.characters, source.median_words, source.percentile95_words) == (4, 19, 1, 3)
    assert (target.words, target.characters, target.median_words, target.percentile95_words) == (7, 32, 2, 5)
    assert source.histogram == (1, 1)
    assert target.histogram == (0, 1, 1)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=97))
def test_medians_and_percentiles_are_those_of_numpy(lengths: list[int]) -> None:
    probe = SizeProbe(Filter(), None)
    probe.look("x", [Pair(" ".join(["a"] * length), "a", 1) for length in lengths])
    summary = probe.summary(0)
    assert summary.median_words == np.quantile(lengths, 0.5, method="inverted_cdf")
    assert summary.percentile95_words == np.quantile(lengths, 0.95, method="inverted_cdf")


def test_nothing_to_look_at_is_an_error() -> None:
    with pytest.raises(
        DataError, match="no corpus to look at: name a file of pairs, or two aligned files with --source"
    ):
        examine([])


def test_progress_hears_of_every_line(tmp_path: Path) -> None:
    heard: list[int] = []
    examine([tsv(tmp_path / "p.tsv", sentences(4003))], progress=heard.append)
    assert heard == [2000, 4000, 4003]


def test_a_diagnosis_fits_into_json(tmp_path: Path) -> None:
    mapping = examine([tsv(tmp_path / "p.tsv", [("un", "one"), ("", "two")])]).to_mapping()
    assert json.loads(json.dumps(mapping)) == mapping
    assert mapping["sets"][0]["dropped"] == {"empty": 1}
    assert mapping["sets"][0]["kept"] == 1
    assert mapping["num_problems"] == 1
    assert mapping["predicted_seconds"] is None


# ------------------------------------------------------------------------------------------------- what is dropped


@pytest.mark.parametrize(
    ("source_pieces", "target_pieces", "reason"),
    [
        (0, 5, "empty"),
        (5, 0, "empty"),
        (0, 0, "empty"),
        (1, 1, None),
        (1, 13, None),
        (1, 14, "ratio"),
        (14, 1, "ratio"),
        (7, 31, None),
        (7, 32, "ratio"),
        (97, 97, None),
        (97, 98, "overlong"),
        (98, 97, "overlong"),
        (1, 98, "overlong"),
    ],
)
def test_a_pair_is_dropped_for_the_first_reason_that_holds(
    source_pieces: int, target_pieces: int, reason: str | None
) -> None:
    assert Filter(max_pieces=97, max_ratio=3.0).reason(source_pieces, target_pieces) == reason


def test_the_filter_keeps_what_the_recipe_keeps() -> None:
    assert Filter().max_ratio == DataConfig().max_ratio


@given(st.text(st.characters(blacklist_categories=["Cs"])))
def test_an_estimate_is_zero_only_for_an_empty_text(text: str) -> None:
    assert (estimate_pieces(text) == 0) == (text == "")


def test_what_is_dropped_is_counted_by_reason_as_the_filter_counts(tmp_path: Path) -> None:
    sides = [*sentences(101), ("", "nothing"), ("rien", ""), ("oui", "yes " * 31), ("long " * 211, "lang " * 211)]
    corpus = tsv(tmp_path / "p.tsv", sides)
    diagnosis = examine([corpus], max_pieces=199, max_ratio=5.0)
    filter = Filter(max_pieces=199, max_ratio=5.0)
    reasons = [filter.reason(estimate_pieces(s.strip()), estimate_pieces(t.strip())) for s, t in sides]
    summary = diagnosis.sets[0]
    assert summary.dropped == {"empty": 2, "overlong": 1, "ratio": 1}
    assert summary.dropped == {reason: reasons.count(reason) for reason in ("empty", "overlong", "ratio")}
    assert summary.kept == 101
    assert finding(diagnosis, "ratio").examples[0].place == f"{corpus.path}:104"
    assert finding(diagnosis, "ratio").examples[0].remark == "about 1 and 31 pieces"
    assert finding(diagnosis, "overlong").what == "1 pair with a side of more than 199 pieces, as estimated"


def test_faults_are_counted_and_placed_and_reading_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    good = "".join(f"{s}\t{t}\n" for s, t in sentences(31)).encode()
    path.write_bytes(good + b"one column\n" + b"ca\xe9\tcafe\n" + b"\xff\t\xff\n" + good.replace(b"v", b"w"))
    diagnosis = examine([CorpusConfig(path=str(path))])
    assert diagnosis.sets[0].pairs == 65
    assert diagnosis.sets[0].dropped == {"columns": 1, "encoding": 2}
    assert finding(diagnosis, "columns").examples[0].place == f"{path}:32"
    encoding = finding(diagnosis, "encoding")
    assert encoding.severity == "problem"
    assert encoding.what == "2 lines that are not UTF-8 text"
    assert [example.source for example in encoding.examples] == ["ca\\xe9\\u0009cafe", "\\xff\\u0009\\xff"]


def test_nothing_left_is_a_problem_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("only\none\nside\n")
    diagnosis = examine([CorpusConfig(path=str(path))])
    assert finding(diagnosis, "nothing-left").what.startswith("no pair of train is left")
    assert diagnosis.verdict == "2 problems: mend the problems before training"


def test_broken_json_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"source": "un", "target": "one"}\n{"source": "un"}\n')
    assert finding(examine([CorpusConfig(path=str(path))]), "record").count == 1


# ------------------------------------------------------------------------------------------------------- repetitions


def test_duplicates_are_counted_over_all_corpora_and_shown_with_their_first_place(tmp_path: Path) -> None:
    sides = sentences(101)
    first, second = tsv(tmp_path / "1.tsv", sides), tsv(tmp_path / "2.tsv", [*sides[:7], sides[0]])
    duplicates = finding(examine([first, second]), "duplicates")
    assert duplicates.count == 8
    assert duplicates.share == 8 / 109
    assert duplicates.examples[0].place == f"{second.path}:1"
    assert duplicates.examples[0].remark == f"first at {first.path}:1"
    assert len(duplicates.examples) == 3


def test_duplicates_and_identical_sides_are_reported_but_kept(tmp_path: Path) -> None:
    diagnosis = examine([tsv(tmp_path / "p.tsv", [("Paris", "Paris"), ("Paris", "Paris"), ("oui", "yes")])])
    assert finding(diagnosis, "identical-sides").count == 2
    assert finding(diagnosis, "duplicates").count == 1
    assert diagnosis.sets[0].kept == 3


def test_a_column_of_numbers_is_noticed(tmp_path: Path) -> None:
    sides = [(str(1000 + number), target) for number, (_, target) in enumerate(sentences(53))]
    without = finding(examine([tsv(tmp_path / "p.tsv", sides)]), "no-letters")
    assert (without.severity, without.count) == ("problem", 53)
    assert "check the file's columns" in without.advice


def test_a_sentence_of_valid_or_test_in_train_is_found_whatever_its_case_and_punctuation(tmp_path: Path) -> None:
    train = tsv(tmp_path / "train.tsv", [*sentences(101), ("Bonjour, Tom !", "Hello, Tom."), ("Va", "Go!")])
    valid = tsv(tmp_path / "valid.tsv", [("bonjour tom", "HELLO TOM"), ("vas-y", "go"), ("autre", "different")])
    test = tsv(tmp_path / "test.tsv", [("unique", "only")])
    diagnosis = examine([train], valid=[valid], test=[test])
    leak = finding(diagnosis, "leak")
    assert (leak.where, leak.severity, leak.count) == ("valid", "problem", 2)
    assert "(1 with both)" in leak.what
    assert leak.examples[0].place == f"{valid.path}:1"
    assert leak.examples[0].remark == f"both sides in train, at {train.path}:102"
    assert leak.examples[1].remark == f"target in train, at {train.path}:103"


# ------------------------------------------------------------------------------------------------------------ shifts


def misaligned(sides: list[Sides], drop: Callable[[list[str], list[str]], None]) -> list[Pair]:
    sources, targets = map(list, zip(*sides, strict=True))
    drop(sources, targets)
    return [Pair(s, t, number) for number, (s, t) in enumerate(zip(sources, targets, strict=False), start=1)]


def shifts_of(pairs: list[Pair]) -> list[tuple[int, int]]:
    finder = ShiftFinder()
    finder.look(pairs)
    return [(shift.offset, shift.start.number) for shift in finder.finish()]


@pytest.mark.parametrize("lost", [1, 2, 3])
@pytest.mark.parametrize("at", [0, 1234])
def test_a_lost_line_is_found_near_where_it_was_lost(lost: int, at: int) -> None:
    sides = sentences(2503)

    def lose_target(sources: list[str], targets: list[str]) -> None:
        del targets[at : at + lost]

    def lose_source(sources: list[str], targets: list[str]) -> None:
        del sources[at : at + lost]

    for drop, offset in ((lose_target, -lost), (lose_source, lost)):
        ((found, start),) = shifts_of(misaligned(sides, drop))
        assert found == offset
        assert abs(start - at) <= 20


def test_a_shift_that_is_mended_later_ends_there() -> None:
    def slip(sources: list[str], targets: list[str]) -> None:
        del targets[600]
        targets.insert(1400, "an extra line.")

    finder = ShiftFinder()
    finder.look(misaligned(sentences(2503), slip))
    (shift,) = finder.finish()
    assert shift.offset == -1
    assert abs(shift.start.number - 600) <= 20
    assert abs(shift.end.number - 1400) <= 200


def test_a_large_shift_is_found_without_its_size() -> None:
    ((offset, start),) = shifts_of(
        misaligned(sentences(2503), lambda sources, targets: targets.__delitem__(slice(900, 911)))
    )
    assert offset == 0
    assert abs(start - 900) <= 200


@pytest.mark.parametrize("count", [13, 53, 211, 2503])
@pytest.mark.parametrize("key", [None, lambda pair: len(pair.target), lambda pair: pair.source])
def test_sound_text_is_not_accused_in_whatever_order(count: int, key: Callable[[Pair], Any] | None) -> None:
    pairs = misaligned(sentences(count, seed=count), lambda sources, targets: None)
    assert shifts_of(sorted(pairs, key=key) if key else pairs) == []


def test_the_doctor_reports_a_shift_and_the_counts_that_differ(tmp_path: Path) -> None:
    sources, targets = zip(*sentences(1009), strict=True)
    source, target = tmp_path / "train.fr", tmp_path / "train.en"
    source.write_text("\n".join(sources))
    target.write_text("\n".join(targets[:500] + targets[501:]))
    diagnosis = examine([CorpusConfig(path=str(source), target_path=str(target))])
    assert "1009 lines and" in finding(diagnosis, "line-counts").what
    shift = finding(diagnosis, "shift")
    assert shift.severity == "problem"
    assert "a translation stands 1 line above its sentence" in shift.what
    assert shift.examples[0].place.startswith(f"{source}:")
    assert abs(int(shift.examples[0].place.rpartition(":")[2]) - 501) <= 20


def test_sides_in_another_order_are_noticed(tmp_path: Path) -> None:
    sources, targets = zip(*sentences(1009), strict=True)
    shuffled = random.Random(2).sample(targets, len(targets))
    unaligned = finding(examine([tsv(tmp_path / "p.tsv", zip(sources, shuffled, strict=True))]), "unaligned")
    assert unaligned.severity == "problem"
    assert "long sentences do not have long translations" in unaligned.what


def test_sentences_of_one_length_are_not_called_unaligned(tmp_path: Path) -> None:
    sides = [(f"mot {i:05}", f"word {i:05}") for i in range(1009)]
    assert examine([tsv(tmp_path / "p.tsv", sides)]).findings == ()


# -------------------------------------------------------------------------------------------------------- characters


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("l'Ã©tÃ©", "l'été"),
        ("C'est l'Ã©tÃ© — oui", "C'est l'été — oui"),
        ("donâ€™t", "don’t"),
        ("Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "привет"),
        ("l'été à Noël", ""),
        ("CAFÉ\u00a0» — « À\u00a0»", ""),
        ("CAFÉ\u00a0»", ""),
        ("A IRMÃ… NÃO", ""),
        ("½ cup", ""),
        ("plain", ""),
    ],
)
def test_text_that_was_decoded_with_the_wrong_table_is_told_from_text_with_accents(text: str, repaired: str) -> None:
    assert repair(text) == repaired


@given(st.text(st.characters(whitelist_categories=["Ll", "Lu"], max_codepoint=0x24F), max_size=23))
def test_letters_alone_are_never_called_broken(text: str) -> None:
    assert junk_of(text) == ""


@pytest.mark.parametrize(
    "character", ["\x07", "\x1b", "\x85", "\u00ad", "\u200b", "\u2028", "\ufeff", "\ufffd", "\ue000"]
)
def test_characters_that_no_sentence_holds_are_junk(character: str) -> None:
    assert junk_of(f"a{character}b{character}") == character


@pytest.mark.parametrize("text", ["«\u00a0oui\u00a0»", "می\u200cخواهم", "👩\u200d🚀", "a\tb"])
def test_joiners_and_hard_spaces_are_no_junk(text: str) -> None:
    assert junk_of(text) == ""


def test_junk_and_mojibake_are_found_with_their_names(tmp_path: Path) -> None:
    diagnosis = examine([tsv(tmp_path / "p.tsv", [*sentences(31), ("b\x1bip", "beep"), ("Ã©tÃ©", "summer")])])
    assert finding(diagnosis, "junk-characters").examples[0].remark == "U+001B CONTROL OR UNASSIGNED"
    assert finding(diagnosis, "junk-characters").examples[0].source == "b\\u001bip"
    assert finding(diagnosis, "mojibake").examples[0].remark == "perhaps it was été"


def test_a_letter_of_another_script_is_a_stray_but_a_rare_one_of_the_own_script_is_not(tmp_path: Path) -> None:
    sides = [*sentences(2503), ("\u0421est là", "that is ẵ it")]
    rare = finding(examine([tsv(tmp_path / "p.tsv", sides)]), "rare-characters")
    assert (rare.severity, rare.count) == ("note", 1)
    assert rare.examples[0].remark == describe("\u0421") == "U+0421 CYRILLIC CAPITAL LETTER ES"


def test_rare_characters_of_chinese_are_no_strays() -> None:
    counts = np.zeros(0x5000, dtype=np.int64)
    counts[0x4E00:0x4E40] = 5003
    counts[0x4E41:0x4F00] = 1
    assert strays_of(counts) == []


# -------------------------------------------------------------------------------------------------------- pieces


class Letters:
    """A tokenizer whose pieces are letters; what is not ASCII falls back to bytes, ids 128 and up."""

    byte_ids = frozenset(range(128, 256))

    def ids_batch(self, texts: Iterable[str]) -> list[list[int]]:
        return [list(text.replace(" ", "").encode()) for text in texts]


def test_with_a_tokenizer_lengths_are_pieces(tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "p.tsv", [("un été", "a summer"), ("oui", "y" * 29)])
    diagnosis = examine([corpus], tokenizer=Letters(), max_ratio=6.0)
    source = diagnosis.sets[0].source
    assert not diagnosis.estimated
    assert source.pieces == 10
    assert source.pieces_per_word == round(10 / 3, 3)
    assert source.byte_share == 4 / 10
    assert diagnosis.sets[0].dropped == {"ratio": 1}
    assert finding(diagnosis, "ratio").examples[0].remark == "3 and 29 pieces"
    byte_pieces = finding(diagnosis, "byte-pieces")
    assert byte_pieces.what == "40 % of the source side's pieces are single bytes: the tokenizer lacks its characters"


# -------------------------------------------------------------------------------------------------------- showing


@given(st.text())
def test_nothing_that_a_terminal_would_obey_is_shown(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(text) == text or not text.isprintable() or len(text) > 160


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, "50 %"), (0.0123, "1.2 %"), (0.0005, "0.05 %"), (1e-6, "< 0.01 %"), (0.0, "0 %")]
)
def test_shares_are_written_for_people(share: float, expected: str) -> None:
    assert percent(share) == expected


def test_one_is_singular() -> None:
    assert counted(1, "pairs", "left") == "1 pair left"
    assert counted(1234, "pairs") == "1,234 pairs"


class Tags(HTMLParser):
    """Every tag closes what it opened; nothing is fetched and nothing runs."""

    VOID = ("meta",)

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_report_is_one_page_that_fetches_and_runs_nothing(tmp_path: Path) -> None:
    sides = [*sentences(53), ("<script>alert('x')</script> & Ã©tÃ©", "<img src=x onerror=y>"), ("", "<b>")]
    page = report(examine([tsv(tmp_path / "a<b>&.tsv", sides)], max_pieces=7))
    tags = Tags(page)
    assert tags.open == []
    assert not {"script", "img", "link", "b", "iframe"} & tags.seen
    assert not {"src", "href", "onerror"} & tags.attributes
    assert "<script>alert('x')</script> & Ã©tÃ©" in tags.text
    assert "prefers-color-scheme: dark" in page
    assert "train: too long" in tags.text


def test_the_report_tells_predictions_when_there_are_some(tmp_path: Path) -> None:
    diagnosis = examine([tsv(tmp_path / "p.tsv", sentences(53))])
    assert "hours" not in report(diagnosis)
    planned = replace(diagnosis, predicted_seconds=5400.0, predicted_memory_bytes=3_000_000_000)
    assert "training would take about 1.5 hours here, and 3.0 GB of memory" in report(planned)
