"""The page's files over HTTP: typed, tagged, and under a strict policy."""

from pathlib import Path

import httpx
import pytest

import dragoman
from dragoman.serve.pages import read_files

WEB = Path(dragoman.__file__).parent / "web"


def get(address: str, path: str, **headers: str) -> httpx.Response:
    return httpx.get(f"{address}{path}", headers=headers, timeout=60)


@pytest.mark.parametrize(
    ("path", "file", "media_type"),
    [
        ("/", "index.html", "text/html"),
        ("/web/js/main.js", "js/main.js", "text/javascript"),
        ("/web/js/views/beam.js", "js/views/beam.js", "text/javascript"),
        ("/web/css/base.css", "css/base.css", "text/css"),
    ],
)
def test_a_file_comes_whole_and_with_its_type(address: str, path: str, file: str, media_type: str) -> None:
    answer = get(address, path)
    assert answer.content == (WEB / file).read_bytes()
    assert answer.headers["content-type"] == f"{media_type}; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_file_that_is_known_already_is_not_sent_again(address: str) -> None:
    tag = get(address, "/web/js/main.js").headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = get(address, "/web/js/main.js", **{"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert get(address, "/web/js/main.js", **{"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/web/", "/web/nothing.js", "/web/../serve/pages.py", "/web/%2e%2e/config.py", "/web/js"]
)
def test_what_is_no_file_of_the_page_is_not_found(address: str, path: str) -> None:
    assert get(address, path).status_code == 404


def test_scripts_and_styles_are_the_packages_own(address: str) -> None:
    first = get(address, "/")
    policy = first.headers["content-security-policy"]
    again = get(address, "/", **{"If-None-Match": first.headers["etag"]})
    assert again.headers["content-security-policy"] == policy  # a browser takes over what comes with a 304
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy


def test_only_known_types_are_read(tmp_path: Path) -> None:
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "a.js").write_bytes(b"1")
    (tmp_path / "notes.txt").write_bytes(b"2")
    (tmp_path / "a.html~").write_bytes(b"3")
    assert list(read_files(tmp_path)) == ["js/a.js"]
