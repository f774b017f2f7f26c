"""Files to translate: texts come out, translations go in, and all else stays; hostile files are refused in a line."""

import io
import re
import struct
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents import CONTENT_TYPES, EXTENSIONS, archive, extension_of, read
from dragoman.documents.subtitles import wrap
from dragoman.errors import DataError
from dragoman.text.sentences import rebuild, split
from dragoman.translator import Link, SentenceTranslation, Translation
from office_files import docx, odt, pack, run, unpack, word_runs


def backwards(text: str) -> Translation:
    """The words of each sentence backwards and in capitals, with their alignment."""
    segments = split(text, "en")
    sentences = []
    for segment in segments:
        if segment.is_sentence:
            words = segment.text.split()
            links = tuple(Link(len(words) - 1 - at, at, 1.0) for at in range(len(words)))
            sentences.append(SentenceTranslation(segment.text, " ".join(reversed(words)).upper(), 0.0, 1.0, links))
    return Translation(rebuild(segments, [one.target for one in sentences]), 0.0, 1.0, tuple(sentences))


def translated(name: str, data: bytes, translate: Callable[[str], Translation] = backwards) -> bytes:
    document = read(name, data)
    return document.render([translate(text) for text in document.texts])


def unchanged(name: str, data: bytes) -> bytes:
    document = read(name, data)
    return document.render(document.texts)


def refusal(name: str, data: bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(name, data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Names


@pytest.mark.parametrize("name", ["a.TXT", "../../etc/b.html", "C:\\x\\c.docx", "d.tar.odt"])
def test_of_a_name_only_the_extension_counts(name: str) -> None:
    assert extension_of(name) in EXTENSIONS


@pytest.mark.parametrize(("name", "shown"), [("a.exe", ".exe"), ("docx", "a name without extension"), ("", "a name")])
def test_other_extensions_are_refused_with_those_that_can_be_sent(name: str, shown: str) -> None:
    with pytest.raises(DataError, match=r"send \.txt, \.html, \.htm, \.srt, \.vtt, \.docx, \.odt") as caught:
        extension_of(name)
    assert str(caught.value).startswith(shown)


# Text and HTML


def test_text_keeps_its_lines_its_mark_and_its_encoding() -> None:
    text = "One two.\r\n\r\n  Three fôur!\r\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        data = text.encode(encoding)
        assert unchanged("a.txt", data) == data
        assert translated("a.txt", data).decode(encoding) == "TWO. ONE\r\n\r\n  FÔUR! THREE\r\n"
    assert translated("a.txt", b"") == b""


def test_text_in_an_unknown_encoding_is_refused() -> None:
    assert refusal("a.txt", b"caf\xe9 noir") == "byte 3 of the file is not UTF-8: save it as UTF-8"


def test_html_stays_in_the_encoding_that_it_declares() -> None:
    page = "<meta charset=iso-8859-1><p>un café <b>noir</b></p>".encode("iso-8859-1")
    assert unchanged("a.html", page) == page
    assert translated("a.html", page) == page.replace(
        "un café <b>noir</b>".encode("iso-8859-1"), "<b>NOIR</b> CAFÉ UN".encode("iso-8859-1")
    )
    arrow = read("a.htm", page).render(["un café → 3"])
    assert b"&#8594;" in arrow
    odd = b'<meta charset="unicode_escape"><p>one two</p>'
    assert translated("a.html", odd) == b'<meta charset="unicode_escape"><p>TWO ONE</p>'


# Subtitles

CUES = """1
00:00:01,000 --> 00:00:02,500
<i>one two
three four</i>

2
00:00:03,000 --> 00:00:04,000 X1:10
- Five six.
- Seven {\\an8}eight & nine

3
00:00:05,000 --> 00:00:06,000
42
"""


def test_subtitles_keep_numbers_times_and_speakers_and_wrap_a_sentence_as_it_was() -> None:
    assert read("a.srt", CUES.encode()).texts == ("one two three four", "Five six.", "Seven eight & nine")
    expected = CUES.replace("one two\nthree four", "FOUR THREE\nTWO ONE").replace("- Five six.", "- SIX. FIVE")
    expected = expected.replace("- Seven {\\an8}eight & nine", "- NINE & {\\an8}EIGHT SEVEN")
    assert translated("a.srt", CUES.encode()).decode() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("♪ one two ♪", "♪ TWO ONE ♪"),
        ("-one two", "-TWO ONE"),
        ("[one two]", "[TWO ONE]"),
        ("(one) two three", "THREE TWO (ONE)"),
        ("<i>- one two</i>\n<i>- three four</i>", "<i>- TWO ONE</i>\n<i>- FOUR THREE</i>"),
        ("—", "—"),
    ],
)
def test_marks_of_speakers_and_songs_stay(text: str, expected: str) -> None:
    cue = "1\n0:7:1 --> 0:7:2,5\n{}\n"
    assert translated("a.srt", cue.format(text).encode()).decode() == cue.format(expected)


