"""Which languages a corpus holds, read off its file names where they tell, and which a model's are meant."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from dragoman.text.lines import bare_name

UNKNOWN = ("source", "target")

# ISO 639-1. A name such as `my-new-data.tsv` must not pass for Burmese and Newari, so codes are looked up.
_TWO_LETTERS = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en "
    "eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv "
    "ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne "
    "ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss "
    "st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
# Of the thousands of three-letter codes, the ones that corpora are most often named after.
_THREE_LETTERS = (
    "afr amh ara aze bel ben bul cat ceb ces cmn cym dan deu ell eng epo est eus fas fil fin fra gle glg guj hat hau "
    "heb hin hrv hun hye ibo ind isl ita jpn kab kan kat kaz khm kir kmr kor lao lat lav lit ltz mal mar mkd mlt mon "
    "mri msa mya nep nld nno nob nor oci pan pes pol por pus ron run rus slk slv som spa sqi srp swa swe swh tam tat "
    "tel tgk tgl tha tuk tur uig ukr urd uzb vie xho yid yor yue zho zul"
)
_CODES = frozenset(f"{_TWO_LETTERS} {_THREE_LETTERS}".split())
_PAIR = re.compile(r"(?<![A-Za-z])(?=([A-Za-z]{2,3})[-_]([A-Za-z]{2,3})(?![A-Za-z]))")


def languages_of_names(path: str, target_path: str = "") -> tuple[str, str] | None:
    """`train.fr` and `train.en`; or `fr-en` in a name, or else in the name of its folder. None where names do not tell.

    >>> languages_of_names("corpora/fr-en/train.tsv.gz")
    ('fr', 'en')
    """
    names = [bare_name(one) for one in ((path, target_path) if target_path else (path,))]
    if target_path:
        told = _where_names_differ(*names)
        if told:
            return told
    for name in (*names, PurePath(path).parent.name):
        for source, target in _PAIR.findall(name):
            if _is_code(source) and _is_code(target) and source.lower() != target.lower():
                return source.lower(), target.lower()
    return None


def matching_direction(
    known: Sequence[tuple[str, str]], source: str | None, target: str | None
) -> tuple[str, str] | None:
    """The first direction that somebody may mean: without regard to case, or else to region.

    >>> matching_direction([("en", "fr"), ("fr", "en")], None, "en-GB")
    ('fr', 'en')
    """
    for plain in (_without_case, _without_region):
        for direction in known:
            wanted = zip((source, target), direction, strict=True)
            if all(asked is None or plain(asked) == plain(language) for asked, language in wanted):
                return direction
    return None


def _without_case(language: str) -> str:
    return language.replace("-", "_").lower()


def _without_region(language: str) -> str:
    return _without_case(language).partition("_")[0]


def _where_names_differ(source_name: str, target_name: str) -> tuple[str, str] | None:
    source_parts, target_parts = (re.split(r"[._-]", name) for name in (source_name, target_name))
    if len(source_parts) != len(target_parts):
        return None
    differing = [(s, t) for s, t in zip(source_parts, target_parts, strict=True) if s != t]
    if len(differing) == 1 and all(map(_is_code, differing[0])):
        return differing[0][0].lower(), differing[0][1].lower()
    return None


def _is_code(word: str) -> bool:
    return word.lower() in _CODES
