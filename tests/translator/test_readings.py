"""A sentence in other pieces: what the model is surer of is kept."""

from typing import Any

import pytest
from fake_engine import FakeEngine, fake_translator

from dragoman.recipe import TokenizerConfig
from dragoman.text.tokenizer import Tokenizer
from dragoman.translator import Sampling, Translation
from dragoman.translator.drafts import Scribe
from dragoman.translator.readings import second_reading

TEXTS = [
    "un éléphant noir", "deux éléphants", "il a l'eau", "l'or et l'eau", "Il a un éléphant", "le zébu", "des zébus",
    "l'âne", "l'os", "l'ami", "l'été", "the black elephant", "the fond", "an elephant", "zebus",
]  # fmt: skip
CUT_UP, APART = "l'éléphant noir", "l' éléphant noir"
ANSWERS = {
    CUT_UP: ("the fond", "the black fond"),
    APART: ("the black elephant", "an elephant"),
    "Zébus noirs": ("the black fond", "the fond"),
    "zébus noirs": ("black zebus", "zebus"),
}
POOR = {"the fond": 1.0, "the black fond": 1.0}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(TEXTS * 7, TokenizerConfig(vocab_size=400))


def translate(
    text: str, tokenizer: Tokenizer, doubts: dict[str, float] = POOR, max_length: int = 61, **options: Any
) -> tuple[Translation, FakeEngine]:
    translator, engine = fake_translator(
        lambda source, decode, demand: ANSWERS[source][: decode.num_best],
        doubts=doubts,
        tokenizer=tokenizer,
        max_length=max_length,
    )
    return translator.translate(text, **options), engine


@pytest.mark.parametrize(
    ("text", "pieces", "is_small"),
    [
        ("l'éléphant noir", ["▁l'", "▁éléphant", "▁noir"], False),
        ("un  l'éléphant, l'eau", ["▁un", "▁l'", "▁éléphant", "<0x2C>", "▁l'eau"], False),
        ("Zébus, l'éléphants", ["▁zébus", "<0x2C>", "▁l'", "▁éléphants"], True),
    ],
)
def test_a_word_that_is_cut_up_is_read_by_itself(
    text: str, pieces: list[str], is_small: bool, tokenizer: Tokenizer
) -> None:
    found = second_reading(text, Scribe(tokenizer, "en"))
    assert found is not None
    assert (tokenizer.pieces(found.ids), found.is_small) == ([*pieces, "</s>"], is_small)


@pytest.mark.parametrize("text", ["l'eau", "l'os et l'or", "un éléphant", "le Zébu", "qu'éléphant", "Il a l'été", ""])
def test_what_is_read_well_has_no_second_reading(text: str, tokenizer: Tokenizer) -> None:
    assert second_reading(text, Scribe(tokenizer, "en")) is None


def test_the_likelier_translation_is_kept(tokenizer: Tokenizer) -> None:
    found, engine = translate(CUT_UP, tokenizer, align=True, alternatives=1)
    assert (found.text, found.alternatives, found.warnings) == ("the black elephant", ("an elephant",), ())
    assert [call.sources for call in engine.calls] == [[CUT_UP], [APART]]
    # What was written is what is shown and aligned.
    assert found.sentences[0].source == CUT_UP
    assert found.sentences[0].alignment
    sure = {"the fond": 0.05, "the black elephant": 0.2}
    assert translate(CUT_UP, tokenizer, sure)[0].text == "the fond"


def test_a_small_letter_that_was_read_is_a_capital_again(tokenizer: Tokenizer) -> None:
    found, engine = translate("Zébus noirs", tokenizer, align=True, alternatives=1)
    assert (found.text, found.alternatives) == ("Black zebus", ("Zebus",))
    ((_, target),) = engine.attended
    assert engine.tokenizer.decode(target) == "Black zebus"


def test_a_likelier_one_with_a_problem_more_is_not_taken(tokenizer: Tokenizer) -> None:
    cut_off = {**ANSWERS, APART: ("the black …",)}
    translator, _ = fake_translator(
        lambda source, decode, demand: cut_off[source][: decode.num_best], doubts=POOR, tokenizer=tokenizer
    )
    assert translator.translate(CUT_UP).text == "the fond"


def test_it_is_not_done_without_guards_nor_when_a_translation_is_drawn(tokenizer: Tokenizer) -> None:
    for options in ({"guards": False}, {"sampling": Sampling(seed=1)}):
        _, engine = translate(CUT_UP, tokenizer, **options)
        assert [call.sources for call in engine.calls] == [[CUT_UP]], options
