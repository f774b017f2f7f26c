"""The service on a real, tiny model: what is served is what the translator gives, whoever asks meanwhile."""

import asyncio
import mmap
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from wire_server import make_tiny_service

from dragoman.errors import BundleError, ConfigError
from dragoman.serve.access_log import AccessLog, begin
from dragoman.serve.direction import translate_each
from dragoman.serve.keys import Keys, hash_key, make_key
from dragoman.serve.metrics import Metrics, table_bytes
from dragoman.serve.models import Model, Models, Options
from dragoman.serve.rate import TABLE_BYTES, Buckets
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Client, Service
from dragoman.serve.settings import Settings
from dragoman.translator import Glossary, Term, Translator, load
from dragoman.translator.markup import parse
from dragoman.translator.prepare import Prepared
from tiny_bundle import tiny_texts, write_tiny_bundle

ANNA, BEN = Client("anna", False), Client("ben", False)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two models: French to English; English to French and German."""
    home = tmp_path_factory.mktemp("service")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_CACHE", str(home / "cache"))
        write_tiny_bundle(home / "one")
        write_tiny_bundle(home / "two", directions=("en-fr", "en-de"), languages=("fr", "de"), seed=2)
        yield [str(home / "one"), str(home / "two")]


@pytest.fixture(scope="module")
def models(folders: list[str]) -> Models:
    return Models.load(folders, "float32", 1)


@pytest.fixture(scope="module")
def alone(folders: list[str]) -> Translator:
    return load(folders[0], engine="ctranslate2", compute_type="float32", workers=1)


def make(models: Models, keys: Keys | None = None, **changes: Any) -> Service:
    chosen = Settings(**changes)
    return Service(
        chosen,
        models,
        threads=1,
        metrics=Metrics(mmap.mmap(-1, table_bytes(1)), 0),
        buckets=Buckets(chosen.rate, mmap.mmap(-1, TABLE_BYTES), lambda: 1.0),
        log=AccessLog("none"),
        keys=keys,
    )


# Translations


TEXTS = [
    *tiny_texts(23, seed=3),
    "Baceba dila. Lame ni!\n\n  Gula poru, fo la?  Ru me.\n",
    "",
    "  \n",
    "12 345",
    "Baceba 17 {name} dila https://example.org/x gula.",
    " ".join(tiny_texts(29, seed=5)).replace(".", ",") + " fin.",  # one sentence, too long for the model
    "BACEBA DILA LAME NI!",
    "Baceba dila. GULA PORU FO LA. Ru me.",
]


def test_what_is_served_is_what_the_translator_gives_alone(models: Models, alone: Translator) -> None:
    async def run() -> None:
        service = make(models, char_limit=0)
        asked = [[text] for text in TEXTS] + [TEXTS]
        found = await asyncio.gather(
            *(service.translate(texts, "fr", "en", client=(ANNA, BEN)[len(texts) % 2]) for texts in asked)
        )
        expected = alone.translate(TEXTS)
        for texts, translations in zip(asked, found, strict=True):
            for text, translation in zip(texts, translations, strict=True):
                reference = expected[TEXTS.index(text)]
                assert translation.text == reference.text
                assert translation.warnings == reference.warnings
                assert translation.confidence == pytest.approx(reference.confidence, abs=1e-4)
                assert [one.source for one in translation.sentences] == [one.source for one in reference.sentences]
        service.close()

    asyncio.run(run())


def test_alternatives_alignments_and_unsplit_texts_come_through(models: Models, alone: Translator) -> None:
    async def run() -> None:
        service = make(models)
        text = "Baceba dila. Lame ni!"
        options: dict[str, Any] = {"alternatives": 2, "align": True, "beam": 5, "split_sentences": False}
        (found,), (plain,) = await asyncio.gather(
            service.translate([text], "fr", "en", client=ANNA, **options),
            service.translate([text], "fr", "en", client=BEN),
        )
        expected = alone.translate(text, **options)
        assert (found.text, found.alternatives) == (expected.text, expected.alternatives)
        assert found.alternatives
        links = [(link.source, link.target) for link in found.sentences[0].alignment]
        assert links == [(link.source, link.target) for link in expected.sentences[0].alignment]
        assert links
        assert plain.text == alone.translate(text).text
        service.close()

    asyncio.run(run())


def test_a_glossary_is_its_own_requests_alone(models: Models) -> None:
    async def run() -> None:
        service = make(models)
        glossary = Glossary([Term("dila", "zorro")])
        (with_it,), (without,) = await asyncio.gather(
            service.translate(["Baceba dila."], "fr", "en", client=ANNA, glossary=glossary),
            service.translate(["Baceba dila."], "fr", "en", client=BEN),
        )
        told = [warning for warning in with_it.warnings if "glossary" in warning]
        assert "zorro" in with_it.text or told
        assert not any("glossary" in warning for warning in without.warnings)
        service.close()

    asyncio.run(run())


def test_a_page_keeps_its_tags(models: Models, alone: Translator) -> None:
    async def run() -> None:
        service = make(models)
        page = "<p>Baceba <b>dila</b>.</p><pre>x = 1</pre><p>Lame.</p>"
        found, other = await service.translate([page, "<i>Gula.</i>"], "fr", "en", client=ANNA, markup=parse)
        assert found.text.startswith("<p>")
        assert "<b>" in found.text
        assert f"</p><pre>x = 1</pre><p>{alone.translate('Lame.').text}</p>" in found.text
        assert other.text == f"<i>{alone.translate('Gula.').text}</i>"
        service.close()

    asyncio.run(run())


def test_what_is_shouted_comes_back_shouted_and_with_its_tags_in_place(models: Models, alone: Translator) -> None:
    async def run() -> None:
        service = make(models)
        source = "<p>BACEBA <b>DILA GULA</b> LAME NI.</p><p>Ru <i>me</i>.</p>"
        (found,) = await service.translate([source], "fr", "en", client=ANNA, markup=parse)
        page = parse(source)
        assert found.text == page.render([alone.translate(text, align=True) for text in page.texts])
        shouted, calm = found.sentences
        assert (shouted.source, shouted.target) == ("BACEBA DILA GULA LAME NI.", shouted.target.upper())
        assert calm.target != calm.target.upper()
        service.close()

    asyncio.run(run())


@settings(max_examples=15)
@given(st.lists(st.text(st.sampled_from("Ba ce. di\n\t!?\u2028\u00a0<>&{}1 "), max_size=29), max_size=5))
def test_any_text_comes_back_as_the_translator_gives_it(models: Models, alone: Translator, texts: list[str]) -> None:
    async def run() -> None:
        service = make(models)
        found = await service.translate(texts, "fr", "en", client=ANNA)
        assert [one.text for one in found] == [one.text for one in alone.translate(texts)]
        service.close()

    asyncio.run(run())


# Directions


def test_the_request_picks_the_model(models: Models, folders: list[str]) -> None:
    async def run() -> None:
        service = make(models)
        (german,) = await service.translate(["Baceba dila."], "en", "de", client=ANNA)
        other = load(folders[1], engine="ctranslate2", compute_type="float32", workers=1)
        assert german.text == other.translate("Baceba dila.", source="en", target="de").text
        service.close()

    asyncio.run(run())


def test_models_say_what_they_do(models: Models) -> None:
    assert models.directions == (("fr", "en"), ("en", "fr"), ("en", "de"))
    assert [(one.code, one.name, one.targets) for one in models.languages] == [
        ("fr", "French", ("en",)),
        ("en", "English", ("fr", "de")),
    ]
    assert models.targets == ("en", "fr", "de")
    assert models.describe() == "fr-en (one), en-fr, en-de (two)"


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("zz", "en", "zz is not supported"),
        ("fr", "zz", "zz is not supported"),
        ("de", "en", "de is not supported"),
        ("fr", "de", "fr to de is not supported: this server translates fr-en, en-fr, en-de"),
    ],
)
def test_an_unknown_pair_is_refused(models: Models, source: str, target: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        models.check(source, target)
    assert (refused.value.status, refused.value.message) == (400, message)


def test_of_two_models_for_a_direction_the_one_for_it_alone_is_served(folders: list[str], tmp_path: Path) -> None:
    both = str(write_tiny_bundle(tmp_path / "both", directions=("en-fr", "fr-en"), languages=("en", "fr")).path)
    chosen = Models.load([both, *folders], "float32", 1)
    assert chosen.directions == (("en", "fr"), ("fr", "en"), ("en", "de"))
    assert [chosen.pick(*direction).name for direction in chosen.directions] == ["both", "one", "two"]


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="there is no model at"):
        Models.load([str(tmp_path / "missing")], "float32", 1)


def test_what_a_memory_has_is_served(tmp_path: Path) -> None:
    options, text = Options("en", "fr", alternatives=1), "Are you ready to leave?"
    (before,) = Models.load(["en-fr"], "int8", 1).pick("en", "fr").translate([text], options)
    memory = tmp_path / "better.en-fr.tsv"
    memory.write_text(f"{text}\t{before.alternatives[0].text}\n", encoding="utf-8")
    (after,) = Models.load(["en-fr"], "int8", 1, [str(memory)]).pick("en", "fr").translate([text], options)
    assert after.target == before.alternatives[0].text != before.target


def test_a_memory_is_for_the_models_of_its_languages(folders: list[str], tmp_path: Path) -> None:
    memory = tmp_path / "better.de-en.tsv"
    memory.write_text("Ba.\tCe.\n", encoding="utf-8")
    assert Models.load(folders, "float32", 1, [str(memory)]).directions == (("fr", "en"), ("en", "fr"), ("en", "de"))
    with pytest.raises(ConfigError, match=r"better\.de-en\.tsv is de-en, this server translates fr-en: leave it out"):
        Models.load(folders[:1], "float32", 1, [str(memory)])
    nameless = memory.rename(tmp_path / "better.tsv")
    with pytest.raises(ConfigError, match=r"better\.tsv does not tell its languages: give a file whose name does"):
        Models.load(folders, "float32", 1, [str(nameless)])


# Limits


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["a" * 11], {}, "Invalid request: request (11) exceeds text limit (10)"),
        (["a", "b", "c"], {}, "Invalid request: request (3) exceeds batch limit (2)"),
        (["a"], {"alternatives": 10_000}, "Invalid request: 10000 alternatives, at most 3"),
    ],
)
def test_what_is_too_much_is_refused(models: Models, texts: list[str], options: dict[str, int], message: str) -> None:
    async def run() -> None:
        service = make(models, char_limit=10, batch_limit=2, alternatives_limit=3)
        with pytest.raises(Refusal) as refused:
            await service.translate(texts, "fr", "en", client=ANNA, **options)  # type: ignore[arg-type]
        assert (refused.value.status, refused.value.message) == (400, message)
        assert len(await service.translate(["a" * 7, "b" * 7][:2], "fr", "en", client=ANNA, limited=False)) == 2
        service.close()

    asyncio.run(run())


def test_a_request_that_takes_too_long_is_given_up(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> list[Any]:
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async def run() -> None:
        service = make(models, timeout_seconds=0.1)
        monkeypatch.setattr(service._batcher, "_run", never)
        with pytest.raises(Refusal) as refused:
            await service.translate(["Baceba."], "fr", "en", client=ANNA)
        assert refused.value.status == 503
        assert refused.value.message == "this took more than 0.1 seconds: try again later, or send less at once"
        assert refused.value.headers["Retry-After"]
        assert service._batcher.num_requests == 0
        service.close()

    asyncio.run(run())


class Gates:
    """Long texts are made ready only when the test says so; `began` counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.began = 0
        prepare = Model.prepare

        def wait(model: Model, texts: Sequence[str], options: Options) -> Prepared:
            if sum(map(len, texts)) > 2000:
                self.began += 1
                assert self.open.wait(60)
            return prepare(model, texts, options)

        monkeypatch.setattr(Model, "prepare", wait)


