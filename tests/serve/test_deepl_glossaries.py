"""Glossaries: made, listed, used and removed on the wire; kept in a folder that workers share."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_server import serving

from dragoman.errors import ConfigError
from dragoman.serve import glossaries
from dragoman.serve.glossaries import MOST_TERMS, ClientGlossary, GlossaryFolder, parse_entries
from dragoman.serve.keys import hash_key
from dragoman.serve.refusal import Refusal
from dragoman.translator import Glossary, Term

MADE = {
    "name": "Cats",
    "source_lang": "fr",
    "target_lang": "en",
    "entries": "chat\tcat\nchien\tdog",
    "entries_format": "tsv",
}
TERMS = (Term("chat", "cat"), Term("chien", "dog"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "glossaries"


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    with serving(glossary_dir=str(folder)) as url, httpx.Client(base_url=url) as client:
        yield client


# On the wire


def test_a_glossary_lives_from_its_making_to_its_removal(client: httpx.Client, folder: Path) -> None:
    made = client.post("/v2/glossaries", json=MADE)
    assert made.status_code == 201
    info = made.json()
    id = info["glossary_id"]
    assert {name: info[name] for name in ("name", "source_lang", "target_lang", "ready", "entry_count")} == {
        "name": "Cats", "source_lang": "fr", "target_lang": "en", "ready": True, "entry_count": 2,
    }  # fmt: skip
    assert client.get("/v2/glossaries").json() == {"glossaries": [info]}
    assert client.get(f"/v2/glossaries/{id}").json() == info
    entries = client.get(f"/v2/glossaries/{id}/entries", headers={"Accept": "text/tab-separated-values"})
    assert entries.text == "chat\tcat\nchien\tdog\n"
    assert entries.headers["content-type"].startswith("text/tab-separated-values")
    asked = {"text": ["Le chat dort."], "source_lang": "fr", "target_lang": "en-us", "glossary_id": id}
    assert client.post("/v2/translate", json=asked).status_code == 200
    removed = client.delete(f"/v2/glossaries/{id}")
    assert (removed.status_code, removed.content) == (204, b"")
    assert list(folder.iterdir()) == []
    for gone in (
        client.get(f"/v2/glossaries/{id}"),
        client.delete(f"/v2/glossaries/{id}"),
        client.post("/v2/translate", json=asked),
    ):
        assert (gone.status_code, gone.json()) == (404, {"message": "Glossary not found"})


def test_a_glossary_is_for_its_own_direction(client: httpx.Client) -> None:
    id = client.post("/v2/glossaries", data=MADE).json()["glossary_id"]
    asked = {"text": ["The cat."], "source_lang": "en", "target_lang": "fr", "glossary_id": id}
    response = client.post("/v2/translate", json=asked)
    assert response.status_code == 400
    assert response.json() == {"message": "the glossary is for fr to en, not for en to fr."}


def test_the_directions_of_glossaries_are_those_of_the_models(client: httpx.Client) -> None:
    found = client.get("/v2/glossary-language-pairs").json()["supported_languages"]
    assert found == [{"source_lang": "fr", "target_lang": "en"}, {"source_lang": "en", "target_lang": "fr"}]


@pytest.mark.parametrize("id", ["..", "../secret", "../../etc/passwd", "secret", "secret.tsv", "*", "a\x00b", "é"])
def test_only_what_was_made_here_is_found(client: httpx.Client, folder: Path, id: str) -> None:
    folder.mkdir(exist_ok=True)
    for secret in (folder / "secret.tsv", folder.parent / "secret.tsv"):
        secret.write_text("not\tfor you\n")
    encoded = quote(id, safe="").replace(".", "%2E")
    for path in (f"/v2/glossaries/{encoded}", f"/v2/glossaries/{encoded}/entries"):
        response = client.get(path)
        assert response.status_code == 404
        assert "for you" not in response.text
    asked = {"text": ["a"], "source_lang": "fr", "target_lang": "en", "glossary_id": id}
    response = client.post("/v2/translate", json=asked)
    assert (response.status_code, response.json()) == (404, {"message": "Glossary not found"})
    (folder / "secret.tsv").unlink()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "the glossary needs a name of 1 to 1024 characters."),
        ({"name": "x" * 1025}, "the glossary needs a name of 1 to 1024 characters."),
        ({"source_lang": None}, "Parameter 'source_lang' not specified."),
        ({"target_lang": None}, "Parameter 'target_lang' not specified."),
        ({"target_lang": "zz"}, "Value for 'target_lang' not supported."),
        ({"target_lang": "fr"}, "fr to fr is not supported: this server translates fr-en, en-fr"),
        ({"entries": ""}, "the glossary has no entries, expected source<TAB>target a line"),
        ({"entries": "chat"}, "entry 1 of the glossary is no pair of terms, expected source and target"),
        (
            {"entries": "chat\tcat\n\nchien\t"},
            "entry 3 of the glossary is no pair of terms, expected source and target",
        ),
        ({"entries": "a\tb\tc"}, "entry 1 of the glossary is no pair of terms, expected source and target"),
        ({"entries": "chat\tcat\nchat\tpuss"}, "entry 2 of the glossary has the same source term as one before it"),
        ({"entries": "chat\tc\x00at"}, "entry 1 of the glossary has a control character"),
        ({"entries": "chat\t" + "x" * 257}, "entry 1 of the glossary has over 256 characters"),
        ({"entries_format": "xls"}, "entries_format xls is not supported, expected tsv or csv"),
    ],
)
def test_what_cannot_be_a_glossary_is_refused(client: httpx.Client, changes: dict[str, Any], message: str) -> None:
    asked = {name: value for name, value in (MADE | changes).items() if value is not None}
    response = client.post("/v2/glossaries", json=asked)
    assert (response.status_code, response.json()) == (400, {"message": message})


def test_without_a_folder_there_are_none_and_none_can_be_made() -> None:
    with serving() as url:
        assert httpx.get(f"{url}/v2/glossaries").json() == {"glossaries": []}
        refused = httpx.post(f"{url}/v2/glossaries", json=MADE)
    assert refused.status_code == 403
    assert refused.json() == {"message": "glossaries are not kept here: the server was started without --glossary-dir"}


def test_a_glossary_is_seen_only_with_the_key_that_made_it(tmp_path: Path) -> None:
    names = ("the key of the one", "the key of the other")
    (tmp_path / "keys").write_text("".join(f"{hash_key(name)} ours\n" for name in names))  # called the same in the log
    one, other = ({"Authorization": f"DeepL-Auth-Key {name}"} for name in names)
    with serving(glossary_dir=str(tmp_path / "kept"), api_keys=str(tmp_path / "keys")) as url:
        id = httpx.post(f"{url}/v2/glossaries", json=MADE, headers=one).json()["glossary_id"]
        assert httpx.get(f"{url}/v2/glossaries/{id}", headers=one).status_code == 200
        assert httpx.get(f"{url}/v2/glossaries/{id}", headers=other).status_code == 404
        assert httpx.delete(f"{url}/v2/glossaries/{id}", headers=other).status_code == 404
        assert httpx.get(f"{url}/v2/glossaries", headers=other).json() == {"glossaries": []}
        assert httpx.get(f"{url}/v2/glossaries").status_code == 403
    kept = "".join(file.read_text() for file in (tmp_path / "kept").iterdir())
    assert not any(name in kept for name in names)


# In the folder


def test_workers_share_a_folder(tmp_path: Path) -> None:
    one, other = GlossaryFolder(tmp_path), GlossaryFolder(tmp_path)
    info = one.create("Cats", "fr", "en", TERMS, "")
    assert other.list("") == [info]
    found, glossary = other.compiled(info.id, "")
    assert found == info
    assert glossary.find("Le chat voit le chien.") == TERMS
    one.delete(info.id, "")
    with pytest.raises(Refusal, match="Glossary not found"):
        other.compiled(info.id, "")


def test_requests_with_one_glossary_can_share_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries, "_COMPILED", 2)
    folder = GlossaryFolder(tmp_path)
    ids = [folder.create(str(number), "fr", "en", TERMS, "").id for number in range(3)]
    kept = [folder.compiled(id, "")[1] for id in ids]
    assert folder.compiled(ids[2], "")[1] is kept[2]
    assert folder.compiled(ids[0], "")[1] is not kept[0]  # the oldest made room


def test_a_file_is_a_glossary_for_the_command_line_too(tmp_path: Path) -> None:
    GlossaryFolder(tmp_path).create("Cats\n# and dogs", "fr", "en", TERMS, "")
    (file,) = tmp_path.iterdir()
    assert Glossary.read(file).find("Le chat voit le chien.") == TERMS


@given(
    st.lists(st.text("aB é.+-_1", min_size=1, max_size=5).filter(str.strip), min_size=1, max_size=7),
    st.text("aB é.+-_1\n", max_size=31),
)
def test_terms_are_found_as_the_translator_finds_them(sources: list[str], sentence: str) -> None:
    terms = [Term(source.strip(), "x") for source in sources]
    assert ClientGlossary(terms).find(sentence) == Glossary(terms).find(sentence)


def test_terms_are_found_between_letters_that_have_no_spaces_and_however_accents_are_written() -> None:
    terms = (Term("café", "coffee house"), Term("东京", "Tokyo"), Term("Rue", "street"))
    sentence = "我在东京住。Un cafe\u0301 à la rue京."
    assert ClientGlossary(terms).find(sentence) == (terms[1], terms[0], terms[2])
    assert ClientGlossary(terms).find("des cafés, ruelle") == ()


def test_terms_that_begin_alike_take_no_longer_than_others() -> None:
    terms = [Term("a " * 100 + str(number), "x") for number in range(MOST_TERMS)]
    looked_up: list[str] = []

    class Counted(dict[str, Term]):
        def get(self, key: str, default: Any = None) -> Any:
            looked_up.append(key)
            return super().get(key, default)

    glossary = ClientGlossary(terms)
    glossary._terms = Counted(glossary._terms)
    assert glossary.find("a " * 997) == ()
    assert len(looked_up) == 997 * len({len(term.source) for term in terms})


def test_there_are_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries, "MOST_GLOSSARIES", 1)
    folder = GlossaryFolder(tmp_path)
    folder.create("Cats", "fr", "en", TERMS, "")
    with pytest.raises(Refusal, match="there are 1 glossaries already: delete one first") as caught:
        folder.create("Dogs", "fr", "en", TERMS, "")
    assert caught.value.status == 456


@pytest.mark.parametrize(
    ("limit", "most", "message"),
    [
        ("MOST_OF_ONE", 1, r"^1 glossaries of \d+ bytes are yours already: delete one first$"),
        ("MOST_BYTES_OF_ONE", 300, r"^1 glossaries of \d+ bytes are yours already: delete one first$"),
        ("MOST_BYTES", 500, r"^there are 2 glossaries already: delete one first$"),
    ],
)
def test_one_owner_leaves_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, message: str
) -> None:
    monkeypatch.setattr(glossaries, limit, most)
    folder = GlossaryFolder(tmp_path)
    for owner in ("one", "other"):
        folder.create("Cats", "fr", "en", TERMS, owner)
    with pytest.raises(Refusal, match=message) as caught:
        folder.create("Dogs", "fr", "en", TERMS, "one")
    assert caught.value.status == 456
    assert len(folder.list("one")) == len(folder.list("other")) == 1


def test_without_keys_all_glossaries_are_everybodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries, "MOST_OF_ONE", 1)
    folder = GlossaryFolder(tmp_path)
    for _ in range(2):
        folder.create("Cats", "fr", "en", TERMS, "")
    assert len(folder.list("")) == 2


def test_what_was_not_finished_takes_room_until_a_server_starts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glossaries, "MOST_GLOSSARIES", 1)
    folder = GlossaryFolder(tmp_path / "kept")
    folder.prepare()
    unfinished = tmp_path / "kept" / "x.unfinished"
    unfinished.touch()
    folder.prepare()  # it may be another server's, which is still writing
    with pytest.raises(Refusal, match="there are 1 glossaries already: delete one first"):
        folder.create("Cats", "fr", "en", TERMS, "")
    os.utime(unfinished, (0, 0))
    folder.prepare()
    assert folder.create("Cats", "fr", "en", TERMS, "").num_terms == 2


def test_a_disk_that_is_full_is_503_and_nothing_half_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(Refusal, match=r"^the glossary could not be kept: try again later$") as caught:
        GlossaryFolder(tmp_path).create("Cats", "fr", "en", TERMS, "")
    assert caught.value.status == 503
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_is_told_at_the_start_and_is_503_later(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = GlossaryFolder(tmp_path / "file" / "kept")
    with pytest.raises(
        ConfigError, match=r"^cannot write to the folder .*kept \(Not a directory\): choose another --gl"
    ):
        folder.prepare()
    with pytest.raises(Refusal) as caught:
        folder.create("Cats", "fr", "en", TERMS, "")
    assert (caught.value.status, str(tmp_path) in caught.value.message) == (503, False)


def test_a_glossary_that_is_deleted_while_it_is_asked_for_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = GlossaryFolder(tmp_path)
    info = folder.create("Cats", "fr", "en", TERMS, "")
    found = folder.find(info.id, "")
    monkeypatch.setattr(folder, "find", lambda id, owner: found)
    found[1].unlink()
    for ask in (folder.entries, folder.compiled):
        with pytest.raises(Refusal, match="Glossary not found"):
            ask(info.id, "")


def test_a_glossary_has_only_so_many_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries, "MOST_TERMS", 2)
    with pytest.raises(Refusal, match="the glossary has more than 2 entries") as caught:
        parse_entries("a\tb\nc\td\ne\tf", "tsv")
    assert caught.value.status == 413


def test_csv_may_be_quoted_and_name_languages() -> None:
    assert parse_entries('"chat, gros",cat,fr,en\r\nchien,"dog"\r\n', "csv") == (
        Term("chat, gros", "cat"),
        Term("chien", "dog"),
    )


def test_csv_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(Refusal, match="the glossary is no CSV: field larger than field limit"):
        parse_entries("x" * 200_000, "csv")
