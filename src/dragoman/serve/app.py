"""The application: the routes of all protocols, behind the gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from dragoman.errors import DragomanError
from dragoman.serve import deepl, files, insight, libretranslate, pages
from dragoman.serve.gate import Gate, bearer_key
from dragoman.serve.refusal import Refusal, render
from dragoman.serve.routes import RouteNames
from dragoman.serve.service import Service


def all_routes(service: Service) -> list[BaseRoute]:
    """Every route, those of the protocols in order."""
    routes: list[BaseRoute] = [Route("/metrics", _metrics(service), methods=["GET"])]
    for protocol in (libretranslate, deepl, files, insight, pages):
        if protocol is not insight or service.settings.explain:
            routes += protocol.routes(service)
    return routes


def build(service: Service) -> ASGIApp:
    """The ASGI application for a service."""
    routes = all_routes(service)
    app = Starlette(
        routes=routes,
        exception_handlers={
            Refusal: _refuse,
            DragomanError: _refuse_error,
            HTTPException: _refuse_http,
            RecursionError: _refuse_depth,
            UnicodeDecodeError: _refuse_bytes,
            Exception: _fail,
        },
    )
    names = RouteNames(routes)
    service.metrics.name_routes(names.all)
    return Gate(app, settings=service.settings, metrics=service.metrics, log=service.log, routes=names)


def _metrics(service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(request: Request) -> Response:
        if service.keys is not None:
            service.admit(request, bearer_key(request))
        service.update_gauges()
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return metrics


async def _refuse(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    return render(request.url.path, refusal.status, refusal.message, refusal.headers)


async def _refuse_error(request: Request, error: Exception) -> Response:
    """What a user can mend: the same sentence that the command line prints."""
    return render(request.url.path, 400, " ".join(str(error).split()))


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return render(request.url.path, error.status_code, error.detail, error.headers)


async def _refuse_depth(request: Request, error: Exception) -> Response:
    return render(request.url.path, 400, "Invalid request: the body is nested too deeply")


async def _refuse_bytes(request: Request, error: Exception) -> Response:
    return render(request.url.path, 400, "Invalid request: the body is not UTF-8")


async def _fail(request: Request, error: Exception) -> Response:
    """An error of ours; the gate logs it."""
    return render(request.url.path, 500, "Internal server error: see the server's log")