def test_long_texts_that_are_made_ready_keep_nobody_waiting(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        service, gates = make(models, beam=1), Gates(monkeypatch)
        text = "Baceba. " * 257
        long = [asyncio.create_task(service.translate([text], "fr", "en", client=ANNA)) for _ in range(7)]
        await asyncio.sleep(0)
        await service.translate(["Lame ni."], "fr", "en", client=BEN)
        assert not any(one.done() for one in long)
        gates.open.set()
        await asyncio.gather(*long)
        service.close()

    asyncio.run(run())


def test_a_full_queue_refuses_before_anything_is_made_ready(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        service, gates = make(models, beam=1, queue_limit=2), Gates(monkeypatch)
        text = "Baceba. " * 257
        held = [asyncio.create_task(service.translate([text], "fr", "en", client=one)) for one in (ANNA, BEN)]
        await asyncio.sleep(0)
        for texts in ([text], ["Lame."]):
            with pytest.raises(Refusal, match=r"^2 requests are waiting") as refused:
                await service.translate(texts, "fr", "en", client=Client("cleo", False))
            assert refused.value.status == 503
        with pytest.raises(Refusal, match=r"^2 requests are waiting"):
            await service.detect_each([text], Client("cleo", False))
        gone = held.pop()
        gone.cancel()
        await asyncio.wait([gone])
        assert len(await service.translate(["Lame."], "fr", "en", client=Client("cleo", False))) == 1
        gates.open.set()
        await asyncio.gather(*held)
        assert gates.began == 2
        service.close()

    asyncio.run(run())


def test_languages_of_long_texts_are_found_out_beside_the_loop(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def watched(text: str, served: set[str]) -> list[tuple[str, float]]:
        threads.append(threading.current_thread().name)
        return [("fr", 1.0)]

    async def run() -> None:
        service = make(models)
        found = await service.detect_each(["Je suis là. " * 17] * 11, ANNA)
        assert found == [[("fr", 1.0)]] * 11
        service.close()

    monkeypatch.setattr("dragoman.serve.service.detect", watched)
    asyncio.run(run())
    assert len(threads) == 11
    assert all(name.startswith("prepare") for name in threads)


# The log


def test_a_request_in_several_languages_is_one_line() -> None:
    async def run() -> None:
        service = make_tiny_service(directions=("fr-en", "de-en"), log_text=True)
        notes = begin()
        texts, sources = ["Baceba. Dila.", "Lame ni.", "Gula.", "Same."], ["fr", "de", "fr", "en"]
        found = await translate_each(service, texts, sources, "en", client=ANNA)
        assert notes == {
            "source": "fr,de,en",
            "target": "en",
            "texts": 4,
            "characters": sum(map(len, texts)),
            "sentences": 4,
            "text": texts,
            "translation": [one.text for one in found],
        }
        service.close()

    asyncio.run(run())


def test_a_language_that_is_none_is_not_logged() -> None:
    async def run() -> None:
        service = make_tiny_service()
        notes = begin()
        with pytest.raises(Refusal, match=r"^a secret is not supported$"):
            await translate_each(service, ["Lame.", "Gula."], ["fr", "a secret"], "en", client=ANNA)
        assert notes == {}
        service.close()

    asyncio.run(run())


# Who may come in


def asking(path: str = "/translate", host: str = "192.0.2.7") -> Request:
    return Request(
        {"type": "http", "path": path, "headers": [], "client": (host, 4711), "query_string": b"", "method": "POST"}
    )


def test_with_keys_only_who_has_one_comes_in(models: Models) -> None:
    key = make_key()
    service = make(models, keys=Keys({bytes.fromhex(hash_key(key)[7:]): "the web site"}))
    notes = begin()
    assert service.admit(asking(), key) == Client(f"key:{hash_key(key)[7:23]}", True)
    assert notes == {"client": "the web site"}
    for given_key, path, status in (
        (None, "/translate", 400), ("", "/translate", 400), ("wrong", "/translate", 403), (None, "/v2/translate", 403),
    ):  # fmt: skip
        with pytest.raises(Refusal) as refused:
            service.admit(asking(path), given_key)
        assert refused.value.status == status
        assert refused.value.message in ("Invalid API key", "Please contact the server operator to get an API key")


def test_rates_are_of_keys_and_of_addresses_without_one(models: Models) -> None:
    key = make_key()
    service = make(models, keys=Keys({bytes.fromhex(hash_key(key)[7:]): "the web site"}), rate=2.0)
    for _ in range(2):
        service.admit(asking(), key)
    with pytest.raises(Refusal, match=r"^Too many requests: slow down") as refused:
        service.admit(asking(), key)
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "30"})
    statuses = []
    for _ in range(3):  # guessing keys is slow
        with pytest.raises(Refusal) as refused:
            service.admit(asking(), "guess")
        statuses.append(refused.value.status)
    assert statuses == [403, 403, 429]


def test_a_quota_is_of_characters_that_were_translated(models: Models) -> None:
    async def run() -> None:
        service = make(models, quota=13)
        await service.translate(["Baceba."], "fr", "en", client=ANNA)
        with pytest.raises(Refusal) as refused:
            await service.translate(["Baceba."], "fr", "en", client=ANNA)
        assert refused.value.status == 456
        assert refused.value.message == "Quota exceeded: 13 characters are what each client gets"
        assert (service.characters(ANNA), service.characters(BEN)) == (7, 0)
        await service.translate(["Baceba."], "fr", "en", client=BEN)
        service.close()

    asyncio.run(run())


def test_the_servers_own_beam_holds_where_a_request_says_nothing(models: Models, alone: Translator) -> None:
    async def run() -> None:
        service = make(models, beam=1)
        texts = tiny_texts(11, seed=11)
        found = await service.translate(texts, "fr", "en", client=ANNA)
        assert [one.text for one in found] == [one.text for one in alone.translate(texts, beam=1)]
        service.close()

    asyncio.run(run())


def test_addresses_of_one_ipv6_network_are_one_client(models: Models) -> None:
    service = make(models)
    names = {service.admit(asking(host=host), None).name for host in ("2001:db8::1", "2001:db8::ffff:2")}
    assert names == {"address:2001:db8::/64"}
    assert service.admit(asking(host="192.0.2.7"), None).name == "address:192.0.2.7"