def test_webvtt_keeps_all_that_is_not_said() -> None:
    text = "WEBVTT - one two\n\nNOTE\nthree four\n\nfirst\n00:01.000 --> 00:04.000 align:start\n{}\n"
    before = "<v Ada>one <00:02.000><c.loud>two</c></v>\n- three four"
    after = "<v Ada><00:02.000><c.loud>TWO</c> ONE</v>\n- FOUR THREE"
    assert read("a.vtt", text.format(before).encode()).texts == ("one two", "three four")
    assert translated("a.vtt", text.format(before).encode()).decode() == text.format(after)


@given(st.one_of(st.text(), st.lists(st.sampled_from([*CUES.splitlines(keepends=True), "\n", "a\r\n"])).map("".join)))
def test_subtitles_that_are_not_changed_are_the_same_byte_for_byte(text: str) -> None:
    data = text.encode()
    assert unchanged("a.srt", data) == data


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("head", "unit"),
    [(".<", "a"), (".<b ", "a"), ("", "♪ "), ("", "-"), ("a", "\u00a0"),
     ("", "<i> "), (".", '"'), (".", "<b>"), ("", ".<b "), ("a", " "), ("a", "\t "), ("", "{\\a"),
     ("", "<b "), ("1", "1"), ("1:11:11,", "1"), ("a\n", "b c\n")],
)  # fmt: skip
def test_two_hundred_thousand_characters_of_subtitles_take_no_time(head: str, unit: str) -> None:
    text = f"1\n00:00:01,000 --> 00:00:02,500\n{head}{(unit * 200_000)[:200_000]}x\ny z\n"
    document = read("a.srt", text.encode())
    assert document.render(document.texts) == text.encode()
    assert document.render([f"{one} more" for one in document.texts]).count(b"\n") == text.count("\n")


@given(st.text("ab ", max_size=40), st.lists(st.sampled_from(["\n", "\r\n"]), max_size=5))
def test_lines_are_broken_at_the_spaces_nearest_to_equal_lengths(text: str, breaks: list[str]) -> None:
    chosen: dict[int, str] = {}
    for number, line_end in enumerate(breaks, start=1):
        free = [at for at, char in enumerate(text) if char == " " and max(chosen, default=0) < at < len(text) - 1]
        if free:
            ideal = len(text) * number / (len(breaks) + 1)
            chosen[min(free, key=lambda at: abs(at - ideal))] = line_end
    expected = "".join(chosen.get(at, char) for at, char in enumerate(text))
    half = len(text) // 2
    assert wrap([(text[:half], True), ("<b>", False), (text[half:], True)], breaks).replace("<b>", "") == expected


def test_a_charset_that_never_comes_takes_no_time() -> None:
    page = b"<meta " * 30 + b"charset=" + b" " * 5000
    assert unchanged("a.html", page) == page


# Word


def test_text_that_shares_its_run_with_a_picture_is_translated() -> None:
    picture, box = (
        "<w:sym w:char='F04A'/>",
        f"<w:pict><w:txbxContent><w:p>{run('five six')}</w:p></w:txbxContent></w:pict>",
    )
    mixed = f'<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">one </w:t>{picture}<w:t> two</w:t>{box}</w:r>'
    data = docx(f"<w:p>{mixed}{run(' three')}</w:p><w:p><w:r>{picture}</w:r></w:p>")
    assert unpack(unchanged("a.docx", data)) == unpack(data)
    document = unpack(translated("a.docx", data))["word/document.xml"].decode()
    assert all(document.count(one) == 1 for one in ("TWO", "ONE", "THREE", "SIX FIVE", "<w:pict>"))
    assert document.count(picture) == 2
    assert "<w:t>two" not in document


