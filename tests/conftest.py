"""What every test stands on: the same random numbers each time, and one thread, which is quickest for small tensors."""

import os
import sys

import pytest
from hypothesis import settings

from dragoman.train.tiles import ISA_VARIABLE, WITHOUT_TILES, hides_its_tiles

# The first call of a torch kernel may take a hundred times the second's: no deadline could be right. The same examples
# each time: a test that fails fails for everyone, and not once in a hundred runs.
settings.register_profile("dragoman", deadline=None, derandomize=True)
settings.load_profile("dragoman")

# Tests of bfloat16 do without AMX where torch would die of it, whatever torch has done before them.
if hides_its_tiles():
    os.environ[ISA_VARIABLE] = WITHOUT_TILES


@pytest.fixture(autouse=True)
def _the_same_numbers_each_time() -> None:
    torch = sys.modules.get("torch")  # tests that need no torch do not wait for it
    if torch is not None:
        torch.set_num_threads(1)
        torch.manual_seed(1)
