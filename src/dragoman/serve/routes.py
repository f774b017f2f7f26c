"""What a path is called in metrics: its route, not what somebody typed."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute, Mount, Route

from dragoman.serve.metrics import OTHER

_FILE_PATHS = ("/translate_file",)


class RouteNames:
    """The names of routes, in order."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        paths = [route.path for route in routes if isinstance(route, (Route, Mount))]
        self._exact = frozenset(path for path in paths if "{" not in path)
        self._beginnings = [(path.partition("{")[0], path) for path in paths if "{" in path]
        self.all = tuple(dict.fromkeys(path or "/" for path in paths))

    def name(self, path: str) -> str:
        """The route of a path."""
        if path in self._exact:
            return path
        for beginning, route in self._beginnings:
            if path.startswith(beginning):
                return route
        return OTHER

    def takes_files(self, path: str) -> bool:
        """Whether a body may be as large as a file."""
        return path in _FILE_PATHS