def test_a_formula_between_two_spaces_keeps_both() -> None:
    formula = "<w:math>x</w:math>"
    for body in (f"{run('one ')}{formula}{run(' two')}", f"{run('one ', '<w:b/>')}{formula}{run(' two')}"):
        data = read("a.docx", docx(f"<w:p>{body}</w:p>")).render(["ONE TWO"])
        assert re.sub("<[^>]*>", "", unpack(data)["word/document.xml"].decode()).strip() == "ONE x TWO"


def test_word_text_that_is_not_changed_is_the_same_byte_for_byte() -> None:
    data = docx(f"<w:p><w:pPr><w:jc/></w:pPr>{run('One ')}{run('two', '<w:b/>')}<w:proofErr/></w:p>")
    assert unpack(unchanged("a.docx", data)) == unpack(data)


def test_a_format_lands_on_the_words_that_it_was_on() -> None:
    data = docx(f"<w:p>{run('the ')}{run('black cat', '<w:b/>')}{run(' sleeps')}</w:p>")
    assert word_runs(translated("a.docx", data)) == [[("", "SLEEPS "), ("b", "CAT BLACK"), ("", " THE")]]
    most = docx(f"<w:p>{run('the black', '<w:i/>')}{run(' cat')}</w:p>")
    assert word_runs(translated("a.docx", most)) == [[("", "CAT"), ("i", " BLACK THE")]]


def test_a_word_that_is_cut_into_runs_is_one_word_for_the_model() -> None:
    data = docx(f"<w:p>{run('Hel')}<w:proofErr/>{run('lo wor')}{run('ld', '<w:lang/>')}</w:p>")
    assert read("a.docx", data).texts == ("Hello world",)


def test_tables_headers_footers_and_notes_are_translated_and_all_else_stays() -> None:
    paragraph = "<w:p>" + run("one &amp; two") + "</w:p>"
    table = f"<w:tbl><w:tr><w:tc>{paragraph}</w:tc></w:tr></w:tbl>"
    names = ("header1", "footer1", "footnotes", "endnotes")
    data = docx(table, **dict.fromkeys(names, paragraph))
    before, after = unpack(data), unpack(translated("a.docx", data))
    assert list(after) == list(before)
    for name in ("document", *names):
        assert b"TWO &amp; ONE" in after[f"word/{name}.xml"]
    untouched = ("[Content_Types].xml", "word/media/image1.png", "word/styles.xml")
    assert [after[name] for name in untouched] == [before[name] for name in untouched]


def test_links_go_with_their_words_and_notes_stay_at_theirs() -> None:
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    link = f'<w:hyperlink r:id="rId7">{run("two", "<w:u/>")}</w:hyperlink>'
    data = docx(f'<w:p xmlns:r="r">{run("one ")}{link}{run(" three")}{note}{run(" four")}</w:p>')
    document = unpack(translated("a.docx", data))["word/document.xml"].decode()
    places = [document.index(part) for part in ("FOUR", "THREE", note, "rId7", "ONE")]
    assert places == sorted(places)
    assert '<w:hyperlink r:id="rId7"><w:r><w:rPr><w:u/></w:rPr><w:t xml:space="preserve">TWO' in document


def test_tabs_and_line_breaks_stay_where_they_were() -> None:
    inner = '<w:r><w:t>one two</w:t><w:tab/><w:t>three four</w:t><w:br w:type="page"/><w:t>five six</w:t></w:r>'
    data = docx(f"<w:p>{inner}</w:p>")
    assert read("a.docx", data).texts == ("one two\tthree four\nfive six",)
    text = unpack(translated("a.docx", data))["word/document.xml"].decode()
    places = [text.index(part) for part in ("TWO ONE", "<w:tab/>", "FOUR THREE", '<w:br w:type="page"/>', "SIX FIVE")]
    assert places == sorted(places)


