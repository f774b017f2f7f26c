"""What languages are called in English, for the lists that clients show."""

_NAMES = """
af Afrikaans, am Amharic, ar Arabic, az Azerbaijani, be Belarusian, bg Bulgarian, bn Bengali, bs Bosnian, ca Catalan,
cs Czech, cy Welsh, da Danish, de German, el Greek, en English, eo Esperanto, es Spanish, et Estonian, eu Basque,
fa Persian, fi Finnish, fr French, ga Irish, gl Galician, gu Gujarati, ha Hausa, he Hebrew, hi Hindi, hr Croatian,
hu Hungarian, hy Armenian, id Indonesian, is Icelandic, it Italian, ja Japanese, ka Georgian, kk Kazakh, km Khmer,
kn Kannada, ko Korean, la Latin, lb Luxembourgish, lo Lao, lt Lithuanian, lv Latvian, mi Maori, mk Macedonian,
ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nb Norwegian Bokmål, ne Nepali, nl Dutch,
nn Norwegian Nynorsk, no Norwegian, oc Occitan, pa Punjabi, pl Polish, ps Pashto, pt Portuguese, ro Romanian,
ru Russian, sk Slovak, sl Slovenian, so Somali, sq Albanian, sr Serbian, sv Swedish, sw Swahili, ta Tamil, te Telugu,
tg Tajik, th Thai, tl Tagalog, tr Turkish, uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, xh Xhosa, yi Yiddish,
yo Yoruba, zh Chinese, zu Zulu
"""
NAMES = dict(entry.split(maxsplit=1) for entry in _NAMES.replace("\n", " ").strip().split(", "))


def name_of(code: str) -> str:
    """The English name of a language, or its code where we have none."""
    return NAMES.get(code, code)
