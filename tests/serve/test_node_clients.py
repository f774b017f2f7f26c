"""Clients from the npm registry, against a server of ours; only where node, npm and the registry are."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from wire_server import model_folder, serving

from dragoman import load
from dragoman.serve.keys import hash_key

pytestmark = pytest.mark.node

PACKAGES = ("translate@3.1.0", "deepl-node@1.28.0")
FRENCH = "Il fait froid ce matin."
KEY = "a key that is long enough"

LIBRE = """
import translate from "translate";
const [url, key, text] = process.argv.slice(2);
translate.engine = "libre";
translate.url = url + "/translate";
translate.key = key;
const refused = await translate(text, { from: "fr", to: "ga" }).then(() => "", (error) => String(error.message));
console.log(JSON.stringify({ text: await translate(text, { from: "fr", to: "en" }), refused }));
"""
DEEPL = """
import * as deepl from "deepl-node";
const [url, key, text] = process.argv.slice(2);
const client = new deepl.Translator(key, { serverUrl: url, maxRetries: 0 });
const one = await client.translateText(text, null, "en-US");
const two = await client.translateText([text, text], "fr", "en-GB", { formality: "prefer_more", splitSentences: "on" });
const tags = await client.translateText("<p>" + text + "</p>", "fr", "en-US", { tagHandling: "html" });
const entries = new deepl.GlossaryEntries({ entries: { chat: "cat", chien: "dog" } });
const glossary = await client.createGlossary("Cats", "fr", "en", entries);
const kept = (await client.getGlossaryEntries(glossary)).entries();
await client.translateText("Le chat dort.", "fr", "en-US", { glossary });
await client.deleteGlossary(glossary);
const usage = await client.getUsage();
const wrong = new deepl.Translator("some other key", { serverUrl: url, maxRetries: 0 });
const refused = await wrong.translateText(text, null, "en-US").then(() => "", (error) => error.constructor.name);
console.log(JSON.stringify({
  one, two: two.map((result) => result.text), tags: tags.text, kept, refused, usage: usage.character,
  sources: (await client.getSourceLanguages()).map((language) => language.code),
  targets: (await client.getTargetLanguages()).map((language) => language.code),
  glossaries: (await client.listGlossaries()).length,
}));
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages installed."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    installed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if installed.returncode != 0:
        pytest.skip(f"npm cannot install {', '.join(PACKAGES)}: {installed.stderr.strip()[-300:]}")
    return folder


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kept")
    (folder / "keys").write_text(hash_key(KEY) + " somebody\n")
    with serving(glossary_dir=str(folder / "glossaries"), api_keys=str(folder / "keys")) as url:
        yield url


@pytest.fixture(scope="module")
def expected() -> str:
    translator = load(model_folder("fr-en", "en-fr"), engine="ctranslate2", compute_type="float32", workers=1)
    return translator.translate(FRENCH, source="fr", target="en").text


def run(packages: Path, script: str, url: str) -> dict[str, object]:
    """What a script prints, as JSON."""
    (packages / "script.js").write_text(script)
    command = ["node", "script.js", url, KEY, FRENCH]
    result = subprocess.run(command, cwd=packages, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_translate_translates(packages: Path, url: str, expected: str) -> None:
    assert run(packages, LIBRE, url) == {"text": expected, "refused": "ga is not supported"}


def test_deepl_node_translates_and_keeps_glossaries(packages: Path, url: str, expected: str) -> None:
    found = run(packages, DEEPL, url)
    usage = found.pop("usage")
    assert isinstance(usage, dict)
    assert usage["count"] >= 4 * len(FRENCH)
    assert found == {
        "one": {"text": expected, "detectedSourceLang": "fr", "billedCharacters": len(FRENCH)},
        "two": [expected] * 2,
        "tags": f"<p>{expected}</p>",
        "kept": {"chat": "cat", "chien": "dog"},
        "refused": "AuthorizationError",
        "sources": ["fr", "en"],
        "targets": ["en-GB", "en-US", "fr"],
        "glossaries": 0,
    }
