import random
import subprocess
import sys
import types
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError, LengthError
from dragoman.text.sentences import Segment, frame, rebuild, split, split_long

LANGUAGES = ["", "en", "fr", "de", "ja", "zh", "ru", "pt-BR", "xx"]
# What sentence splitters stumble over, and any other character.
bits = st.sampled_from(
    [
        *" \n\t\r.!?…;:,\"'“”«»()[]{}「」。、-–1aÀÉЖ中\u00a0\u0085\u2028\u202f\u3000\u0301\u200d\ufeff\x00\ud800",
        *("\r\n", "Mr. ", " A. ", "e.g.", "...", "\u00a0B. ", "http://a.b/c?d", "🏳️‍🌈", "Il est là. ", "「はい。」と"),
    ]
)
texts = st.lists(bits | st.characters(), max_size=60).map("".join)


def sentences(text, language="en"):
    return [segment.text for segment in split(text, language) if segment.is_sentence]


def word_count(text):
    return len(text.split())


@settings(max_examples=300, deadline=None)
@given(texts, st.sampled_from(LANGUAGES))
@example("Hello.\u00a0A. B", "en")
@example("\ud800. A", "en")
def test_no_character_is_lost(text, language):
    segments = split(text, language)
    assert "".join(segment.text for segment in segments) == text
    assert rebuild(segments, [segment.text for segment in segments if segment.is_sentence]) == text


@settings(max_examples=200, deadline=None)
@given(texts, st.sampled_from(LANGUAGES))
def test_a_sentence_has_text_and_no_blanks_around_it(text, language):
    segments = split(text, language)
    for segment in segments:
        assert segment.text
        if segment.is_sentence:
            assert segment.text.strip() == segment.text
            assert "\n" not in segment.text
        else:
            assert not any(character.isalnum() for character in segment.text)
    for left, right in pairwise(segments):
        assert left.is_sentence or right.is_sentence


@settings(max_examples=100, deadline=None)
@given(texts)
def test_the_skeleton_comes_back_around_translations(text):
    segments = split(text, "en")
    rebuilt = rebuild(segments, ["中"] * sum(segment.is_sentence for segment in segments))
    assert rebuilt == "".join("中" if segment.is_sentence else segment.text for segment in segments)


def test_lines_indentation_blank_lines_and_tabs_are_skeleton():
    assert split("  One. Two!\r\n\n\tThree\tfour.\n", "en") == [
        Segment("  ", False),
        Segment("One.", True),
        Segment(" ", False),
        Segment("Two!", True),
        Segment("\r\n\n\t", False),
        Segment("Three", True),
        Segment("\t", False),
        Segment("four.", True),
        Segment("\n", False),
    ]


@pytest.mark.parametrize(
    ("language", "line", "mark"),
    [
        ("fr", "1. Ouvrez la porte. Entrez.", "1. "),
        ("fr", "  12) Ouvrez la porte.", "  12) "),
        ("en", "(3) Open the door.", "(3) "),
        ("en", "- some bread", "- "),
        ("fr", "— Oui, dit-il.", "— "),
        ("en", "• «bread»", "• "),
        ("de", "- 3. Mai", "- "),
        ("de", "3. Mai ist ein Tag.", ""),
        ("en", "1.5 litres", ""),
        ("en", "-5 degrees", ""),
        ("en", "*bold* text", ""),
        ("en", "1987. A year.", ""),
        ("en", "- …", ""),
    ],
)
def test_the_mark_of_a_list_is_skeleton(language, line, mark):
    segments = split(f"{line}\n{line}", language)
    marks = [segment.text for segment in segments if segment.text.endswith(mark) and not segment.is_sentence]
    assert "".join(segment.text for segment in segments) == f"{line}\n{line}"
    assert sentences(line, language)[0].startswith(line[len(mark) :][:4].rstrip())
    assert not mark or marks == [mark, f"\n{mark}"]