def test_fields_stay_and_the_text_of_a_link_field_is_translated() -> None:
    def field(code: str, result: str) -> str:
        kinds = [f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")]
        return f"{kinds[0]}<w:r><w:instrText>{code}</w:instrText></w:r>{kinds[1]}{run(result)}{kinds[2]}"

    reference, link = field(" REF x", "7"), field(' HYPERLINK "y" ', "two three")
    data = docx(f"<w:p>{run('see ')}{reference}{run(' and ')}{link}{run(' four')}</w:p>")
    assert read("a.docx", data).texts == ("see 7 and two three four",)
    text = unpack(translated("a.docx", data))["word/document.xml"].decode()
    assert reference in text
    assert "THREE TWO" in text.partition("HYPERLINK")[2].partition('"end"')[0]


def test_fields_within_fields_end_where_their_own_end_is() -> None:
    begin, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "end"))
    data = docx(f"<w:p>{end}{run('one ')}{begin}{run('two ')}{begin}{run('three ')}{end}{run('four')}</w:p>")
    assert read("a.docx", data).texts == ("one two four",)
    assert unpack(unchanged("a.docx", data)) == unpack(data)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "part",
    [
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
        "<w:fldSimple><w:r><w:t>a.b</w:t></w:r></w:fldSimple>",
        run("a ", "<w:b/>") + run("b "),
    ],
)
def test_a_paragraph_of_nothing_but_one_thing_takes_no_time(part: str) -> None:
    data = docx(f"<w:p>{run('one ')}{part * (900_000 // len(part))}{run('two')}</w:p>")
    document = read("a.docx", data)
    assert unpack(document.render(document.texts)) == unpack(data)
    document.render([f"{text} more" for text in document.texts])


@pytest.mark.parametrize("kind", ["commentRange", "bookmark"])
def test_a_range_does_not_end_before_it_begins(kind: str) -> None:
    start, end = f'<w:{kind}Start w:name="x" w:id="7"/>', f'<w:{kind}End w:id="7"/>'
    data = docx(f"<w:p>{run('one ')}{start}{run('two three')}{end}{run(' four')}</w:p>")
    text = unpack(translated("a.docx", data))["word/document.xml"].decode()
    assert "FOUR" in text
    assert 0 <= text.find(start) < text.find(end)


def test_an_odt_range_does_not_end_before_it_begins() -> None:
    start, end = '<text:bookmark-start text:name="x"/>', '<text:bookmark-end text:name="x"/>'
    text = unpack(translated("a.odt", odt(f"<text:p>one {start}two three{end} four</text:p>")))["content.xml"].decode()
    assert "FOUR" in text
    assert 0 <= text.find(start) < text.find(end)


def test_the_properties_of_an_element_stay_its_first() -> None:
    tag = '<w:smartTag w:element="date"><w:smartTagPr><w:attr w:name="a"/></w:smartTagPr>'
    data = docx(f"<w:p>{run('one ')}{tag}{run('two three')}</w:smartTag>{run(' four')}</w:p>")
    assert tag in unpack(translated("a.docx", data))["word/document.xml"].decode()


def test_a_part_that_is_listed_often_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files = unpack(docx(f"<w:p>{run('one two')}</w:p>"))
    types = files["[Content_Types].xml"]
    listed = types.removeprefix(b"<Types>").removesuffix(b"</Types>")
    read_parts: list[bytes] = []
    monkeypatch.setattr("dragoman.documents.docx.read_xml", lambda xml: read_parts.append(xml) or archive.read_xml(xml))
    data = pack(files | {"[Content_Types].xml": b"<Types>" + listed * 11 + b"</Types>"})
    assert read("a.docx", data).texts == ("one two",)
    assert len(read_parts) == 2


def test_text_in_a_text_box_is_translated_and_so_is_the_text_around_it() -> None:
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('five six')}</w:p></w:txbxContent></w:pict></w:r>"
    data = docx(f"<w:p>{run('one two')}{box}</w:p><w:p>{box}</w:p>")
    assert sorted(read("a.docx", data).texts) == ["five six", "five six", "one two"]
    assert unpack(unchanged("a.docx", data)) == unpack(data)
    text = unpack(translated("a.docx", data))["word/document.xml"].decode()
    assert (text.count("SIX FIVE"), text.count("TWO ONE"), text.count("<w:pict>")) == (2, 1, 2)


