"""Text in, `Translation` out: raw text, raw text, and what there is to know about it.

    translator     `load`, `Translator`
    translation    what comes out
    options        what `translate` may be told
    memory         pairs to translate by
    prepare        texts to sentences to ids
    drafts         what came of a sentence, and what is wrong with it
    single_words   a word by itself, looked up
    repair         other ways to decode what went wrong
    readings       a sentence in other pieces, where a word is cut up
    carry          addresses, placeholders and numbers that must not get lost
    elisions       le animal is l'animal
    glossary       terms that must be translated as it says
    alignment      which words belong together

Importing this loads no torch, and translating with CTranslate2 does not either.
"""

from dragoman.engine.engine import Sampling
from dragoman.translator.glossary import Glossary, Term
from dragoman.translator.options import Settings, TranslateOptions
from dragoman.translator.translation import Alternative, Link, SentenceTranslation, Translation
from dragoman.translator.translator import Translator, load

__all__ = [
    "Alternative",
    "Glossary",
    "Link",
    "Sampling",
    "SentenceTranslation",
    "Settings",
    "Term",
    "TranslateOptions",
    "Translation",
    "Translator",
    "load",
]
