"""Words are found and exchanged whole."""

from dragoman.text.whole_words import has_form, has_word, replace_words


def test_words_are_found_and_exchanged_whole() -> None:
    assert has_word("Tom", "Tom's")
    assert has_word("Tom", "Tomは")
    assert not has_word("Tom", "Tommy")
    assert not has_word("Tom", "Atom")
    assert not has_word("Tom", "tom")
    assert has_form("Tom", "Tommy")
    assert not has_form("Tom", "Atom")
    assert replace_words({"Tom": r"\1"}, "Tom, Tommy, Atom, Tom-Tom") == r"\1, Tommy, Atom, \1-\1"
    assert replace_words({"Tom": "Ada", "Ada": "Tom", "Tom Ada": "Eve"}, "Tom, Ada, Tom Ada") == "Ada, Tom, Eve"
