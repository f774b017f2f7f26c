"""Beyond one process: torchrun, gloo on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import environment, run, train_command
from synthetic import make_pairs, write_pairs

pytestmark = pytest.mark.slow

SETTINGS = ("train.max_steps=40", "train.validate_steps=20", "model.dropout=0", "train.precision=float32")
"""In bfloat16, which some CPUs are faster in, rounding makes more of a difference than the ranks may."""
MORE = [word for setting in SETTINGS for word in ("--set", setting)]


def torchrun(num_ranks: int, command: list[str], *options: str) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(num_ranks), *options]
    return [*launcher, *command[1:]]


def losses(folder: Path) -> list[float]:
    events = map(json.loads, (folder / "training.jsonl").read_text().splitlines())
    return [event["loss"] for event in events if event["event"] in ("step", "validation")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("corpus") / "pairs.tsv", make_pairs(500))


@pytest.fixture(scope="module")
def alone(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    finished = run(train_command(corpus, folder / "model", *MORE), folder / "cache")
    assert finished.returncode == 0, finished.stderr
    return folder / "model"


def test_two_ranks_give_the_losses_of_one(corpus: Path, alone: Path, tmp_path: Path) -> None:
    finished = run(torchrun(2, train_command(corpus, tmp_path / "model", *MORE)), tmp_path / "cache")
    assert finished.returncode == 0, finished.stderr
    assert losses(tmp_path / "model") == pytest.approx(losses(alone), abs=2e-4)


def test_two_ranks_that_share_the_weights_give_the_losses_of_one_with_adamw(corpus: Path, tmp_path: Path) -> None:
    # Sharded matrices are left to AdamW.
    whole = train_command(corpus, tmp_path / "whole", *MORE, "--set", "train.optimizer=adamw")
    shared = torchrun(2, train_command(corpus, tmp_path / "shared", *MORE, "--shard"))
    for command in (whole, shared):
        finished = run(command, tmp_path / "cache")
        assert finished.returncode == 0, finished.stderr
    assert losses(tmp_path / "shared") == pytest.approx(losses(tmp_path / "whole"), abs=2e-4)


def test_a_checkpoint_of_two_ranks_resumes_on_one(corpus: Path, alone: Path, tmp_path: Path) -> None:
    command = train_command(corpus, tmp_path / "model", *MORE, "--set", "train.save_seconds=0.2")
    process = subprocess.Popen(
        torchrun(2, command), env=environment(tmp_path / "cache"), stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not list((tmp_path / "model" / "run").glob("step-*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.05)
    ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for number in (process.pid, *map(int, ranks)):
        os.kill(number, signal.SIGKILL)
    process.wait()
    finished = run([*command, "--resume"], tmp_path / "cache")
    assert finished.returncode == 0, finished.stderr
    assert losses(tmp_path / "model")[-1] == pytest.approx(losses(alone)[-1], abs=2e-4)


def test_when_a_rank_is_killed_torchrun_restarts_from_the_last_checkpoint(
    corpus: Path, alone: Path, tmp_path: Path
) -> None:
    command = train_command(corpus, tmp_path / "model", *MORE, "--set", "train.save_seconds=0.2", "--resume")
    process = subprocess.Popen(
        torchrun(2, command, "--standalone", "--max-restarts", "3", "--monitor-interval", "0.2"),
        env=environment(tmp_path / "cache"),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list((tmp_path / "model" / "run").glob("step-*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.05)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
    os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)
    _, told = process.communicate(timeout=200)
    assert process.returncode == 0, told
    assert losses(tmp_path / "model")[-1] == pytest.approx(losses(alone)[-1], abs=2e-4)
    assert (tmp_path / "model" / "model.safetensors").exists()


def test_more_ranks_than_pairs_is_one_clear_line(tmp_path: Path) -> None:
    few = write_pairs(tmp_path / "few.tsv", make_pairs(3))
    command = train_command(few, tmp_path / "model", *MORE, "--valid", str(few))
    refused = run(torchrun(4, command), tmp_path / "cache")
    assert refused.returncode != 0
    assert "3 pairs" in refused.stderr
    assert "4 ranks" in refused.stderr
    assert not (tmp_path / "model" / "model.safetensors").exists()
