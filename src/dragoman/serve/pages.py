"""The page at `/`, and its files under `/web/`, as they stand in the package. What they may load, the gate says."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.serve.gate import bearer_key
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service

NOT_EXPLAINED = "explaining is switched off here (--no-explain)"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page, ready to be sent; `etag` changes with its content."""

    content: bytes
    media_type: str
    etag: str


def routes(service: Service) -> list[BaseRoute]:
    """The page's routes. They need no key: what they send is in everybody's package."""
    found = read_files(files("dragoman") / "web")
    routes: list[BaseRoute] = [
        Route("/", _sender(found, "index.html"), methods=["GET"]),
        Route("/web/{path:path}", _sender(found), methods=["GET"]),
    ]
    if not service.settings.explain:
        routes.append(Route("/explain/models", _models(service), methods=["GET"]))
    return routes


def _models(service: Service) -> Callable[[Request], Awaitable[Response]]:
    """What the page still has to know where nothing is explained: the languages, and why."""

    async def models(request: Request) -> Response:
        service.admit(request, bearer_key(request))
        known = [
            {"name": service.models.pick(source, target).name, "source": source, "target": target}
            for source, target in service.models.directions
        ]
        return JSONResponse({"models": known, "ready": False, "why": NOT_EXPLAINED})

    return models


def read_files(folder: Traversable, prefix: str = "") -> dict[str, PageFile]:
    """All files of the page by path; what has no known type is none of them."""
    found: dict[str, PageFile] = {}
    for one in folder.iterdir():
        suffix = f".{one.name.rpartition('.')[2]}"
        if one.is_dir():
            found |= read_files(one, f"{prefix}{one.name}/")
        elif suffix in TYPES:
            content = one.read_bytes()
            found[prefix + one.name] = PageFile(content, TYPES[suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def _sender(found: Mapping[str, PageFile], fixed: str | None = None) -> Callable[[Request], Awaitable[Response]]:
    async def send(request: Request) -> Response:
        file = found.get(fixed or request.path_params["path"])
        if file is None:
            raise Refusal(404, "Not Found")
        headers = {"Cache-Control": "no-cache", "ETag": file.etag}
        if file.etag in (tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")):
            # With its type, or the gate would put a policy on it that is not a page's, and the browser would heed that.
            return Response(status_code=304, media_type=file.media_type, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    return send
