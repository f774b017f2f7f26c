"""French words lose their vowel before another one."""

import pytest
from fake_engine import fake_translator

from dragoman.translator.elisions import elided


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
        "de A à B",
        "belle amie, quelque idée, contre elle",
        "l'animal, d'or",
        "le yaourt",
    ],
)
def test_what_is_right_stays(text: str) -> None:
    assert elided(text) == text


def test_it_is_done_in_french_alone_and_with_guards_alone() -> None:
    texts = {}
    for target, guards in (("fr", True), ("fr_CA", True), ("fr", False), ("es", True)):
        translator, _ = fake_translator(
            lambda source, options, demand: ("de un a la orilla", "la otra")[: options.num_best],
            languages=(("en", target),),
        )
        found = translator.translate("x", guards=guards, alternatives=1, align=True)
        texts[target, guards] = (found.text, *found.alternatives)
    plain = ("de un a la orilla", "la otra")
    elided_too = ("de un a l'orilla", "l'otra")
    assert texts == {("fr", True): elided_too, ("fr_CA", True): elided_too, ("fr", False): plain, ("es", True): plain}