@pytest.mark.parametrize("line", ["...", "—", "42", "3.14", "🙂", "(?)", "http://a.b/c.d?e=f", "!", "。"])
def test_a_line_of_marks_numbers_or_an_emoji_is_a_sentence(line):
    assert sentences(f"{line}\nyes") == [line, "yes"]


@pytest.mark.parametrize("blank", ["", " ", "\n\n", "\t \r\n", "\u00a0", "\ufeff", "\u200b", "\x00"])
def test_blank_text_has_no_sentence(blank):
    assert sentences(blank) == []


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["Mr. Roy met Dr. No.", "They left."]),
        ("en", ["J. Roy took plan B.", "Then he left."]),
        ("en", ["“Stop. Now!” he said.", "She left..."]),
        ("en", ["What?!", "No way!!", "Really?"]),
        ("en", ["Hello there! 🙂"]),
        ("en", ["... and then he left.", "So did she."]),
        ("en", ["Approx. ten came.", "See Fig. 7 and Vol. 3."]),
        ("en-GB", ["Mrs. Roy came.", "It was 5 p.m."]),
        ("", ["Mrs. Roy came.", "It was late."]),
        ("unknown", ["It was late.", "It was dark."]),
        ("fr", ["M. Dupont est parti.", "Mme. Roy dort."]),
        ("fr", ["Le Dr. Petit et J.-P. Roy sont là.", "Voilà !"]),
        ("fr-CA", ["C'est l'art. 5 du code.", "Ah bon ?"]),
        ("fr", ["Il a dit : « Viens. Vite. »", "Puis il est parti."]),
        ("fr", ["Les U.S.A. sont loin.", "Oui."]),
        ("de", ["Am 3. Mai kam Dr. Meier.", "Er ging z. B. weg."]),
        ("pl", ["Dom św. Jana stoi.", "Oto on."]),
        ("ru", ["А. Иванов живёт тут.", "Он ушёл."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(language, expected):
    assert sentences(" ".join(expected), language) == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("zh", ["你好。", "我很好！", "你呢？"]),
        ("ja", ["「行くよ。」と彼は言った。", "本当！？"]),
        ("en", ["Hello world.", "Next one."]),
    ],
)
def test_sentences_may_touch(language, expected):
    assert sentences("".join(expected), language) == expected


def test_sentences_that_touched_get_a_space_where_their_translations_need_one():
    segments = split("你好。我很好！", "zh")
    assert rebuild(segments, ["Hello.", "I am fine!"]) == "Hello. I am fine!"
    assert rebuild(segments, ["Hello. ", "I am fine!"]) == "Hello. I am fine!"
    assert rebuild(segments, ["Hello.", ""]) == "Hello."
    assert rebuild(segments, ["こんにちは。", "元気です！"]) == "こんにちは。元気です！"
    assert rebuild(split("So.And so.", "en"), ["Так.", "И так."]) == "Так.И так."


def test_as_many_translations_as_sentences_are_asked_for():
    with pytest.raises(DataError, match="3 translations for 2 sentences: give one a sentence"):
        rebuild(split("One. Two.", "en"), ["Eins.", "Zwei.", "Drei."])


def test_a_long_line_is_split_as_its_parts_are():
    chance = random.Random(5)
    expected = [" ".join(["Word", *["word"] * chance.randrange(1, 90)]) + "." for _ in range(300)]
    assert len(max(expected, key=len)) < 1000 < 2000 < len(" ".join(expected))
    assert sentences(" ".join(expected)) == expected


def test_a_sentence_of_any_length_stays_whole():
    line = "word, " * 3000 + "end. Next."
    assert sentences(line) == [line[: -len(" Next.")], "Next."]


