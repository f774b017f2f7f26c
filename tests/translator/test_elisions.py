"""French words lose their vowel before another one."""

import pytest
from fake_engine import fake_translator

from dragoman.translator import Glossary
from dragoman.translator.elisions import elided
from dragoman.translator.glossary import Term


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Le animal est mort.", "L'animal est mort."),
        ("la eau et le Océan", "l'eau et l'Océan"),
        ("Pas de options, je ai fini", "Pas d'options, j'ai fini"),
        ("Il ne existe pas et se évanouit", "Il n'existe pas et s'évanouit"),
        ("lorsque elle me attend, puisque il te a vu", "lorsqu'elle m'attend, puisqu'il t'a vu"),
        ("LE ANIMAL", "L'ANIMAL"),
        ("« le œuf » (de or)", "« l'œuf » (d'or)"),
    ],
)
def test_short_words_are_elided_before_vowels(text: str, wanted: str) -> None:
    assert elided(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "Donne-le à Tom, puis-je avoir cela ?",
        "le héros, la honte, le hibou",
        "le oui et le onze, la une, plus de un",
        "de A à B, de e à i",
        "la ou les personnes, je et tu, le à la une, mets le au courrier",
        "belle amie, quelque idée, contre elle",
        "l'animal, d'or",
        "le yaourt",
    ],
)
def test_what_is_right_stays(text: str) -> None:
    assert elided(text) == text


def test_what_the_source_or_the_glossary_has_stays() -> None:
    assert elided("La Oroya et la eau", ["La Oroya is a town."]) == "La Oroya et l'eau"
    for text, glossary, wanted in (
        ("Click {{ de item }}", None, "{{ de item }}, l'eau"),
        ("the newspaper", Glossary((Term("newspaper", "La Opinión"),)), "La Opinión, l'eau"),
    ):
        answer = wanted.replace("l'eau", "la eau")
        translator, _ = fake_translator(lambda *_, answer=answer: [answer], languages=(("en", "fr"),))
        assert translator.translate(text, glossary=glossary).text == wanted


def test_no_alternative_is_told_twice_nor_the_translation_once_more() -> None:
    answers = ("de autres", "la une", "d'autres", "deux", "la une")
    translator, _ = fake_translator(lambda *asked: answers[: asked[1].num_best], languages=(("en", "fr"),))
    found = translator.translate("x", alternatives=4).sentences[0]
    assert (found.target, [one.text for one in found.alternatives]) == ("d'autres", ["la une", "deux"])


def test_it_is_done_in_french_alone_and_with_guards_alone() -> None:
    texts = {}
    for target, guards in (("fr", True), ("fr_CA", True), ("fra", True), ("fr", False), ("es", True)):
        translator, _ = fake_translator(
            lambda source, options, demand: ("de un a la orilla", "la otra")[: options.num_best],
            languages=(("en", target),),
        )
        found = translator.translate("x", guards=guards, alternatives=1, align=True)
        texts[target, guards] = (found.text, *found.alternatives)
    plain = ("de un a la orilla", "la otra")
    elided_too = ("de un a l'orilla", "l'otra")
    french = {(target, True): elided_too for target in ("fr", "fr_CA", "fra")}
    assert texts == {**french, ("fr", False): plain, ("es", True): plain}
