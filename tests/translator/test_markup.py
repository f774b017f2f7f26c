"""HTML and XML, translated: nothing is lost, and tags land on the words they were on."""

import random
import re
from collections import Counter
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from shuffling import shuffled, unchanged

from dragoman.errors import DataError
from dragoman.translator import Link, SentenceTranslation, Translation
from dragoman.translator.markup import parse
from dragoman.translator.markup_tokens import attributes, tokenize

FRAGMENTS = [
    "<b>", "</b>", "<i>", "</i>", "<a href='x>y'>", "</a>", "<p>", "</p>", "<div>", "</div>", "<br>", "<img src=a>",
    "<", ">", "<b", "</", "<!--", "-->", "<!", "<?", '="', "='", '"', "'", "&amp;", "&nbsp;", "&#233;", "&", "&notit;",
    "&#1;", "&x;", "<script>", "</script>", "<code>", "</code>", '<i translate="no">', "<sup>1</sup>", "<li>", "{1}",
    "<![CDATA[", "]]>", "<p translate=no>", "<u translate=yes>", "one", "two", "Three", "four.", "É", " ", "\n", "\t",
    "\u00a0", ", ", "! ",
]  # fmt: skip
SOUP = st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=29).map("".join))


def backwards(page: str, **rules: bool) -> str:
    """The page, the words of each of its sentences backwards and in capitals."""
    markup = parse(page, **rules)
    return markup.render([shuffled(text) for text in markup.texts])


# Nothing is lost


@given(SOUP)
def test_tokens_joined_are_the_text(text: str) -> None:
    for xml in (False, True):
        assert "".join(token.raw for token in tokenize(text, xml=xml)) == text


@given(SOUP)
@example("<b>a</b>&notit;. B<i></b>c</i>")
def test_a_page_that_is_translated_into_itself_is_the_same_byte_for_byte(text: str) -> None:
    for xml in (False, True):
        markup = parse(text, xml=xml)
        assert markup.render(markup.texts) == text
        assert markup.render(list(map(unchanged, markup.texts))) == text


@given(SOUP, st.booleans())
def test_every_tag_and_every_word_survives_any_order_of_words(text: str, align: bool) -> None:
    markup = parse(text)
    page = markup.render([shuffled(one, align=align) for one in markup.texts])
    tags = Counter(token.raw for token in tokenize(text) if token.kind != "text")
    assert Counter(token.raw for token in tokenize(page) if token.kind != "text") == tags


@given(st.lists(st.sampled_from(["<b>", "</b>", "<i>", "</i>", "one ", "two", " three. ", "Four"]), max_size=23))
def test_the_text_between_tags_is_the_translation(parts: list[str]) -> None:
    markup = parse("".join(parts))
    page = markup.render([shuffled(one) for one in markup.texts])
    words = re.sub(r"<[^>]*>", "", page).split()
    assert words == " ".join(shuffled(one).text for one in markup.texts).split()


