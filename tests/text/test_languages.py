"""Which languages are meant."""

import pytest

from dragoman.text.languages import matching_direction

KNOWN = [("en", "pt"), ("en", "pt_BR"), ("pt_BR", "en"), ("zh_Hant", "en")]


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        (None, None, ("en", "pt")),
        ("en", "pt_BR", ("en", "pt_BR")),
        ("EN-gb", "pt-br", ("en", "pt")),
        (None, "pt-BR", ("en", "pt_BR")),
        ("pt", None, ("pt_BR", "en")),
        ("zh", "en-US", ("zh_Hant", "en")),
        ("de", None, None),
        ("en", "en", None),
    ],
)
def test_case_and_then_region_do_not_matter(source: str | None, target: str | None, found: object) -> None:
    assert matching_direction(KNOWN, source, target) == found
