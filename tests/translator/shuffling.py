"""A translator whose every move is known: it reorders the words of each sentence, and says so in its alignment."""

from collections.abc import Callable, Sequence

from dragoman.text.sentences import rebuild, split
from dragoman.translator import Link, SentenceTranslation, Translation


def shuffled(
    text: str,
    order: Callable[[int], Sequence[int]] = lambda count: range(count - 1, -1, -1),
    change: Callable[[str], str] = str.upper,
    align: bool = True,
) -> Translation:
    """The words of each sentence in another order (backwards if not told), each of them changed."""
    segments = split(text, "en")
    sentences = []
    for segment in segments:
        if segment.is_sentence:
            words = segment.text.split()
            places = order(len(words))
            links = tuple(Link(place, word, 1.0) for word, place in enumerate(places)) if align else ()
            target = " ".join(change(words[place]) for place in places)
            sentences.append(SentenceTranslation(segment.text, target, -1.0, 0.5, links))
    return Translation(rebuild(segments, [one.target for one in sentences]), -1.0, 0.5, tuple(sentences))


def unchanged(text: str) -> Translation:
    """Every sentence as it was."""
    sentences = [SentenceTranslation(one.text, one.text, 0.0, 1.0) for one in split(text, "en") if one.is_sentence]
    return Translation(text, 0.0, 1.0, tuple(sentences))
