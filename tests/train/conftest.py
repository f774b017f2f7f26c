"""What a whole file of tests shares, its trained models too: a cache of its own, and one thread."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _a_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is read from, or left in, the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    """Another number of threads adds up in another order, so that bits would differ."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