def test_deleted_text_stays_and_inserted_text_is_translated() -> None:
    deleted = '<w:del w:id="1"><w:r><w:delText>gone away</w:delText></w:r></w:del>'
    data = docx(f'<w:p>{run("one ")}{deleted}<w:ins w:id="2">{run("two")}</w:ins></w:p>')
    assert read("a.docx", data).texts == ("one two",)
    assert deleted in unpack(translated("a.docx", data))["word/document.xml"].decode()


@given(
    st.lists(st.tuples(st.sampled_from(["one ", "two", " three. ", "Four"]), st.sampled_from(["", "<w:b/>", "<w:i/>"])))
)
def test_any_runs_make_a_document_that_is_well_formed_with_all_words(runs: list[tuple[str, str]]) -> None:
    data = docx("<w:p>" + "".join(run(*one) for one in runs) + "</w:p>")
    document = read("a.docx", data)
    translations = [backwards(text) for text in document.texts]
    found = "".join(text for _, text in word_runs(document.render(translations))[0])
    assert found == "".join(translation.text for translation in translations)


# OpenDocument


def test_open_document_formats_land_on_their_words_and_all_else_stays() -> None:
    body = '<text:h>One <text:span text:style-name="T1">two</text:span> three</text:h><text:p>4</text:p>'
    data = odt(body, "<text:p>five six</text:p>")
    assert unpack(unchanged("a.odt", data)) == unpack(data)
    before, after = unpack(data), unpack(translated("a.odt", data))
    assert b'<text:h>THREE <text:span text:style-name="T1">TWO</text:span> ONE</text:h>' in after["content.xml"]
    assert b"<text:p>SIX FIVE</text:p>" in after["styles.xml"]
    assert next(iter(after)) == "mimetype"
    assert (after["mimetype"], after["Pictures/1.png"]) == (before["mimetype"], before["Pictures/1.png"])


def test_open_document_notes_are_translated_and_stay_at_their_word() -> None:
    note = "<text:note><text:note-citation>1</text:note-citation><text:p>{}</text:p></text:note>"
    data = odt(f"<text:p>one two{note.format('five six')} three</text:p>")
    assert sorted(read("a.odt", data).texts) == ["five six", "one two three"]
    assert (
        f"<text:p>THREE TWO{note.format('SIX FIVE')} ONE</text:p>".encode()
        in unpack(translated("a.odt", data))["content.xml"]
    )


def test_open_document_spaces_tabs_fields_and_entities() -> None:
    number = "<text:page-number>7</text:page-number>"
    data = odt(f"<text:p>a &lt; b<text:s/>c<text:tab/>d<text:line-break/>page {number}\n e</text:p>")
    assert read("a.odt", data).texts == ("a < b c\td\npage 7 e",)
    text = unpack(translated("a.odt", data))["content.xml"].decode()
    assert f"C B &lt; A<text:tab/>D<text:line-break/>E {number} PAGE</text:p>" in text


def test_what_was_deleted_or_commented_in_an_open_document_stays() -> None:
    body = (
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>one two<office:annotation><text:p>hm"
    )
    data = odt(body + "</text:p></office:annotation></text:p>")
    assert read("a.odt", data).texts == ("one two",)


# Hostile files


def test_what_is_no_document_is_refused() -> None:
    damaged = "the file is damaged or encrypted, expected a document as a word processor saves it"
    assert refusal("a.docx", b"") == refusal("a.odt", b"PK\3\4 and so on") == damaged
    assert refusal("a.docx", odt("")) == "the file has no [Content_Types].xml, expected a Word document (.docx)"
    assert refusal("a.odt", docx("")) == "the file has no content.xml, expected an OpenDocument text (.odt)"
    empty = pack({"[Content_Types].xml": "<Types/>"})
    assert refusal("a.docx", empty) == "the file has no Word text in it, expected a Word document (.docx)"


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = pack({"content.xml": b" " * (3 << 20)})
    picture = unpack(odt("<text:p>one two</text:p>")) | {"Pictures/white.bmp": b"\xff" * (3 << 20)}
    assert b"TWO ONE" in unpack(translated("a.odt", pack(picture)))["content.xml"]
    assert refusal("a.odt", bomb) == "a part of the document unpacks to more than 200 times its size: it is no text"
    monkeypatch.setattr(archive, "MOST_BYTES", 1009)
    large = "the document unpacks to 1013 bytes, at most 1009 are taken"
    assert refusal("a.odt", pack({"content.xml": b" " * 1013})) == large
    monkeypatch.setattr(archive, "MOST_ENTRIES", 7)
    many = pack({f"{number}": b"" for number in range(11)})
    assert refusal("a.odt", many) == "the document has 11 parts, at most 7 are taken"


