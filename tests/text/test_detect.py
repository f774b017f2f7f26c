"""Languages are told from a few words, and not claimed where there is no telling."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.detect import READ_CHARACTERS, build_profiles, detect, load_profiles, words_of

FRENCH = """Il fait froid ce matin. | Je ne sais pas où elle habite. | Où est la gare ? | Merci beaucoup ! | J'ai faim.
C'est trop cher pour moi. | Nous avons raté le dernier bus. | Ferme la fenêtre, s'il te plaît. | Quelle heure est-il ?
Les enfants jouent dans le jardin. | On se retrouve demain à huit heures. | Tu as oublié tes clés sur la table.
Mon frère travaille dans une banque. | Elle a acheté du pain et du fromage. | Le médecin arrive bientôt.
Pouvez-vous parler plus lentement ? | La soupe est encore chaude. | Je voudrais une chambre pour deux nuits.
Ils se sont mariés l'été dernier. | Ce livre m'a beaucoup plu."""
ENGLISH = """It is cold this morning. | I don't know where she lives. | Where is the station? | Thank you very much! |
I'm hungry. | That's too expensive for me. | We missed the last bus. | Close the window, please. | What time is it?
The children are playing in the garden. | Let's meet tomorrow at eight. | You left your keys on the table.
My brother works in a bank. | She bought some bread and cheese. | The doctor will be here soon.
Could you speak more slowly? | The soup is still hot. | I would like a room for two nights.
They got married last summer. | I really enjoyed this book."""


def sentences(block: str) -> list[str]:
    return [one.strip() for line in block.splitlines() for one in line.split("|") if one.strip()]


@pytest.mark.parametrize(
    ("language", "text"),
    [*(("fr", text) for text in sentences(FRENCH)), *(("en", text) for text in sentences(ENGLISH))],
)
def test_everyday_sentences_are_told_apart(language: str, text: str) -> None:
    best, confidence = detect(text, ("fr", "en"))[0]
    assert best == language
    assert confidence > 0.8


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Der Hund schläft unter dem Tisch."),
        ("es", "¿Dónde está la biblioteca? No lo sé."),
        ("it", "Buongiorno, vorrei un caffè per favore."),
        ("pt", "Você não sabe onde eu moro."),
        ("nl", "Ik weet niet waar hij woont."),
        ("pl", "Nie wiem, gdzie ona mieszka."),
        ("ru", "Я не знаю, где она живёт."),
        ("uk", "Я не знаю, де вона живе."),
        ("el", "Δεν ξέρω πού μένει."),
        ("ar", "أين محطة القطار من فضلك؟"),
        ("he", "אני לא יודע איפה היא גרה."),
        ("zh", "我不知道她住在哪里。"),
        ("ja", "彼女がどこに住んでいるか知りません。"),
        ("ko", "나는 그녀가 어디에 사는지 모릅니다."),
        ("tr", "Onun nerede yaşadığını bilmiyorum."),
        ("sv", "Jag vet inte var hon bor."),
        ("fi", "En tiedä missä hän asuu."),
    ],
)
def test_every_language_in_the_lists_can_be_told(language: str, text: str) -> None:
    assert detect(text, load_profiles().languages)[0][0] == language


@pytest.mark.parametrize("word", ["table", "chat", "no", "a", "ok", "radio"])
def test_a_word_of_both_languages_is_told_with_little_confidence(word: str) -> None:
    assert detect(word, ("fr", "en"))[0][1] < 0.8


@pytest.mark.parametrize("text", ["Der Hund schläft unter dem Tisch.", "Привет, как дела?", "我不知道她住在哪里。"])
def test_a_text_in_a_language_that_is_not_served_is_not_taken_for_its_relative(text: str) -> None:
    assert all(confidence < 0.3 for _, confidence in detect(text, ("fr", "en")))


@pytest.mark.parametrize("text", ["", "   ", "1234", "😀 !!!", "https://example.org/le/chat", "<br><hr>"])
def test_without_words_there_is_no_idea_at_all(text: str) -> None:
    assert detect(text, {"fr", "en"}) == [("en", 0.0), ("fr", 0.0)]


def test_a_language_without_a_list_comes_last_and_without_confidence() -> None:
    assert detect("Il fait froid ce matin.", ("xx", "fr"))[-1] == ("xx", 0.0)
    assert detect("Il fait froid ce matin.", ("xx",)) == [("xx", 0.0)]


def test_tags_and_addresses_are_no_words_of_a_language() -> None:
    page = '<p class="the">Le <b>chat</b> dort&nbsp;: voir https://the.and.of/the ou @the.</p>'
    assert words_of(page) == ["le", "chat", "dort", "voir", "ou"]


def test_an_apostrophe_stays_with_the_word_before_it() -> None:
    assert words_of("J’ai dit: don't!") == ["j'", "ai", "dit", "don'", "t"]


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    text = "Il fait froid ce matin. " * READ_CHARACTERS
    assert detect(text, ("fr", "en")) == detect(text[: READ_CHARACTERS * 2], ("fr", "en"))


@given(st.text(max_size=211))
def test_any_text_gets_confidences_that_sum_to_at_most_one(text: str) -> None:
    found = detect(text, ("en", "fr", "xx"))
    assert {code for code, _ in found} == {"en", "fr", "xx"}
    assert 0 <= sum(confidence for _, confidence in found) <= 1 + 1e-6
    assert [confidence for _, confidence in found] == sorted((one for _, one in found), reverse=True)


def test_profiles_are_probabilities() -> None:
    profiles = build_profiles({"aa": ("ba", "ab"), "bb": ("bo", "ob", "ba")})
    assert profiles.words_WL.shape == (4, 2)
    assert (profiles.words_WL < 0).all()
    assert (profiles.letters_RL <= 0).all()
    place = profiles.words["bo"]
    assert profiles.words_WL[place, 1] > profiles.words_WL[place, 0]


def test_starting_up_reads_no_profiles() -> None:
    code = "from dragoman.text import detect; print(detect.load_profiles.cache_info().currsize)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "0"
