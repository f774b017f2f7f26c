"""An interrupted run goes on as if it had not been: the same bits at the end."""

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from commands import environment, run, train_command, weights_hash
from synthetic import make_pairs, write_pairs

SETTINGS = {
    "train.max_steps": 90,
    "train.validate_steps": 30,
    "train.average": 2,
    "train.ema_decay": 0.9,
    "train.save_seconds": 0.3,
    "tokenizer.dropout": 0.1,
}
MORE = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("corpus") / "pairs.tsv", make_pairs(500))


@pytest.fixture(scope="module")
def uninterrupted(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    finished = run(train_command(corpus, folder / "model", *MORE), folder / "cache")
    assert finished.returncode == 0, finished.stderr
    return folder / "model"


def wait_for_step(folder: Path, step: int, process: subprocess.Popen[bytes]) -> None:
    """Until the log says that the run has got there, or it has ended."""
    log = folder / "training.jsonl"
    while process.poll() is None:
        if log.exists() and any(f'"step": {number},' in log.read_text() for number in range(step, step + 10)):
            return
        time.sleep(0.02)


@pytest.mark.slow
def test_kill_9_at_random_moments_then_resume_gives_the_same_weights(
    corpus: Path, uninterrupted: Path, tmp_path: Path
) -> None:
    command = train_command(corpus, tmp_path / "model", *MORE)
    draw = random.Random()
    kills = 0
    for step in (1, 10, 40, 70):
        process = subprocess.Popen(
            [*command, "--resume"], env=environment(tmp_path / "cache"), stderr=subprocess.DEVNULL
        )
        wait_for_step(tmp_path / "model", step, process)
        time.sleep(draw.uniform(0, 0.4))
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills >= 2
    finished = run([*command, "--resume"], tmp_path / "cache")
    assert finished.returncode == 0, finished.stderr
    assert weights_hash(tmp_path / "model") == weights_hash(uninterrupted)


@pytest.mark.slow
def test_a_resumed_log_reads_as_if_never_interrupted(corpus: Path, uninterrupted: Path, tmp_path: Path) -> None:
    command = train_command(corpus, tmp_path / "model", *MORE)
    process = subprocess.Popen(command, env=environment(tmp_path / "cache"), stderr=subprocess.PIPE)
    wait_for_step(tmp_path / "model", 40, process)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"--resume" in told
    assert run([*command, "--resume"], tmp_path / "cache").returncode == 0

    def steps(folder: Path) -> list[tuple[int, float]]:
        events = map(json.loads, (folder / "training.jsonl").read_text().splitlines())
        return [(event["step"], event["loss"]) for event in events if event["event"] in ("step", "validation")]

    # The window of the line in which the run was stopped has fewer steps; every other line is the same.
    ours, whole = steps(tmp_path / "model"), steps(uninterrupted)
    assert [step for step, _ in ours] == [step for step, _ in whole]
    assert sum(a != b for a, b in zip(ours, whole, strict=True)) <= 1
    assert weights_hash(tmp_path / "model") == weights_hash(uninterrupted)


def test_resume_with_a_changed_recipe_names_the_key(corpus: Path, uninterrupted: Path, tmp_path: Path) -> None:
    refused = run(train_command(corpus, uninterrupted, *MORE, "--resume", "--seed", "7"), tmp_path)
    assert refused.returncode == 2
    assert "train.seed: 1 -> 7" in refused.stderr
    assert refused.stderr.count("\n") == 1
    before = (uninterrupted / "run" / "run.json").read_bytes()
    refused = run(
        train_command(corpus, uninterrupted, *MORE, "--resume", "--seed", "7", "--set", "train.max_steps=500"), tmp_path
    )
    assert "train.seed: 1 -> 7" in refused.stderr
    assert (uninterrupted / "run" / "run.json").read_bytes() == before


def test_a_folder_with_a_run_is_not_overwritten(corpus: Path, uninterrupted: Path, tmp_path: Path) -> None:
    refused = run(train_command(corpus, uninterrupted, *MORE), tmp_path)
    assert refused.returncode == 2
    assert "holds a training run already: add --resume to go on with it, or choose another --output" in refused.stderr


def test_a_run_whose_rate_does_not_know_its_end_may_be_given_another(corpus: Path, tmp_path: Path) -> None:
    def command(output: str, steps: int) -> list[str]:
        settings = ("train.schedule=inverse-sqrt", "train.validate_steps=10", f"train.max_steps={steps}")
        return train_command(corpus, tmp_path / output, *(word for one in settings for word in ("--set", one)))

    assert run(command("whole", 30), tmp_path / "cache").returncode == 0
    assert run(command("longer", 20), tmp_path / "cache").returncode == 0
    assert weights_hash(tmp_path / "longer") != weights_hash(tmp_path / "whole")
    more = run([*command("longer", 30), "--resume"], tmp_path / "cache")
    assert more.returncode == 0, more.stderr
    assert "the run is to end at step 30" in more.stderr
    assert weights_hash(tmp_path / "longer") == weights_hash(tmp_path / "whole")
    assert (
        json.loads((tmp_path / "longer" / "run" / "run.json").read_text())["plan"]["recipe"]["train"]["max_steps"] == 30
    )
    too_few = run([*command("longer", 25), "--resume"], tmp_path / "cache")
    assert too_few.returncode == 2
    assert "the run is at step 30 already, it cannot end at step 25" in too_few.stderr


@pytest.mark.slow
def test_an_end_may_move_until_the_rate_falls_towards_it(corpus: Path, uninterrupted: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        train_command(corpus, tmp_path / "model", *MORE, "--set", "train.max_steps=4000"),
        env=environment(tmp_path / "cache"), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for_step(tmp_path / "model", 10, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 130
    resumed = [*train_command(corpus, tmp_path / "model", *MORE), "--resume"]
    finished = run(resumed, tmp_path / "cache")
    assert finished.returncode == 0, finished.stderr
    assert weights_hash(tmp_path / "model") == weights_hash(uninterrupted)
    too_late = run([*resumed, "--set", "train.max_steps=200"], tmp_path / "cache")
    assert too_late.returncode == 2
    assert "at step 90 the learning rate is" in too_late.stderr
    assert "go on from that model with --init" in too_late.stderr


def test_a_budget_leaves_the_end_to_the_clock(corpus: Path, tmp_path: Path) -> None:
    command = [*train_command(corpus, tmp_path / "model", "--budget", "20s"), "--set", "train.max_steps=20"]
    assert run(command, tmp_path / "cache").returncode == 0
    refused = run([*command, "--resume", "--set", "train.max_steps=30"], tmp_path / "cache")
    assert refused.returncode == 2
    assert "the run has a budget, so the clock says where it ends" in refused.stderr
