"""One HTML file with the page and a trace inside: it opens from a disk, with no network and no server.

Style sheets go in as they are. A module cannot be part of a page under a name of its own, so each becomes a `data:`
address that an import map gives a name, and the imports between modules are rewritten to those names. No torch here.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from dragoman.errors import DragomanError
from dragoman.explain.trace import Trace, pack

PACKAGE = Path(__file__).resolve().parent.parent
LEFT_OUT = ("logits",)
"""Tensors that no view of a saved page shows, and that would be most of it."""

_SHEET = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
_MODULE = re.compile(r'<script type="module" src="([^"]+)"></script>')
_TITLE = re.compile(r"<title>.*?</title>", re.DOTALL)
_IMPORT = re.compile(r"""(\b(?:from|import)\s*\(?\s*)(["'])(\.{1,2}/[^"']+\.js)\2""")


def offline_page(trace: Trace, answers: Mapping[str, Any] | None = None, package: Path = PACKAGE) -> str:
    """The page. `answers` are what a server would say of this trace, by the name of its route: importance, effects."""
    tensors = {name: array for name, array in trace.tensors.items() if name not in LEFT_OUT}
    data = {
        "meta": trace.meta(),
        "tensors": base64.b64encode(pack(tensors)).decode(),
        **(answers or {}),
    }
    text = read(package, "web/index.html")
    text = _TITLE.sub(lambda _: f"<title>dragoman: {html.escape(trace.source.text[:80])}</title>", text, count=1)
    text = _SHEET.sub(lambda match: f"<style>\n{read(package, match[1])}</style>", text)
    entry = _MODULE.search(text)
    if entry is None:
        raise DragomanError("web/index.html has no module to start with: install dragoman again")
    script = f"<script>window.DRAGOMAN_TRACE = {embedded(data)};</script>\n{import_map(package, entry[1])}"
    return text[: entry.start()] + script + text[entry.end() :]


def embedded(value: Any) -> str:
    """JSON that may stand in a script: whatever a text says, it cannot end it."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def import_map(package: Path, entry: str) -> str:
    """A module and all that it imports, as a page holds them."""
    modules = modules_from(package, entry)
    imports = {name_of(path): _address(code) for path, code in modules.items()}
    return (
        f'<script type="importmap">{embedded({"imports": imports})}</script>\n'
        f'<script type="module">import "{name_of(entry)}";</script>'
    )


def modules_from(package: Path, entry: str) -> dict[str, str]:
    """The code of a module and of all that it imports, by path, their imports rewritten to the map's names."""
    found: dict[str, str] = {}
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        code = read(package, path)
        folder = PurePosixPath(path).parent
        waiting += [_resolve(folder, match[3]) for match in _IMPORT.finditer(code)]
        found[path] = _IMPORT.sub(_renamed(folder), code)
    return found


def name_of(path: str) -> str:
    """What the import map calls a module."""
    return f"dragoman/{path}"


def read(package: Path, path: str) -> str:
    """A file of the page."""
    try:
        return (package / path).read_text(encoding="utf-8")
    except OSError as error:
        raise DragomanError(f"the page lacks {path} ({error.strerror}): install dragoman again") from error


def _renamed(folder: PurePosixPath) -> Any:
    return lambda match: f"{match[1]}{match[2]}{name_of(_resolve(folder, match[3]))}{match[2]}"


def _resolve(folder: PurePosixPath, specifier: str) -> str:
    """`../numbers.js` in web/js/views -> web/js/numbers.js."""
    parts = list(folder.parts)
    for part in PurePosixPath(specifier).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _address(code: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(code.encode()).decode()}"
