"""`Refusal`: an answer that is no success, and the shape that each protocol gives it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from starlette.responses import JSONResponse

DEEPL_PREFIX = "/v2/"


class Refusal(Exception):  # noqa: N818 (a refusal is no error of ours)
    """A request that is not answered as it asked: an HTTP status, a sentence for the client, and when to come again."""

    def __init__(self, status: int, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_seconds = retry_after_seconds

    @property
    def headers(self) -> dict[str, str]:
        if self.retry_after_seconds is None:
            return {}
        return {"Retry-After": str(max(1, math.ceil(self.retry_after_seconds)))}


def render(path: str, status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The body that clients of the protocol at `path` look for."""
    name = "message" if path.startswith(DEEPL_PREFIX) else "error"
    # A message may quote the request, and half a surrogate pair could not be sent.
    message = message.encode("utf-8", "replace").decode()
    return JSONResponse({name: message}, status_code=status, headers=dict(headers or {}))
