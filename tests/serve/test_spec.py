"""The description of the server is complete and true: what it says of requests and answers holds on the wire."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from starlette.routing import Route
from wire_server import make_tiny_service, serving

from dragoman.recipe import SearchConfig
from dragoman.serve.app import all_routes
from dragoman.serve.spec import specification

EXAMPLES = 7
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]
SERVED = {"source": "fr", "target": "en", "source_lang": "FR", "target_lang": "EN"}
FOR_THE_PAGE = ("/web/", "/explain/")
"""What the page is made of and asks for: no interface for others."""

schema = schemathesis.openapi.from_dict(specification(with_keys=False))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    kept = tmp_path_factory.mktemp("kept")
    places = {"glossary_dir": str(kept / "glossaries"), "suggestions": str(kept / "better.tsv")}
    # What comes out does not matter here, so it may come out fast.
    with serving(char_limit=997, batch_limit=11, search=SearchConfig(beam=1, extra_length=3), **places) as url:
        yield url


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_breaks_the_server_and_every_answer_is_as_described(case: Any, url: str) -> None:
    case.call_and_validate(base_url=url, checks=CHECKS)
    # Few languages that are made up are served; those of the examples are.
    if case.meta.phase.name == "fuzzing" and isinstance(case.body, dict):
        case.body.update({name: language for name, language in SERVED.items() if name in case.body})
        case.query.clear()
        case.call_and_validate(base_url=url, checks=CHECKS)


def test_the_description_is_served(url: str) -> None:
    assert httpx.get(f"{url}/spec").json() == specification(with_keys=False)


def test_every_route_is_described() -> None:
    service = make_tiny_service()
    routes = [route for route in all_routes(service) if isinstance(route, Route)]
    service.close()
    found = {(route.path, method.lower()) for route in routes for method in (route.methods or ()) if method != "HEAD"}
    open_to_others = {one for one in found if one[0] != "/" and not one[0].startswith(FOR_THE_PAGE)}
    described = {
        (path, method) for path, methods in specification(with_keys=False)["paths"].items() for method in methods
    }
    assert described == open_to_others


def test_keys_are_described_only_where_they_are_needed() -> None:
    assert "securitySchemes" not in specification(with_keys=False)["components"]
    assert specification(with_keys=True)["components"]["securitySchemes"]["deepl"]["in"] == "header"