@pytest.mark.parametrize("unit", ['「"', "M. ", "“Hi. ", "\t\u3000", "a, b; ", "!", "。", "é"])
def test_a_line_of_a_hundred_thousand_characters_is_no_burden(unit):
    line = (unit * 100_000)[:100_000]
    assert "".join(segment.text for segment in split(line, "fr")) == line


def test_a_splitter_that_fails_or_disagrees_leaves_one_sentence(monkeypatch):
    class PanicException(BaseException):
        """The name that a panic of Rust has."""

    def panic(language, text):
        raise PanicException("byte index 3 is not a char boundary")

    for segment in (panic, lambda language, text: ["something", "else"]):
        monkeypatch.setitem(sys.modules, "sentencex", types.SimpleNamespace(segment=segment))
        assert sentences("One. Two.") == ["One. Two."]


def test_other_failures_are_not_hidden(monkeypatch):
    def interrupt(language, text):
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "sentencex", types.SimpleNamespace(segment=interrupt))
    with pytest.raises(KeyboardInterrupt):
        split("One. Two.")


def test_frame_takes_the_blanks_off_a_sentence():
    assert frame(" \u00a0so it is\n") == [Segment(" \u00a0", False), Segment("so it is", True), Segment("\n", False)]
    assert frame("so") == [Segment("so", True)]
    assert frame(" \n") == [Segment(" \n", False)]
    assert frame("") == []


@settings(max_examples=200)
@given(texts, st.integers(1, 17), st.sampled_from([len, word_count]))
def test_long_sentences_are_cut_to_size_without_loss(sentence, max_pieces, count):
    parts = split_long(sentence, max_pieces, count)
    assert "".join(parts) == sentence
    assert all(count(part) <= max_pieces for part in parts)
    if count(sentence) <= max_pieces:
        assert parts == [sentence]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ["!", "?!", '!"', ".)", " ", " \u00a0", " –", ";", "; ", ", ", "。", "\u0301"])
def test_a_long_sentence_of_one_thing_is_cut_in_no_time(unit):
    sentence = "a" + (unit * 200_000)[:200_000] + "b"
    assert "".join(split_long(sentence, 60_007, len)) == sentence


def test_a_cut_may_follow_a_run_of_marks_that_began_far_away():
    assert split_long("a" * 5 + "!" * 9 + " " + "b" * 15, 25, len) == ["a" * 5 + "!" * 9 + " ", "b" * 15]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("one two, three four; five six, seven", ["one two, three four; ", "five six, seven"]),
        ("one two three, four five six, seven", ["one two three, ", "four five six, seven"]),
        ("he paid 1,500 and no more of it", ["he paid 1,500 ", "and no more of it"]),
        ("one two three – four five six seven", ["one two three ", "– four five six seven"]),
        ("one “two three!” four five, six seven", ["one “two three!” ", "four five, six seven"]),
        ("as Dr. Who said then, five six seven", ["as Dr. Who said then, ", "five six seven"]),
    ],
)
def test_a_long_sentence_is_cut_between_clauses(sentence, expected):
    assert split_long(sentence, 5, word_count) == expected


def test_the_parts_of_a_long_sentence_are_balanced():
    parts = split_long("word " * 101, 10, word_count)
    assert len(parts) == 11
    assert min(map(word_count, parts)) >= 8


def test_an_accent_and_its_letter_stay_together():
    parts = split_long("e\u0301" * 17, 4, len)
    assert all(part.startswith("e") for part in parts)


def test_a_character_with_too_many_pieces_is_left_whole():
    assert split_long("🙂🙂", 3, lambda text: 4 * len(text)) == ["🙂", "🙂"]


def test_no_pieces_at_all_are_refused():
    with pytest.raises(LengthError, match="max_pieces is 0, expected at least 1"):
        split_long("word", 0, word_count)


def test_a_plain_sentence_loads_no_library():
    code = (
        "import sys; from dragoman.text.sentences import split; split('Je suis étudiant.', 'fr');"
        "print(sorted({'torch', 'sentencex', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
