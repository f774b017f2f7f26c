"""What every test stands on: the same random numbers each time, and one thread, which is quickest for small tensors."""

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The first call of a torch kernel may take a hundred times the second's: no deadline could be right. The same examples
# each time: a test that fails fails for everyone, and not once in a hundred runs.
settings.register_profile("dragoman", deadline=None, derandomize=True)
settings.load_profile("dragoman")

# Where a virtual processor hides the size of its AMX tiles, torch dies of bfloat16 (`hides_its_tiles` in
# train/hardware.py): tests of that precision do without AMX there, whatever torch has done before them.
_cpu = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
if "amx_tile" in _cpu and int(re.search(r"cpuid level\s*: (\d+)", _cpu)[1]) < 0x1D:
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")


@pytest.fixture(autouse=True)
def _the_same_numbers_each_time() -> None:
    torch = sys.modules.get("torch")  # tests that need no torch do not wait for it
    if torch is not None:
        torch.set_num_threads(1)
        torch.manual_seed(1)
