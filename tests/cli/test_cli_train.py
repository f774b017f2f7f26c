"""`dragoman train` as a person meets it: one command from pairs to a model, and one clear line for each mistake."""

import io
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dragoman.bundle import Bundle
from dragoman.cli import main
from dragoman.train.finish import TrainingResult

Run = Callable[..., tuple[int, str, str]]

NUMBERS = {
    "un": "one",
    "deux": "two",
    "trois": "three",
    "quatre": "four",
    "cinq": "five",
    "six": "six",
    "sept": "seven",
}
TINY = [
    "--set", "model.d_model=22", "--set", "model.d_ff=37", "--set", "model.num_heads=2",
    "--set", "model.encoder_layers=1", "--set", "model.decoder_layers=1", "--set", "tokenizer.vocab_size=331",
    "--set", "train.batch_tokens=256", "--set", "train.max_steps=4", "--set", "train.validate_steps=2",
    "--set", "train.precision=float32", "--set", "data.valid_pairs=13",
]  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs `dragoman train ARGUMENTS` in this process and an empty folder: -> exit status, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "")
    monkeypatch.setattr("dragoman.train.run.measure_operations_per_second", lambda **_: 1e10)
    monkeypatch.setattr("dragoman.train.hardware.reuse_memory", lambda: None)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dragoman", "train", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            main()
        output, errors = capsys.readouterr()
        return int(exit_info.value.code or 0), output, errors

    return run


def pairs(count: int = 101) -> list[tuple[str, str]]:
    words = list(itertools.islice(itertools.product(NUMBERS, repeat=3), count))
    return [(" ".join(three), " ".join(NUMBERS[word] for word in three)) for three in words]


def tsv(path: Path, sides: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in sides), encoding="utf-8")
    return str(path)


def planned(run: Run, *arguments: str) -> Any:
    """The recipe that the arguments make, as a plan has it."""
    status, output, errors = run(*arguments, "--plan", "--json")
    assert status == 0, errors
    return json.loads(output)["recipe"]


# A run


def test_one_command_leaves_a_whole_model_folder_and_says_what_it_does(run: Run, tmp_path: Path) -> None:
    status, output, errors = run(tsv(tmp_path / "pairs.fr-en.tsv", pairs()), "--output", "models/mine", *TINY, "--json")
    assert status == 0, errors
    result = json.loads(output)
    assert output.count("\n") == 1
    assert (result["folder"], result["reason"], result["step"]) == ("models/mine", "finished", 4)
    assert [score["metric"] for score in result["scores"]] == ["BLEU", "chrF2"]
    folder = tmp_path / "models" / "mine"
    assert {path.name for path in folder.iterdir()} == {
        "README.md", "config.json", "curves.png", "model.safetensors", "run", "scorecard.json", "tokenizer.json",
        "training.jsonl", "words.json",
    }  # fmt: skip
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert Bundle.open(folder).directions == ("fr-en",)
    kinds = [json.loads(line)["event"] for line in (folder / "training.jsonl").read_text().splitlines()]
    assert kinds == ["start", "validation", "step", "validation", "end"]
    assert "dragoman train " in (folder / "README.md").read_text()
    for said in (
        "train: 101 pairs of 101 from ",
        "plan: 4 steps of 256 target pieces: ",
        "learning the pieces",
        "step 4  BLEU ",
        "  reference  ",
        "finished at step 4 after 0:0",
        "models/mine has the best validation: validation BLEU ",
    ):
        assert said in errors


def test_without_json_nothing_is_on_standard_output(run: Run, tmp_path: Path) -> None:
    status, output, _ = run(tsv(tmp_path / "pairs.tsv", pairs()), "--output", "m", *TINY)
    assert (status, output) == (0, "")


def test_an_interrupted_run_exits_with_130(run: Run, tmp_path: Path) -> None:
    stopped = TrainingResult("m", "interrupted", 7, 1.5, [])
    with mock.patch("dragoman.train.run.train_model", return_value=stopped):
        assert run(tsv(tmp_path / "pairs.tsv", pairs()), "--output", "m")[0] == 130


def test_resume_needs_no_corpus_and_starts_nothing_anew(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    assert run(corpus, "--output", "m", *TINY)[0] == 0
    before = Bundle.open(tmp_path / "m").weights_sha256
    status, output, _ = run("--output", "m", "--resume", "--json")
    assert status == 0
    assert json.loads(output)["step"] == 4
    assert Bundle.open(tmp_path / "m").weights_sha256 == before


def test_resume_with_a_changed_setting_names_it(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    run(corpus, "--output", "m", *TINY)
    status, _, errors = run(corpus, "--output", "m", *TINY, "--resume", "--set", "train.clip_norm=0.5")
    assert status == 2
    assert errors == "dragoman: the recipe is not that of the run in m: train.clip_norm: 1.0 -> 0.5\n"


def test_standard_input_is_a_corpus(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in pairs())

    def given() -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(text.encode()))

    monkeypatch.setattr(sys, "stdin", given())
    assert run("-", "--from", "fr", "--to", "en", "--output", "m", *TINY)[0] == 0
    assert Bundle.open(tmp_path / "m").directions == ("fr-en",)
    monkeypatch.setattr(sys, "stdin", given())
    status, _, errors = run("-", "--plan")
    assert status == 0
    assert "train: 101 pairs of 101" in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "m"]


