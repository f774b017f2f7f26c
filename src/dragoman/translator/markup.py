"""HTML and XML, translated: the text goes to the model without tags, and the tags come back on their words.

    page = parse(html)
    page.render([translator.translate(text, align=True) for text in page.texts])

`parse` never raises and loses nothing: what is not translated stays byte for byte, attributes, comments, scripts and
white space among it. A text of `texts` is what stands between two block tags; inline tags in it are put back by the
alignment of its translation. What is marked `translate="no"` or of class notranslate, and code, stays as it is.
"""

from __future__ import annotations

import html as references
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from dragoman.translator.inline import Interleaved, Piece, Unit, place
from dragoman.translator.markup_units import Rules, read_units
from dragoman.translator.translation import Translation


@dataclass(frozen=True, slots=True)
class Markup(Interleaved):
    """A page."""

    def render(self, translations: Sequence[Translation | str]) -> str:
        """The page with the translations of its texts, one each, in order; bare texts are aligned by position."""
        return self.fill(translations, _render)

    def assemble(self, translations: Sequence[Translation]) -> Translation:
        """The translation of the page as a whole: what is known of its texts, and its own alternatives."""
        sentences = tuple(sentence for translation in translations for sentence in translation.sentences)
        text = self.render(translations)
        versions: dict[str, None] = {}
        for rank in range(max((len(translation.alternatives) for translation in translations), default=0)):
            others = [one.alternatives[rank] if rank < len(one.alternatives) else one for one in translations]
            versions[self.render(others)] = None
        versions.pop(text, None)
        return Translation(
            text=text,
            score=sum(sentence.score for sentence in sentences) / max(1, len(sentences)),
            confidence=min((sentence.confidence for sentence in sentences), default=1.0),
            sentences=sentences,
            warnings=tuple(dict.fromkeys(warning for one in translations for warning in one.warnings)),
            alternatives=tuple(versions),
        )


def parse(
    text: str,
    *,
    xml: bool = False,
    ignore_tags: Collection[str] = (),
    splitting_tags: Collection[str] = (),
    non_splitting_tags: Collection[str] = (),
    outline_detection: bool = True,
) -> Markup:
    """The units of HTML, or of XML.

    What is in `ignore_tags` stays as it is. A text ends at block tags; of XML, where nothing says which these are, at
    tags that do not stand beside text (`outline_detection`), and at `splitting_tags`, never at `non_splitting_tags`.
    """
    rules = Rules(
        xml, frozenset(ignore_tags), frozenset(splitting_tags), frozenset(non_splitting_tags), outline_detection
    )
    return Markup(tuple(read_units(text, rules)))


def _render(unit: Unit, translation: Translation | str) -> str:
    # A space of a special width that the page spelled out is spelled out again: as itself nobody could see it.
    spelled = {
        piece.text: piece.raw
        for piece in unit
        if piece.kind == "text" and piece.raw[:1] == "&" and len(piece.text) == 1 and not piece.text.isprintable()
    }
    return join(place(unit, translation), partial(encode, spelled=str.maketrans(spelled)))


def join(pieces: Sequence[Piece], encode: Callable[[str], str]) -> str:
    """Pieces as they stand in a document; `encode` writes new text as it does."""
    return "".join(encode(piece.text) if piece.kind == "new" else piece.raw for piece in pieces)


def encode(text: str, spelled: dict[int, str]) -> str:
    """Text as HTML and XML write it: only what would be taken for markup is a reference, and what `spelled` says."""
    return references.escape(text, quote=False).translate(spelled)
