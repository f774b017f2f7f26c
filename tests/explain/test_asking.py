"""What may be asked, and how it is refused; and where pieces stand in their text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DataError, LengthError
from dragoman.explain import Explainer, Trace, TraceRequest
from dragoman.explain.pieces import source_side, target_side, written_spans
from dragoman.explain.request import parse_head, parse_request
from tiny_bundle import tiny_tokenizer


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "the request is a list, expected an object with a text"),
        ({}, "the request has no text, expected the text to explain"),
        ({"text": "a", "beem": 3}, "unknown key 'beem': did you mean 'beam'?"),
        ({"text": "a", "beam": "3"}, "beam is '3', expected a whole number"),
        ({"text": "a", "beam": 0}, "beam is 0, expected at least 1"),
        ({"text": "a", "top": 0}, "top is 0, expected at least 1"),
        ({"text": "a", "sentence": -1}, "sentence is -1, expected at least 0"),
        ({"text": "a", "length_penalty": 1e308}, "length_penalty is 1e+308, expected a number from -10 to 10"),
        ({"text": "a", "length_penalty": -11}, "length_penalty is -11.0, expected a number from -10 to 10"),
        ({"text": "a", "target_ids": []}, "target_ids is empty, expected at least the end piece"),
        ({"text": "a", "off": ["encoder.0.cross_attention.1"]}, "'encoder.0.cross_attention.1' does not name a head"),
        ({"text": "a", "off": ["decoder.self_attention"]}, "say encoder.0.self_attention.3"),
        ({"text": "a", "off": [f"encoder.{'9' * 4301}.self_attention.0"]}, "9' does not name a head"),
        ({"text": "a", "off": ["encoder.0.self_attention.٣"]}, "'encoder.0.self_attention.٣' does not name a head"),
    ],
)
def test_what_cannot_be_is_refused(values: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_request(values)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200


def test_what_is_no_number_is_no_penalty() -> None:
    with pytest.raises(ConfigError, match="length_penalty is nan, expected a number from -10 to 10"):
        TraceRequest(text="a", length_penalty=float("nan"))


def test_a_request_is_read_as_it_was_written() -> None:
    values = {
        "text": "a",
        "prefix": [5, 3],
        "target_ids": None,
        "length_penalty": 1,
        "off": ["decoder.1.self_attention.0"],
    }
    request = parse_request(values)
    assert request == TraceRequest(text="a", prefix=(5, 3), length_penalty=1.0, off=("decoder.1.self_attention.0",))


def test_a_head_has_a_name_and_a_kind() -> None:
    head = parse_head("decoder.12.cross_attention.3")
    assert (head.kind, head.layer, head.head, str(head)) == ("cross", 12, 3, "decoder.12.cross_attention.3")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"text": " \n"}, DataError, r"there is nothing to translate in ' \\n', expected a sentence"),
        ({"text": "Ba. Ce.", "sentence": 2}, ConfigError, "no sentence has 2 before it: the text has 2 in all"),
        ({"text": "ba " * 70}, LengthError, "the model takes at most 67: explain a part of it"),
        ({"text": "Ba.", "prefix": (333,)}, ConfigError, "prefix has 333, the model's pieces are 0 to 332"),
        ({"text": "Ba.", "target_ids": (-1,)}, ConfigError, "target_ids has -1, the model's pieces are 0 to 332"),
        ({"text": "Ba.", "target_ids": (7,) * 68}, LengthError, "target_ids has 68 pieces, the model takes at most 67"),
        ({"text": "Ba.", "prefix": (7,) * 68}, LengthError, "prefix has 68 pieces, the model takes at most 67"),
        ({"text": "Ba.", "source": "de"}, ConfigError, "this model does not translate de-any language"),
        ({"text": "Ba.", "off": ("encoder.5.self_attention.0",)}, ConfigError,
         "there is no head encoder.5.self_attention.0: the encoder has 2 layers of 2 heads, counted from 0"),
    ],
)  # fmt: skip
def test_what_the_model_cannot_do_is_refused(
    explainer: Explainer, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        explainer.trace(**options)


def test_one_sentence_of_a_text_is_explained(explainer: Explainer) -> None:
    text = "Baceba dila. Gupo lame ni!"
    first, second = explainer.trace(text), explainer.trace(text, sentence=1)
    assert first.sentences == second.sentences == ("Baceba dila.", "Gupo lame ni!")
    assert (first.source.text, second.source.text) == first.sentences
    assert second.request.sentence == 1


def test_the_direction_decides_the_tag_at_the_head_of_the_source(explainer: Explainer) -> None:
    tags = [explainer.trace("Ba.", source=source).source.pieces[0] for source in ("fr", "en")]
    assert [(tag.piece, tag.special, tag.word) for tag in tags] == [("<2en>", True, None), ("<2fr>", True, None)]


def test_a_forced_beginning_is_kept_and_the_search_goes_on(explainer: Explainer, trace: Trace) -> None:
    other = trace.steps[1].top[1].id
    prefix = (trace.target.pieces[0].id, other)
    forced = explainer.trace(trace.source.text, prefix=prefix)
    assert tuple(piece.id for piece in forced.target.pieces)[:2] == prefix
    assert forced.request.prefix == prefix
    assert forced.beam is not None
    assert len(forced.steps) > 2


# Pieces


def test_spans_of_the_source_lead_back_to_its_text(trace: Trace) -> None:
    side = trace.source
    for piece in side.pieces:
        if not piece.special:
            # A mark on its own has nothing to show.
            assert side.text[piece.start : piece.end] == piece.text.removeprefix("▁")
    assert [word.text for word in side.words] == side.text.split()
    assert [piece.piece for piece in side.pieces if piece.special] == ["<2en>", "</s>"]
    for number, word in enumerate(side.words):
        assert {side.pieces[place].word for place in word.pieces} == {number}


@given(st.text(max_size=23))
def test_spans_of_what_was_written_cover_its_text_without_the_spaces(text: str) -> None:
    tokenizer = tiny_tokenizer()
    ids = tokenizer.encode(text).ids
    written, spans = written_spans(tokenizer, ids)
    covered = sorted({place for start, end in spans for place in range(start, end)})
    assert [place for place in range(len(written)) if not written[place].isspace()] == [
        place for place in covered if not written[place].isspace()
    ]
    assert spans == sorted(spans)


def test_the_bytes_of_a_character_share_its_span() -> None:
    tokenizer = tiny_tokenizer()
    ids = [*tokenizer.encode("ba 翻").ids, tokenizer.end_id]
    side = target_side(tokenizer, ids)
    characters = [piece for piece in side.pieces if piece.piece.startswith("<0x")]
    assert [(piece.start, piece.end, piece.text) for piece in characters] == [(3, 4, "翻")] * 3
    assert [word.text for word in side.words] == ["ba", "翻"]
    assert side.pieces[-1].special


def test_source_and_target_agree_on_where_a_text_has_its_pieces() -> None:
    tokenizer = tiny_tokenizer()
    text = "Baceba, dila gupo."
    source, target = source_side(tokenizer, text, []), target_side(tokenizer, tokenizer.encode(text).ids)
    assert source.pieces[:-1] == target.pieces
    assert source.words == target.words