def test_a_model_is_gone_on_from_with_adapters(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.fr-en.tsv", pairs())
    assert run(corpus, "--output", "base", *TINY)[0] == 0
    short = TINY[TINY.index("train.batch_tokens=256") - 1 :]
    status, _, errors = run(corpus, "--output", "tuned", *short, "--init", "base", "--lora", "3")
    assert status == 0, errors
    assert "loss on what was learned before " in errors
    base, tuned = (Bundle.open(tmp_path / name) for name in ("base", "tuned"))
    assert tuned.tokenizer.fingerprint() == base.tokenizer.fingerprint()
    assert tuned.weights().keys() == base.weights().keys()


# A plan


def test_a_budget_plans_batch_and_decay_of_a_given_shape_and_keeps_those_of_a_recipe(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    (tmp_path / "recipe.toml").write_text("[model]\nd_model = 64\n[train]\nbatch_tokens = 4096\n", encoding="utf-8")
    plans = [
        planned(run, corpus, "--budget", "1m", *more)["train"]
        for more in (["--set", "model.d_model=64"], ["--recipe", "recipe.toml"])
    ]
    assert [plan["batch_tokens"] for plan in plans] == [512, 4096]
    assert [plan["decay_share"] for plan in plans] == [0.8, 0.5]


@pytest.mark.parametrize(
    ("more", "dropout"),
    [
        ([], 0.0),
        (["--preset", "small"], 0.1),
        (["--recipe", "recipe.toml"], 0.1),
        (["--set", "model.dropout=0.1"], 0.1),
    ],
)
def test_a_dropout_that_was_chosen_is_kept_for_few_passes_too(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], dropout: float
) -> None:
    monkeypatch.setattr("dragoman.train.plan.FEW_PASSES", 1e9)
    (tmp_path / "recipe.toml").write_text("[model]\ndropout = 0.1\n", encoding="utf-8")
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    assert planned(run, corpus, "--budget", "1m", *more)["model"]["dropout"] == dropout


def test_a_recipe_without_a_shape_is_planned(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    models = []
    for told in ("dropout = 0.15", "dropout = 0.15\nd_ff = 2048"):
        (tmp_path / "recipe.toml").write_text(f"[model]\n{told}\n", encoding="utf-8")
        models.append(planned(run, corpus, "--recipe", "recipe.toml", "--budget", "1m")["model"])
    assert [model["dropout"] for model in models] == [0.15, 0.15]
    assert models[0]["d_model"] < models[1]["d_model"] == 512
    assert models[0]["d_ff"] < models[1]["d_ff"] == 2048


def test_plan_prints_its_reasons_trains_nothing_and_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    for more in ([], ["--output", "models/mine"], ["--budget", "2m"]):
        status, output, errors = run(corpus, "--plan", *more)
        assert (status, output) == (0, "")
        assert "plan: 2+1 layers, d_model 64, d_ff 256: " in errors
        assert " pieces: so many are seen often enough in 101 pairs" in errors
        assert "target tokens/s, " in errors
        assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_the_plan_as_json_has_recipe_reasons_and_figures(run: Run, tmp_path: Path) -> None:
    _, output, _ = run(tsv(tmp_path / "pairs.tsv", pairs()), "--plan", "--budget", "90s", "--json")
    plan = json.loads(output)
    assert plan["seconds"] == 90
    assert len(plan["reasons"]) == 3
    assert plan["recipe"]["train"]["max_steps"] > 0


# The recipe


def test_options_fill_the_recipe(run: Run, tmp_path: Path) -> None:
    for index, name in enumerate(("a.fr", "a.en")):
        (tmp_path / name).write_text("".join(f"{pair[index]}\n" for pair in pairs()))
    valid = tsv(tmp_path / "valid.tsv", pairs(7))
    recipe = planned(run, "--source", "a.fr", "--target", "a.en", "--valid", valid, "--both-ways", "--seed", "7")
    (train,), (held,) = recipe["data"]["train"], recipe["data"]["valid"]
    assert (train["path"], train["target_path"], train["both_ways"]) == ("a.fr", "a.en", True)
    assert (held["path"], held["both_ways"]) == (valid, True)
    assert recipe["train"]["seed"] == 7


def test_pairs_may_be_taken_the_other_way_round(run: Run, tmp_path: Path) -> None:
    train, valid = tsv(tmp_path / "pairs.fr-en.tsv", pairs()), tsv(tmp_path / "valid.fr-en.tsv", pairs(7))
    status, _, errors = run(train, "--valid", valid, "--swap", "--output", "models/mine", *TINY)
    assert status == 0, errors
    assert Bundle.open(tmp_path / "models" / "mine").directions == ("en-fr",)
    kept = (tmp_path / "models" / "mine" / "run" / "valid.en-fr.tsv").read_text()
    assert kept == "".join(f"{target}\t{source}\n" for source, target in pairs(7))


def test_languages_may_have_a_region(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    recipe = planned(run, corpus, "--from", "fr", "--to", "pt-BR")
    assert recipe["data"]["train"][0]["languages"] == "fr-pt_BR"


def test_several_corpora_may_be_given_and_two_files_with_a_comma(run: Run, tmp_path: Path) -> None:
    for index, name in enumerate(("a.fr", "a.en")):
        (tmp_path / name).write_text("".join(f"{pair[index]}\n" for pair in pairs()))
    tsv(tmp_path / "b.tsv", pairs(53))
    train = planned(run, "a.fr,a.en", "b.tsv")["data"]["train"]
    assert [(corpus["path"], corpus["target_path"]) for corpus in train] == [("a.fr", "a.en"), ("b.tsv", "")]


def test_set_wins_over_options_which_win_over_the_recipe_file(run: Run, tmp_path: Path) -> None:
    tsv(tmp_path / "pairs.tsv", pairs())
    (tmp_path / "recipe.toml").write_text(
        '[data]\ntrain = [{path = "pairs.tsv", weight = 2.0}]\n'
        "[model]\nd_model = 34\nnum_heads = 2\n"
        "[train]\nseed = 3\npatience = 5\nwarmup_steps = 11\nmax_steps = 13\n"
    )
    recipe = planned(run, "--recipe", "recipe.toml", "--seed", "5", "--set", "train.patience=7")
    assert recipe["data"]["train"][0]["weight"] == 2.0
    assert recipe["model"]["d_model"] == 34
    assert [recipe["train"][key] for key in ("seed", "patience", "warmup_steps", "max_steps")] == [5, 7, 11, 13]


def test_a_preset_is_a_shape_that_set_may_still_change(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    model = planned(run, corpus, "--preset", "tiny", "--set", "model.num_heads=2")["model"]
    assert (model["d_model"], model["d_ff"], model["encoder_layers"]) == (128, 256, 4)
    assert (model["num_heads"], model["d_k"]) == (2, 64)
    assert planned(run, corpus, "--preset", "D-smooth2")["train"]["label_smoothing"] == 0.2


def test_help_tells_every_setting(run: Run) -> None:
    status, output, _ = run("--help")
    assert status == 0
    for setting in ("train.batch_tokens", "tokenizer.dropout", "data.max_ratio", "model.d_model", "search.beam"):
        assert setting in output


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.tsv"], "no pairs in empty.tsv, read as TSV: give a file with a pair a line, source<TAB>target"),
        (["one.tsv"], "no pair is left to train on: 3 lines with one column. Put a tab between source and target."),
        (["blank.tsv"], "no pair is left to train on: 3 pairs with an empty side."),
        (["folder"], "folder is a directory, expected a file: name the files in it"),
        (["missing.tsv"], "missing.tsv: no such file"),
        (["good.tsv", "--valid", "missing.tsv"], "missing.tsv: no such file"),
        (["good.tsv", "--output", "one.tsv/model"], "cannot write to one.tsv/model: Not a directory"),
        ([], "no corpus to train on: name a TSV, TMX or JSON lines file, or --source and --target"),
        (["--source", "good.tsv"], "--source and --target go together: the two sides, aligned line by line"),
        (["--target", "good.tsv"], "--source and --target go together: the two sides, aligned line by line"),
        (["--swap"], "--swap turns TSV round: name a CORPUS of that form"),
        (["--source", "good.tsv", "--target", "good.tsv", "--swap"], "--swap turns TSV round: name a CORPUS"),
        (["good.tsv", "--init", "m", "--preset", "tiny"], "--preset would be another model than --init names"),
        (["good.tsv", "--init", "m", "--set", "model.d_ff=8"], "--set model.d_ff would be another model than --init"),
        (["--resume", "--preset", "tiny"], "--preset is of a new run, and --resume goes on with one as it was begun"),
        (["--resume", "--valid", "good.tsv"], "--valid is of a new run, and --resume goes on"),
        (["--resume", "--test", "good.tsv"], "--test is of a new run, and --resume goes on"),
        (["--resume", "--both-ways"], "--both-ways is of a new run, and --resume goes on"),
        (["--resume", "--strict"], "--strict is of a new run, and --resume goes on"),
        (["--from", "fr", "--to", "en"], "--from names the languages of CORPUS: name one"),
        (
            ["good.tsv", "--init", "m", "--set", "tokenizer.vocab_size=400"],
            "--set tokenizer.vocab_size would be other pieces than --init has",
        ),
        (
            ["good.tsv", "--teacher", "m", "--set", "tokenizer.kind=unigram"],
            "--set tokenizer.kind would be other pieces than --teacher has",
        ),
        (["good.tsv", "--set", "train.distillation=0.3"], "train.distillation is the share of what a teacher thinks"),
        (["good.tsv", "--teacher", "missing"], "there is no model at missing"),
        (["good.tsv", "--lora", "2"], "--lora fine-tunes a model that has learned: name it with --init"),
        (["good.tsv", "--from", "fr"], "--from and --to go together: the languages of the two sides"),
        (["good.tsv", "--to", "fr"], "--from and --to go together: the languages of the two sides"),
        (["good.tsv", "--set", "train.sede=7"], "unknown key 'train.sede': did you mean 'seed'?"),
        (["good.tsv", "--set", "train.seed"], "'train.seed' is not a setting: write section.key=value"),
        (["good.tsv", "--set", "train.seed=x"], "train.seed is 'x', expected a whole number"),
        (["good.tsv", "--budget", "soon"], "'soon' is not a time: write 45m, 2h or 1d"),
        (["good.tsv", "--preset", "bsae"], "unknown preset 'bsae': did you mean 'base'?"),
        (["good.tsv", "--lora", "-1"], "lora is -1, expected at least 0"),
        (["good.tsv", "--shard"], "--shard splits a model over ranks, and there is one: start it with torchrun"),
        (["good.tsv", "--init", "missing"], "there is no model at missing"),
        (["good.tsv", "--init", "folder"], "folder lacks config.json, so it is not a whole model folder"),
        (["good.tsv", "--recipe", "missing.toml"], "cannot read settings from missing.toml"),
        (["good.tsv", "--recipe", "date.toml"], "card.licence is datetime.date(2024, 1, 2), expected"),
        (["good.tsv", "--recipe", "bad.toml"], "bad.toml: data is 5, expected a section, say [train], with settings"),
        (["good.tsv", "--sede", "7"], "No such option"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_a_mistake_is_one_clear_line(run: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "one.tsv").write_text("un\ndeux\ntrois\n")
    (tmp_path / "blank.tsv").write_text("\n\n\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "bad.toml").write_text("data = 5\n")
    (tmp_path / "date.toml").write_text("[card]\nlicence = 2024-01-02\n")
    tsv(tmp_path / "good.tsv", pairs())
    status, output, errors = run(*(["--output", "m"] if "--output" not in arguments else []), *arguments)
    assert (status, output) == (2, "")
    assert errors.startswith(f"dragoman: {message}")
    assert errors.count("\n") == 1


def test_a_model_must_go_somewhere(run: Run, tmp_path: Path) -> None:
    status, _, errors = run(tsv(tmp_path / "pairs.tsv", pairs()))
    assert (status, errors) == (2, "dragoman: say where the model goes: --output models/mine\n")


def test_once_a_mistake_is_mended_the_same_command_runs(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs(1))
    status, _, errors = run(corpus, "--output", "m", *TINY)
    assert status == 2
    assert errors.splitlines()[-1].startswith("dragoman: 1 pairs are too few to hold some out for validation")
    tsv(tmp_path / "pairs.tsv", pairs())
    status, _, errors = run(corpus, "--output", "m", *TINY)
    assert status == 0, errors


def test_problems_in_the_data_are_told_and_fatal_if_strict(run: Run, tmp_path: Path) -> None:
    corpus = tsv(tmp_path / "pairs.tsv", pairs())
    with open(corpus, "a") as file:
        file.write("une colonne\n" * 53)
    status, _, errors = run(corpus, "--plan")
    assert status == 0
    assert "train: 101 pairs of 154 from " in errors
    assert "(dropped: 53 with one column)" in errors
    status, _, errors = run(corpus, "--plan", "--strict")
    assert status == 2
    assert errors.splitlines()[-1] == "dragoman: 1 problem in the data, first: 53 lines with one column"


def test_without_torch_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    status, _, errors = run("pairs.tsv", "--output", "m")
    assert (status, errors) == (
        2,
        "dragoman: training needs torch: pip install -c constraints.txt '.[train]' in dragoman's folder\n",
    )