@given(
    st.lists(
        st.sampled_from(["<b>", "</b>", "<i translate=no>Big Apple</i>", "<kbd>;</kbd>", "<br>", " one", " two "])
    ),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0.0, 1.0)), max_size=17),
    st.lists(st.sampled_from(["eins", "Big", "Apple", "{1}", "{2}", "zwei.", "("])),
)
def test_whatever_the_model_writes_and_aligns_all_tags_are_there_once(
    parts: list[str], links: list[tuple[int, int, float]], words: list[str]
) -> None:
    page = "".join(parts)
    markup = parse(page)
    alignment = tuple(Link(*link) for link in links)
    target = " ".join(words)
    translations = [
        Translation(target, 0.0, 1.0, (SentenceTranslation(text.strip(), target, 0.0, 1.0, alignment),))
        for text in markup.texts
    ]
    rendered = markup.render(translations)
    expected = Counter(token.raw for token in tokenize(page) if token.kind != "text")
    assert Counter(token.raw for token in tokenize(rendered) if token.kind != "text") == expected


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> str:
    """Words and well-formed inline elements, among them empty ones."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        if depth and draw(st.booleans()):
            name = draw(st.sampled_from(["b", "i", "u"]))
            parts.append(f"<{name}>{draw(nested(depth - 1))}</{name}>")
        else:
            parts.append(draw(st.sampled_from(["one", "two.", "Three", " ", ", four "])))
    return "".join(parts)


@given(nested(), st.integers(0, 997))
def test_what_was_nested_well_is_nested_well(page: str, seed: int) -> None:
    markup = parse(page)
    draw = random.Random(seed)
    rendered = markup.render([shuffled(text, lambda count: draw.sample(range(count), count)) for text in markup.texts])
    opened: list[str] = []
    for token in tokenize(rendered):
        if token.kind == "open":
            opened.append(token.name)
        elif token.kind == "close":
            assert opened.pop() == token.name
    assert opened == []


@pytest.mark.parametrize(
    "part",
    ["<", "</", "<!", "<a ", '<a b="', "<a ='", '<a ="<b "', "<b>x ", "<code>", "<sup>", "<b><p>", "&", "<b></i>"],
)
def test_a_hundred_thousand_brackets_take_no_time(part: str) -> None:
    text = part * (100_003 // len(part))
    markup = parse(text)
    assert markup.render(markup.texts) == text
    markup.render([f"{text} more" for text in markup.texts])


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("head", "part", "tail"),
    [
        ("", "<b translate=no><b translate=yes>", "<p>x</p>"),
        ("", "x <code>a</code> ", ""),
        ("", "x <code>a.b</code> ", ""),
        ("", "x<b>y</b> ", ""),
        ("", "<b>x</b>&nbsp;", ""),
    ],
)
def test_a_page_of_nothing_but_one_thing_takes_no_time(head: str, part: str, tail: str) -> None:
    page = head + part * (100_003 // len(part)) + tail
    markup = parse(page)
    rendered = markup.render([f"{text} more" for text in markup.texts])
    opened, opened_again = ([one.raw for one in tokenize(text) if one.kind == "open"] for text in (page, rendered))
    assert opened == opened_again


def test_spelled_characters_are_spelled_again_however_many_there_are() -> None:
    page = "".join(f"x<b>y</b>&#{number};" for number in range(0xE000, 0xF000))
    (text,) = parse(page).texts
    assert parse(page).render([text.upper()]).count("&#") == 0x1000


def test_thousands_of_elements_one_in_the_other_are_rendered() -> None:
    depth = 10_007
    page = "one " + "<b>" * depth + "two" + "</b>" * depth + " three"
    assert backwards(page) == "THREE " + "<b>" * depth + "TWO" + "</b>" * depth + " ONE"
    staircase = "<b>one " * 499 + "end" + "</b>" * 499
    assert backwards(staircase).count("<b>") == 499


# Tags land on their words


@pytest.mark.parametrize(
    ("page", "translated"),
    [
        ("<p>the <b>black cat</b> sleeps</p>", "<p>SLEEPS <b>CAT BLACK</b> THE</p>"),
        ("<b>one</b> two three", "THREE TWO <b>ONE</b>"),
        ("one two <b>three</b>", "<b>THREE</b> TWO ONE"),
        ("<p><b>all of it.</b></p>", "<p><b>IT. OF ALL</b></p>"),
        ("<p><i><b>all of it.</b></i></p>", "<p><i><b>IT. OF ALL</b></i></p>"),
        ("one <b>two <i>three</i></b> four", "FOUR <b><i>THREE</i> TWO</b> ONE"),
        ("one <b><i>two</i></b> three", "THREE <b><i>TWO</i></b> ONE"),
        ("one <b>two</b> <i>three</i> four", "FOUR <i>THREE</i> <b>TWO</b> ONE"),
        ("one <b>two</b><i> three</i> four", "FOUR <i>THREE</i> <b>TWO</b> ONE"),
        ("one <a name=x></a>two three", "THREE <a name=x></a>TWO ONE"),
        ("one <a title='a > b' href=\"?a<b\">two</a> three", "THREE <a title='a > b' href=\"?a<b\">TWO</a> ONE"),
        ("One <b>two</b> three! <b>Four</b> five!", "THREE! <b>TWO</b> ONE FIVE! <b>FOUR</b>"),
        ("<b>One two. Three four.</b>", "<b>TWO. ONE FOUR. THREE</b>"),
        ("<ul><li>one <b>two</b><li>three four</ul>", "<ul><li><b>TWO</b> ONE<li>FOUR THREE</ul>"),
        ("<a>Home sweet</a><a>About us</a>", "<a>SWEET HOME</a><a>US ABOUT</a>"),
    ],
)
def test_tags_land_on_the_words_they_were_on(page: str, translated: str) -> None:
    assert backwards(page) == translated


def test_punctuation_is_inside_a_tag_only_if_it_was_there() -> None:
    assert backwards("see <b>cats</b> (or <i>dogs</i>), yes") == "YES <i>DOGS</i>), (OR <b>CATS</b> SEE"
    assert backwards("<b>Note:</b> one two") == "TWO ONE <b>NOTE:</b>"
    page = parse("un <b>chat</b> noir dort.")
    links = (Link(0, 0, 1.0), Link(2, 1, 1.0), Link(1, 2, 1.0), Link(3, 3, 1.0))
    ending = SentenceTranslation("un chat noir dort.", "a black cat. sleeps", 0.0, 1.0, links)
    assert page.render([Translation(ending.target, 0.0, 1.0, (ending,))]) == "a black <b>cat</b>. sleeps"


def test_an_element_takes_the_run_with_most_of_its_words_and_is_opened_once() -> None:
    page = parse("<b>one two three</b> four five")
    sentence = SentenceTranslation(
        "one two three four five", "eins vier drei zwei fünf", 0.0, 1.0,
        (Link(0, 0, 1.0), Link(3, 1, 0.6), Link(2, 2, 1.0), Link(1, 3, 1.0), Link(4, 4, 1.0)),
    )  # fmt: skip
    assert page.render([Translation(sentence.target, 0.0, 1.0, (sentence,))]) == "<b>eins vier drei zwei</b> fünf"
    far = SentenceTranslation(
        sentence.source, "eins vier fünf drei zwei", 0.0, 1.0,
        (Link(0, 0, 1.0), Link(3, 1, 1.0), Link(4, 2, 1.0), Link(2, 3, 1.0), Link(1, 4, 1.0)),
    )  # fmt: skip
    assert page.render([Translation(far.target, 0.0, 1.0, (far,))]) == "eins vier fünf <b>drei zwei</b>"


def test_a_tag_inside_a_word_finds_its_letters_again_if_they_stayed() -> None:
    markup = parse("the 1<sup>er</sup> m<i>2</i> of H<sub>2</sub>O now, <span>O</span>nce")
    words = {"1er": "1st", "Once": "Il"}
    page = markup.render([shuffled(text, range, lambda word: words.get(word, word)) for text in markup.texts])
    assert page == "the 1<sup>st</sup> m<i>2</i> of H<sub>2</sub>O now, <span>I</span>l"


def test_a_note_mark_stays_at_its_word_and_out_of_the_models_sight() -> None:
    markup = parse('one two<sup id=a><a href="#n">[1]</a></sup> three')
    assert markup.texts == ("one two three",)
    assert markup.render(list(map(shuffled, markup.texts))) == 'THREE TWO<sup id=a><a href="#n">[1]</a></sup> ONE'


def test_without_an_alignment_tags_go_by_position_and_by_words_that_stayed() -> None:
    markup = parse("one <b>two</b> three <i>1984</i> four")
    assert markup.render(["un deux trois 1984 quatre"]) == "un <b>deux</b> trois <i>1984</i> quatre"
    assert markup.render(["1984 un deux trois quatre"]).startswith("<i>1984</i> ")


def test_an_element_whose_words_became_nothing_is_still_seen() -> None:
    page = parse("go <a href=x>now</a> home")
    gone = SentenceTranslation("go now home", "rentre chez toi", 0.0, 1.0, tuple(Link(2, at, 1.0) for at in range(3)))
    assert page.render([Translation(gone.target, 0.0, 1.0, (gone,))]) == "<a href=x>rentre</a> chez toi"


# Breaks and images


@pytest.mark.parametrize(
    ("page", "translated"),
    [
        ("<p><label><input type=checkbox> one two</label> three.</p>", ("<label><input type=checkbox>", "</label>")),
        ("<p><a href=x><img src=i>one</a> two three.</p>", ("<a href=x><img src=i>", "</a>")),
        ("<p>one <a>two<i class=icon></i></a></p>", ("<a>", "<i class=icon></i></a>")),
    ],
)
def test_what_stands_in_an_element_before_or_after_its_words_stays_in_it(
    page: str, translated: tuple[str, str]
) -> None:
    opening, closing = (re.escape(part) for part in translated)
    assert re.search(rf"{opening} ?[A-Z ]+{closing}", backwards(page)), backwards(page)


def test_a_line_break_ends_a_sentence_unless_it_plainly_goes_on() -> None:
    assert parse("my dear<br>friend").texts == ("my dear friend",)
    assert parse("My dear.<br>friend").texts == ("My dear.", "friend")
    assert parse("12 High Street<br>London").texts == ("12 High Street", "London")
    assert parse("one<br><br>two").texts == ("one", "two")
    assert parse("one <b>two<br>\nthree</b>").texts == ("one two three",)


def test_a_line_break_within_a_sentence_parts_the_words_it_parted() -> None:
    markup = parse("one two<br>\nthree four")
    page = markup.render([shuffled(text, lambda count: [1, 0, 3, 2]) for text in markup.texts])
    assert page == "TWO ONE<br>\nFOUR THREE"


def test_an_image_stays_at_the_word_it_stood_at_and_keeps_its_spaces() -> None:
    assert backwards("one <img src=x>two three") == "THREE <img src=x>TWO ONE"
    assert backwards("one <img src=x> two three") == "THREE <img src=x> TWO ONE"
    assert backwards("<img src=x> one two") == "<img src=x> TWO ONE"


def test_an_element_over_two_sentences_parts_the_words_it_parted() -> None:
    markup = parse("one two <b>three four! Five six</b> seven eight!")
    page = markup.render([shuffled(text, lambda count: [1, 0, 3, 2]) for text in markup.texts])
    assert page == "TWO ONE <b>FOUR! THREE SIX FIVE</b> EIGHT! SEVEN"


# What is not translated


@pytest.mark.parametrize(
    "part",
    [
        "<!-- one two -->", "<!DOCTYPE html>", "<script>if (a<b) one('</b>')</script>", "<style>p > b {}</style>",
        "<pre>one  <b>two</b>\n</pre>", "<textarea>one <b> two</textarea>", "<p translate=no>one <b>two</b></p>",
        '<div class="x notranslate">one<p>two</p></div>', "<?php one two ?>", "<svg><text>one two</text></svg>",
        '<meta content="one two">', "<hr>", "\r\n\t ", "<p>&nbsp;</p>", "<p>...</p>",
    ],
)  # fmt: skip
def test_what_is_not_for_translation_stays_byte_for_byte(part: str) -> None:
    assert parse(f"<p>a b</p>{part}<p>c d</p>").texts == ("a b", "c d")
    assert backwards(f"<p>a b</p>{part}<p>c d</p>") == f"<p>B A</p>{part}<p>D C</p>"


def test_translate_yes_within_translate_no_is_translated() -> None:
    page = "<div translate=no>a b<p translate=yes>c d</p>e f</div><p>g h</p>"
    assert parse(page).texts == ("c d", "g h")


def test_code_within_a_sentence_is_a_placeholder_for_the_model_and_comes_back_as_it_was() -> None:
    markup = parse("call <code>f(<b>x</b>)</code> now, not {1} or <kbd>&lt;y&gt;</kbd>")
    assert markup.texts == ("call {2} now, not {1} or {3}",)
    expected = "<kbd>&lt;y&gt;</kbd> OR {1} NOT NOW, <code>f(<b>x</b>)</code> CALL"
    assert markup.render(list(map(shuffled, markup.texts))) == expected


def test_a_placeholder_that_got_lost_or_doubled_does_no_harm() -> None:
    markup = parse("call <code>f()</code> now")
    assert markup.render(["appelle {1} {1} maintenant"]) == "appelle <code>f()</code>  maintenant"
    assert markup.render(["maintenant"]) == "<code>f()</code> maintenant"
    assert markup.render([""]).count("<code>f()</code>") == 1


def test_a_name_that_must_stay_is_seen_by_the_model_and_put_back_for_what_became_of_it() -> None:
    markup = parse("the <span translate=no>Big Apple</span> sleeps <b>now</b>")
    assert markup.texts == ("the Big Apple sleeps now",)
    page = markup.render([shuffled(markup.texts[0], lambda count: [4, 3, 0, 1, 2])])
    assert page == "<b>NOW</b> SLEEPS THE <span translate=no>Big Apple</span>"


# Characters


def test_entities_are_characters_for_the_model_and_entities_again_where_needed() -> None:
    markup = parse("<p>caf&#233; &amp; th&eacute; &lt;3 &nbsp; x\u00a0y&nbsp;z</p>")
    assert markup.texts == ("café & thé <3 \u00a0 x\u00a0y\u00a0z",)
    assert markup.render(["thé > café & a\u00a0b"]) == "<p>thé &gt; café &amp; a&nbsp;b</p>"


@given(st.text())
def test_no_translation_becomes_markup(text: str) -> None:
    page = parse("<p>a <b>b</b> c</p>").render([text])
    assert [token.raw for token in tokenize(page) if token.kind != "text"] == ["<p>", "<b>", "</b>", "</p>"]
    plain = unescape("".join(token.raw for token in tokenize(page) if token.kind == "text"))
    assert plain.split() == unescape(text.replace("&", "&amp;")).split()


def test_a_sentence_that_comes_back_unchanged_keeps_its_bytes_beside_one_that_does_not() -> None:
    markup = parse("Caf&eacute;\n  <b>42</b>! One two.")
    text = markup.texts[0]
    first, second = shuffled(text, range, str).sentences[0], shuffled(text).sentences[1]
    page = markup.render([Translation(f"{first.target} {second.target}", 0.0, 1.0, (first, second))])
    assert page == "Caf&eacute;\n  <b>42</b>! TWO. ONE"


def test_attributes_are_read_as_they_are_written() -> None:
    assert attributes("<a HREF='x>y' b = \"c\" d e=f/>") == {"href": "x>y", "b": "c", "d": "", "e": "f/"}


# XML


def test_xml_elements_beside_text_are_inline_and_others_are_structure() -> None:
    page = "<doc><par>one <x id='1'>two</x></par><par><s>three four</s></par></doc>"
    assert parse(page, xml=True).texts == ("one two", "three four")
    assert backwards(page, xml=True) == "<doc><par><x id='1'>TWO</x> ONE</par><par><s>FOUR THREE</s></par></doc>"
    assert parse("a<b/>c", xml=True).texts == ("ac",)


def test_xml_is_told_what_splits_and_what_stays() -> None:
    page = "<d>one <k>two</k> three<s/>four</d>"
    assert parse(page, xml=True, ignore_tags=["k"]).texts == ("one two threefour",)
    assert parse(page, xml=True, splitting_tags=["s"]).texts == ("one two three", "four")
    structure = "<d><p>one</p><p>two</p></d>"
    assert parse(structure, xml=True, non_splitting_tags=["p"]).texts == ("onetwo",)
    assert parse(structure, xml=True, outline_detection=False).texts == ("onetwo",)


def test_an_entity_that_only_its_document_knows_stays() -> None:
    assert backwards("one &product; two &amp; three", xml=True).count("&product;") == 1


# The page as a whole


def test_a_page_is_assembled_with_what_is_known_of_its_texts() -> None:
    markup = parse("<p>one <b>two</b></p><p>three</p>")
    first = Translation("ONE TWO", -2.0, 0.5, shuffled("one two").sentences, ("loud",), ("1 2",))
    second = Translation("THREE", -1.0, 0.25, shuffled("three").sentences, ("loud",))
    whole = markup.assemble([first, second])
    assert whole.text == "<p>ONE <b>TWO</b></p><p>THREE</p>"
    assert whole.alternatives == ("<p>1 <b>2</b></p><p>THREE</p>",)
    assert (whole.warnings, whole.confidence) == (("loud",), 0.5)
    assert markup.needs_alignment
    assert not parse("<p><b>one two</b></p> three").needs_alignment


def test_a_page_wants_as_many_translations_as_it_has_texts() -> None:
    with pytest.raises(DataError, match="3 translations for 2 texts: give one a text"):
        parse("<p>a</p><p>b</p>").render(["a", "b", "c"])
    with pytest.raises(DataError, match="1 translations for 2 texts: give one a text"):
        parse("<p>a</p><p>b</p>").render(["a"])
