"""One server and one browser for all tests of the page."""

from collections.abc import Iterator

import pytest
from browser import Asker, Reader, browsing, serving
from playwright.sync_api import Browser, expect

from dragoman.serve import insight


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(insight, "PER_MINUTE", 1e6)  # tests click faster than people
        with serving(tmp_path_factory.mktemp("page")) as address:
            yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=30_000)  # nothing waits that long when all is well, and machines may be busy
    with browsing() as browser:
        yield browser


@pytest.fixture
def reader(chromium: Browser, address: str) -> Iterator[Reader]:
    reader = Reader(chromium, address)
    yield reader
    reader.context.close()
    assert reader.errors == []
    assert {url.split("/")[2] for url in reader.requests if url.startswith("http")} <= {address.split("/")[2]}


@pytest.fixture(scope="session")
def asker(address: str) -> Iterator[Asker]:
    asker = Asker(address)
    yield asker
    asker.client.close()
