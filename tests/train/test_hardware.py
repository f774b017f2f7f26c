"""What the machine gains: precision and compiling are measured, and a request is followed without measuring."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
from small_runs import events, run_small, small_recipe, write_corpus
from torch import nn

from dragoman.config import ModelConfig
from dragoman.errors import TrainingError
from dragoman.model.transformer import Transformer
from dragoman.recipe import TrainConfig
from dragoman.train import hardware, tiles
from dragoman.train.hardware import choose_precision, compile_blocks, compiling_pays, reuse_memory

CPU = torch.device("cpu")

# Tracing looks at the gradient of what goes into a block, which has none before the backward pass.
torchs_own_warning = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")


def make_model() -> Transformer:
    torch.manual_seed(7)
    shape = {"d_model": 22, "d_ff": 37, "num_heads": 2, "encoder_layers": 3, "decoder_layers": 2, "dropout": 0.0}
    return Transformer(ModelConfig(vocab_size=31, max_length=29, **shape))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_the_precision_asked_for_is_taken_unmeasured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_product_seconds", lambda dtype, device: pytest.fail("measured"))
    assert choose_precision(TrainConfig(precision=name), CPU) == getattr(torch, name)


@pytest.mark.parametrize(
    ("narrow_seconds", "chosen"), [(0.5, torch.bfloat16), (0.95, torch.float32), (3.0, torch.float32)]
)
def test_auto_takes_bfloat16_where_it_is_clearly_faster(
    narrow_seconds: float, chosen: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {torch.float32: 1.0, torch.bfloat16: narrow_seconds}
    monkeypatch.setattr(hardware, "_product_seconds", lambda dtype, device: seconds[dtype])
    assert choose_precision(TrainConfig(), CPU) == chosen


def cpu_info(level: int, flags: str) -> str:
    core = f"processor\t: 0\ncpuid level\t: {level}\nflags\t\t: fpu {flags} sse\nbugs\t\t:\n"
    return f"{core}\n{core}"


@pytest.mark.parametrize(
    ("info", "hidden"),
    [
        (cpu_info(28, "amx_bf16 amx_tile"), True),
        (cpu_info(31, "amx_bf16 amx_tile"), False),
        (cpu_info(13, "avx2"), False),
        ("", False),
    ],
)
def test_tiles_are_hidden_where_cpuid_ends_before_them(
    info: str, hidden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(info)
    monkeypatch.setattr(tiles, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    assert tiles.hides_its_tiles() == hidden
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    assert not tiles.hides_its_tiles()  # somebody knows better


def test_where_tiles_are_hidden_bfloat16_is_not_even_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "hides_its_tiles", lambda: True)
    monkeypatch.setattr(hardware, "_product_seconds", lambda dtype, device: pytest.fail("measured"))
    assert choose_precision(TrainConfig(), CPU) == torch.float32
    assert choose_precision(TrainConfig(precision="float32"), CPU) == torch.float32
    with pytest.raises(
        TrainingError, match=r"of which torch would die here: .* set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
    ):
        choose_precision(TrainConfig(precision="bfloat16"), CPU)


def test_products_are_really_measured() -> None:
    assert choose_precision(TrainConfig(), CPU) in (torch.float32, torch.bfloat16)


def test_every_block_is_compiled_for_batches_of_any_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[nn.Module, dict[str, Any]]] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: compiled.append((self, how)))
    model = make_model()
    compile_blocks(model)
    assert [block for block, _ in compiled] == [*model.encoder.blocks, *model.decoder.blocks]
    assert all(how == {"dynamic": True} for _, how in compiled)


@torchs_own_warning
def test_compiled_blocks_give_the_same_numbers_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    # "eager" traces as any backend does, and then runs the graph as it is.
    compile = nn.Module.compile
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: compile(self, backend="eager", **how))
    plain, compiled = make_model(), make_model()
    compile_blocks(compiled)
    for batch, source, target in ((2, 11, 13), (3, 7, 5)):
        ids = torch.randint(3, 31, (batch, source)), torch.randint(3, 31, (batch, target))
        outputs = [model(*ids) for model in (plain, compiled)]
        torch.testing.assert_close(outputs[1], outputs[0])
        for model, output in zip((plain, compiled), outputs, strict=True):
            model.zero_grad()
            output.square().sum().backward()
        for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
            torch.testing.assert_close(other.grad, one.grad, atol=1e-4, rtol=1e-4)
    torch.compiler.reset()


def test_whether_compiling_pays_is_the_time_of_a_warm_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(hardware, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(hardware, "compile_blocks", lambda model: setattr(model, "compiled", True))
    warm: list[nn.Module] = []

    def step(model: nn.Module) -> None:
        first = not any(model is other for other in warm)
        clock.now += 100.0 if first else 3.0 if getattr(model, "compiled", False) else 5.0
        warm.append(model)

    assert compiling_pays(step, nn.Module) == (True, "a step takes 3.00 s with it, 5.00 s without")


@pytest.mark.parametrize(("seconds", "word"), [((1.0, 0.5), "on"), ((1.0, 0.95), "off"), ((1.0, 2.0), "off")])
def test_auto_compiles_a_long_run_if_a_step_gets_faster_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, float], word: str
) -> None:
    monkeypatch.setattr(hardware, "EARNS_BACK_SECONDS", 0.0)
    monkeypatch.setattr(hardware, "_step_seconds", mock.Mock(side_effect=seconds))
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: None)
    told: list[Any] = []
    run_small(small_recipe(write_corpus(tmp_path), max_steps=2), tmp_path / "model", trackers=[told.append])
    (start,) = events(tmp_path / "model", "start")
    assert start["compiled"] == (word == "on")
    text = f"torch.compile: a step takes {seconds[1]:.2f} s with it, {seconds[0]:.2f} s without: {word}"
    assert text in [event.get("text") for event in told]


def test_where_nothing_can_be_compiled_a_long_run_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "EARNS_BACK_SECONDS", 0.0)
    monkeypatch.setattr(hardware, "_step_seconds", mock.Mock(side_effect=RuntimeError("No C++ compiler\n\nfound")))
    monkeypatch.setattr(nn.Module, "compile", lambda self, **how: None)
    told: list[Any] = []
    run_small(small_recipe(write_corpus(tmp_path), max_steps=2), tmp_path / "model", trackers=[told.append])
    assert events(tmp_path / "model", "start")[0]["compiled"] is False
    assert "torch.compile: it does not work here (No C++ compiler): off" in [one.get("text") for one in told]


def test_a_run_that_is_to_be_compiled_and_cannot_be_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_compiler(self: nn.Module, **how: Any) -> None:
        self.register_forward_pre_hook(mock.Mock(side_effect=RuntimeError("No C++ compiler\n\nfound")))

    monkeypatch.setattr(nn.Module, "compile", no_compiler)
    with pytest.raises(
        TrainingError,
        match=r"compile is on, .* does not work here \(No C\+\+ compiler\): install a C\+\+ .* auto or off",
    ):
        run_small(small_recipe(write_corpus(tmp_path), max_steps=2, compile="on"), tmp_path / "model")


def test_auto_does_not_even_try_for_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "compiling_pays", lambda *arguments: pytest.fail("tried"))
    run_small(small_recipe(write_corpus(tmp_path), max_steps=2), tmp_path / "model")
    assert events(tmp_path / "model", "start")[0]["compiled"] is False


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on a CPU")
@torchs_own_warning
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_run_learns_what_a_plain_one_does(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    for compile in ("off", "on"):
        run_small(small_recipe(corpus, max_steps=5, compile=compile), tmp_path / compile)
    plain, compiled = (events(tmp_path / compile, "validation")[-1]["loss"] for compile in ("off", "on"))
    assert compiled == pytest.approx(plain, abs=1e-3)
    torch.compiler.reset()


def test_memory_is_reused_where_the_c_library_can_and_nothing_breaks_where_it_cannot() -> None:
    with mock.patch("ctypes.CDLL") as library:
        reuse_memory()
    assert library.return_value.mallopt.call_args_list == [mock.call(-4, 0), mock.call(-1, 2**31 - 1)]
    with mock.patch("ctypes.CDLL", return_value=SimpleNamespace()):
        reuse_memory()
