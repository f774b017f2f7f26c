"""`recipes/tatoeba`: the sets of the recipes out of the archive, and further pairs made by models."""

import gzip
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

RECIPE = Path(__file__).parents[1] / "recipes" / "tatoeba"
sys.path.insert(0, str(RECIPE))

import more_pairs  # noqa: E402
import nearest  # noqa: E402
import split  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data" / "tatoeba-fr-en"


def write_tsv(path: Path, rows: list[tuple[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{left}\t{right}\n" for left, right in rows)


# The split


def test_pairs_are_read_once_french_first_with_plain_spaces(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text(
        "Who?\tQui\u202f?\tCC-BY\nGo.\tVa !\nWho?\tQui ?\n\nNo tab\nThe cafe\u0301.\tLe café.\n", encoding="utf-8"
    )
    assert split.read(tmp_path / "fra.txt") == [("Qui ?", "Who?"), ("Va !", "Go."), ("Le café.", "The café.")]


def test_what_shares_a_sentence_with_what_is_held_out_is_in_no_set() -> None:
    pairs = [("Va !", "Go."), ("va", "Leave!"), ("Pars.", "GO!"), ("Pars.", "Leave."), ("Qui ?", "Who?")]
    held_out = [f"test {split.name_of(('Va.', 'go'))}", f"valid {split.name_of(('Qui ?', 'Who?'))}"]
    sets = split.split(pairs, held_out)
    assert sets == {"train": [("Pars.", "Leave.")], "valid": [("Qui ?", "Who?")], "test": [("Va !", "Go.")]}


def test_all_that_is_held_out_is_named_once() -> None:
    lines = [line.split() for line in split.HELD_OUT.read_text(encoding="utf-8").splitlines()]
    assert len({name for _, name in lines}) == len(lines)
    assert {where for where, _ in lines} == {"valid", "test"}


def test_the_files_are_written_and_what_lacks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fra.txt").write_text("Go.\tVa !\nWho?\tQui ?\n", encoding="utf-8")
    (tmp_path / "held_out.txt").write_text(
        f"test {split.name_of(('Va !', 'Go.'))}\nvalid 0123456789\n", encoding="utf-8"
    )
    monkeypatch.setattr(split, "HELD_OUT", tmp_path / "held_out.txt")
    monkeypatch.setattr(sys, "argv", ["split.py", str(tmp_path / "fra.txt"), "--output", str(tmp_path / "sets")])
    split.main()
    assert capsys.readouterr().out == (
        "train 1 pairs, valid 0 pairs, test 1 pairs\n1 of the 2 pairs that are held out are not in fra.txt\n"
    )
    assert more_pairs.pairs(tmp_path / "sets" / "train.tsv.gz") == [("Qui ?", "Who?")]


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpus is not part of the project")
def test_the_sets_that_models_were_trained_and_tested_on_come_out() -> None:
    sets = {name: more_pairs.pairs(DATA / f"{name}.tsv.gz") for name in ("train", "valid", "test")}
    made = split.split(
        [pair for pairs in sets.values() for pair in pairs], split.HELD_OUT.read_text(encoding="utf-8").splitlines()
    )
    assert made == sets


# Further pairs


@pytest.mark.parametrize("only", ["back", "forward", "new", None])
def test_further_pairs_are_new_come_back_and_meet_nothing_that_is_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str | None
) -> None:
    corpus, english = tmp_path / "fr-en", tmp_path / "de-en"
    write_tsv(corpus / "train.tsv.gz", [("Va !", "Go."), ("Qui ?", "Who?"), ("Toi.", "You.")])
    write_tsv(corpus / "valid.tsv.gz", [("Non.", "No.")])
    write_tsv(corpus / "test.tsv.gz", [("Oui.", "Yes.")])
    write_tsv(
        english / "train.tsv.gz", [("Gut.", "Good day."), ("Ja.", "YES!"), ("Wer?", "Who?"), ("Nun.", "Well now.")]
    )
    answers = {
        ("back", "fr-en", "B"): {"Va !": "Go away.", "Qui ?": "Who is it?", "Toi.": "No!"},
        ("forward", "en-fr", "F"): {"Go.": "Pars.", "Who?": "Qui est-ce ?", "You.": "Vous."},
        ("new", "en-fr", "F", "B"): {"Good day.": "Bonne journée.", "Well now.": "Eh bien."},
        ("returned", "fr-en", "B"): {"Bonne journée.": "A good day.", "Eh bien.": "Zzz."},
    }
    monkeypatch.setattr(
        more_pairs,
        "translate",
        lambda folder, name, texts, way, *models: [answers[name, way, *models][text] for text in texts],
    )
    out = tmp_path / "more"
    arguments = ["--corpus", str(corpus), "--english", str(english), "--output", str(out)]
    arguments += ["--only", only] if only else []
    monkeypatch.setattr(sys, "argv", ["more_pairs.py", "--forward", "F", "--backward", "B", *arguments])
    more_pairs.main()
    expected = {
        "back": ["Go away.\tVa !", "Who is it?\tQui ?"],
        "forward": ["Go.\tPars.", "Who?\tQui est-ce ?", "You.\tVous."],
        "new": ["Good day.\tBonne journée."],
    }
    made = {path.stem: more_pairs.lines_of(path) for path in out.iterdir()}
    assert made == (expected if only is None else {only: expected[only]})


def test_what_is_translated_already_is_not_translated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], check: bool) -> None:
        asked.append(command[3:])
        Path(command[-1]).write_text("Pars.\nQui ?\n", encoding="utf-8")

    monkeypatch.setattr(more_pairs.subprocess, "run", run)
    for _ in range(2):
        made = more_pairs.translate(tmp_path, "new", ["Go.", "Who?"], "en-fr", "F", "B")
        assert made == ["Pars.", "Qui ?"]
    files = ["--input", str(tmp_path / "new.en"), "--output", str(tmp_path / "new.en.fr")]
    ways = ["--from", "en", "--to", "fr", "--model", "F", "--ensemble", "B"]
    assert asked == [["translate", "--no-guards", *ways, *files]]
    assert more_pairs.lines_of(tmp_path / "new.en") == ["Go.", "Who?"]


# What a model found, and what people wrote


def test_of_what_was_found_the_one_most_like_what_people_wrote_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tired, rain, sun = "You are very tired tonight.", "It rains.", "It shines."
    people = ["Tu es très las.", "Vous êtes bien fatigué ce soir.", "Vous êtes très fatigué ce soir."]
    found = {
        tired: ["Toi fatigué.", "Tu es très las.", "Vous êtes très fatigué ce soir."],
        rain: ["Il neige.", "Il neige !"],
        sun: ["Oui."],  # which is held out
    }

    class FakeTranslator:
        def stream(self, texts: Iterable[str], **options: object) -> Iterator[SimpleNamespace]:
            assert options == {"alternatives": 5, "guards": False, "split_sentences": False}
            return (SimpleNamespace(text=found[text][0], alternatives=tuple(found[text][1:])) for text in texts)

    train = [("Il pleut.", rain), ("Il brille.", sun), *((french, tired) for french in people)]
    for name, held in (("train", train), ("valid", [("Non.", "No.")]), ("test", [("Oui !", "Yes!")])):
        write_tsv(tmp_path / "fr-en" / f"{name}.tsv.gz", held)
    monkeypatch.setattr(nearest, "load", lambda name: FakeTranslator())
    arguments = ["--corpus", str(tmp_path / "fr-en"), "--forward", "F", "--output", str(tmp_path / "more")]
    monkeypatch.setattr(sys, "argv", ["nearest.py", *arguments])
    nearest.main()
    assert more_pairs.lines_of(tmp_path / "more" / "nearest.tsv") == [
        f"{rain}\tIl neige.",
        f"{tired}\tVous êtes très fatigué ce soir.",  # another wrote much the same
    ]
    assert capsys.readouterr().out == "nearest: 2 pairs\n"