def test_an_archive_that_lies_about_its_sizes_is_refused() -> None:
    def lying(num_bytes: int) -> bytes:
        data = bytearray(pack({"content.xml": b"x" * 997}))
        size = data.rindex(b"PK\1\2") + 24
        data[size : size + 4] = struct.pack("<L", num_bytes)
        return bytes(data)

    assert refusal("a.odt", lying(1009)) == "a part of the document is not as long as it says: save it again"
    assert refusal("a.odt", lying(13)).startswith("the file is damaged or encrypted")


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.xml", "a/../../up.xml", "..\\up.xml"])
def test_names_that_lead_out_of_an_archive_are_refused(name: str) -> None:
    expected = "the document has a part whose name leads out of it, which no word processor writes"
    assert refusal("a.odt", pack({"content.xml": "<a/>", name: "x"})) == expected


def test_two_entries_of_one_name_are_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("content.xml", "<a/>")
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("content.xml", "<b/>")
    assert (
        refusal("a.odt", buffer.getvalue()) == "the document has two parts of one name, which no word processor writes"
    )


def test_unusual_packing_is_refused() -> None:
    data = pack({"content.xml": "<a/>"}, zipfile.ZIP_LZMA)
    assert refusal("a.odt", data) == "the document is packed in a way that no word processor uses: save it again"


def test_entities_are_refused_and_never_expanded() -> None:
    laughs = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;">]><a>&c;</a>'
    outside = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'
    for text in (laughs, outside):
        expected = "the document declares a document type or entities, which no word processor writes"
        assert refusal("a.odt", pack({"content.xml": text})) == expected


def test_deep_large_and_broken_xml_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = pack({"content.xml": "<a>" * 1009 + "</a>" * 1009})
    assert refusal("a.odt", deep) == "the document is nested more than 256 deep: it cannot be read"
    broken = refusal("a.odt", pack({"content.xml": "<a><b></a>"}))
    assert broken.startswith("the document is damaged (mismatched tag")
    assert broken.endswith("open it in a word processor and save it again")
    coded = refusal("a.odt", pack({"content.xml": '<?xml version="1.0" encoding="unicode_escape"?><a/>'}))
    assert coded == "the document is written in unicode_escape, expected UTF-8: save it again"
    monkeypatch.setattr(archive, "MOST_XML_BYTES", 11)
    large = refusal("a.odt", pack({"content.xml": "<a>12345678</a>"}))
    assert large == "the document has 15 bytes of text and marks, at most 11 are taken"


def test_text_within_text_is_read_only_so_deep() -> None:
    body = "<text:p>a<draw:x>" * 29 + "</draw:x></text:p>" * 29
    assert refusal("a.odt", odt(body)) == "the document has text within text more than 16 deep: it cannot be read"


@given(st.binary(max_size=61), st.integers(0, 997), st.sampled_from([".docx", ".odt"]))
def test_a_damaged_document_is_refused_or_read_but_never_an_accident(noise: bytes, at: int, extension: str) -> None:
    whole = docx(f"<w:p>{run('one two')}</w:p>") if extension == ".docx" else odt("<text:p>one two</text:p>")
    at %= len(whole)
    data = whole[:at] + noise + whole[at + len(noise) :]
    try:
        document = read(f"a{extension}", data)
    except DataError:
        return
    document.render(document.texts)


def test_latin_1_is_what_browsers_take_it_for() -> None:
    page = b"<meta charset=iso-8859-1><p>L\x92homme</p>"
    assert read("a.html", page).texts == ("L’homme",)
    assert unchanged("a.html", page) == page
    assert unchanged("a.html", page + b"\x81") == page + b"\x81"


def test_every_extension_has_a_content_type() -> None:
    assert set(CONTENT_TYPES) == set(EXTENSIONS)
