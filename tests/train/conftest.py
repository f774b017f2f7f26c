"""Every file of tests has a cache of its own: nothing is read from, or left in, the home of whoever runs them."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _a_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
