"""A checkpoint is whole or not there, whatever the disk does; the newest whole one is found again."""

import errno
import os
from pathlib import Path
from unittest import mock

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.errors import TrainingError
from dragoman.train.checkpoint import Progress, average, checkpoint_path, latest, load, prune, save, unshared


def tensors(value: float = 1.0) -> dict[str, Tensor]:
    return {"matrix": torch.full((3, 5), value), "steps": torch.tensor(7, dtype=torch.int64)}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    progress = Progress(step=13, total_steps=97, epoch=2, batch=5, seconds=1.5, best=None, finished="interrupted")
    save(tmp_path / "run" / "step.safetensors", tensors(), progress)
    found, its_progress = load(tmp_path / "run" / "step.safetensors")
    assert its_progress == progress
    assert found.keys() == tensors().keys()
    for name, tensor in tensors().items():
        assert torch.equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype
    assert files(tmp_path / "run") == ["step.safetensors"]


@given(
    st.builds(
        Progress,
        step=st.integers(0, 10**9),
        seconds=st.floats(0, 1e9),
        best=st.none() | st.floats(allow_nan=False),
        skipped_steps=st.integers(0, 10**6),
    )
)
def test_progress_comes_back_to_the_last_bit(tmp_path_factory: pytest.TempPathFactory, progress: Progress) -> None:
    path = tmp_path_factory.mktemp("run") / "step.safetensors"
    save(path, {}, progress)
    assert load(path)[1] == progress


def test_a_view_of_a_larger_tensor_is_saved_as_what_it_shows(tmp_path: Path) -> None:
    whole = torch.arange(35.0).view(5, 7).requires_grad_()
    save(tmp_path / "a.safetensors", {"turned": whole.T[2:]}, Progress())
    assert torch.equal(load(tmp_path / "a.safetensors")[0]["turned"], whole.detach().T[2:])


def test_tied_weights_are_saved_under_each_of_their_names(tmp_path: Path) -> None:
    tied = torch.randn(3, 5)
    save(tmp_path / "a.safetensors", unshared({"source": tied, "target": tied}), Progress())
    found, _ = load(tmp_path / "a.safetensors")
    assert torch.equal(found["source"], tied)
    assert torch.equal(found["target"], tied)


def test_the_latest_is_the_one_of_the_highest_step(tmp_path: Path) -> None:
    assert latest(tmp_path) is None
    assert latest(tmp_path / "not there") is None
    for step in (900, 1000, 99, 123_456_789):
        save(checkpoint_path(tmp_path, step), tensors(), Progress(step=step))
    found = latest(tmp_path)
    assert found is not None
    assert load(found)[1].step == 123_456_789


@pytest.mark.parametrize("kept_bytes", [0, 5, 100, -1])
def test_a_checkpoint_that_was_cut_short_is_passed_over(tmp_path: Path, kept_bytes: int) -> None:
    for step in (5, 7):
        save(checkpoint_path(tmp_path, step), tensors(), Progress(step=step))
    damaged = checkpoint_path(tmp_path, 7)
    damaged.write_bytes(damaged.read_bytes()[:kept_bytes])
    assert latest(tmp_path) == checkpoint_path(tmp_path, 5)
    with pytest.raises(TrainingError, match=r"step-000000007\.safetensors is not a whole checkpoint: "):
        load(damaged)


def test_a_file_without_progress_is_no_checkpoint(tmp_path: Path) -> None:
    safetensors.torch.save_file(tensors(), checkpoint_path(tmp_path, 7))
    with pytest.raises(TrainingError, match="is not a whole checkpoint"):
        load(checkpoint_path(tmp_path, 7))


def test_a_part_that_a_killed_process_left_is_no_checkpoint(tmp_path: Path) -> None:
    save(checkpoint_path(tmp_path, 5), tensors(), Progress(step=5))
    checkpoint_path(tmp_path, 7).with_suffix(".part").write_bytes(b"half")
    assert latest(tmp_path) == checkpoint_path(tmp_path, 5)
    save(checkpoint_path(tmp_path, 7), tensors(), Progress(step=7))
    assert files(tmp_path) == ["step-000000005.safetensors", "step-000000007.safetensors"]


ENOSPC = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
RUST_ENOSPC = safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("safetensors.torch.save_file", RUST_ENOSPC),
        ("safetensors.torch.save_file", ENOSPC),
        ("os.fsync", ENOSPC),
        ("os.replace", ENOSPC),
    ],
)
def test_a_full_disk_is_said_clearly_and_earlier_checkpoints_are_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, error: Exception
) -> None:
    path = checkpoint_path(tmp_path, 5)
    save(path, tensors(1.0), Progress(step=5))
    before = path.read_bytes()
    monkeypatch.setattr(at, mock.Mock(side_effect=error))
    for step in (5, 7):  # over the earlier one, and beside it
        with pytest.raises(TrainingError) as caught:
            save(checkpoint_path(tmp_path, step), tensors(2.0), Progress(step=step))
        assert str(caught.value) == (
            f"cannot write the checkpoint of step {step} to {tmp_path}: no space left on the disk; "
            f"earlier checkpoints are intact: make room, then run the same command with --resume"
        )
    assert files(tmp_path) == [path.name]
    assert path.read_bytes() == before
    assert latest(tmp_path) == path


def test_a_write_that_the_system_cuts_off_leaves_nothing_behind(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4099, hard))
    try:
        with pytest.raises(TrainingError, match=r"cannot write the checkpoint of step 7 to .*File too large"):
            save(checkpoint_path(tmp_path, 7), {"large": torch.zeros(1 << 16)}, Progress(step=7))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []


def test_a_folder_that_is_none_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(TrainingError, match=r"cannot write the checkpoint of step 7 to .*run: .*File exists"):
        save(checkpoint_path(tmp_path / "run", 7), tensors(), Progress(step=7))


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    paths = [checkpoint_path(tmp_path, step) for step in (5, 900, 1000)]
    for path in paths:
        save(path, tensors(), Progress())
    prune(reversed(paths), keep=2)
    assert files(tmp_path) == [path.name for path in paths[1:]]
    prune(paths, keep=5)
    assert files(tmp_path) == [path.name for path in paths[1:]]


def test_the_average_is_the_mean_of_each_weight(tmp_path: Path) -> None:
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        save(checkpoint_path(tmp_path, step), {"matrix": torch.full((3, 5), value)}, Progress())
    mean = average(sorted(tmp_path.iterdir()))
    assert torch.equal(mean["matrix"], torch.full((3, 5), 3.0))
    assert mean["matrix"].dtype == torch.float32


def test_equal_weights_average_to_themselves_to_the_last_bit(tmp_path: Path) -> None:
    weights = {"matrix": torch.randn(7, 11) * 1e7}
    paths = [checkpoint_path(tmp_path, step) for step in (1, 2, 3)]
    for path in paths:
        save(path, weights, Progress())
    assert torch.equal(average(paths)["matrix"], weights["matrix"])
