"""The API's document: valid, complete, in step with the code; and the routes in their order."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from fastapi import APIRouter
from openapi_spec_validator import validate
from pydantic import TypeAdapter

from tests.api.rig import Rig
from tests.tidy.sources import ROOT
from windlass.api import app as app_module
from windlass.api.app import bare
from windlass.api.guard import GuardedRoute, guard_of, guarded_router
from windlass.core.errors import Broken
from windlass.pure.problem import KINDS

APP = bare()
ROUTES = [route for route in APP.routes if isinstance(route, GuardedRoute)]
DOCUMENT = APP.openapi()


def test_the_document_is_valid_openapi() -> None:
    validate(DOCUMENT)
    assert DOCUMENT["openapi"] == "3.1.0"


def test_the_stored_document_is_what_the_code_says() -> None:
    stored = json.loads((ROOT / "docs/reference/openapi.json").read_text(encoding="utf-8"))
    assert stored == DOCUMENT, "run `make docs`"


async def test_the_server_serves_the_same_document(api: Rig) -> None:
    assert (await api.stranger.get("/openapi.json")).json() == DOCUMENT


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: str(route.operation_id))
def test_every_operation_is_described(route: GuardedRoute) -> None:
    own = guard_of(route.endpoint)
    assert own.codes <= set(KINDS)
    if not route.include_in_schema:
        return
    (method,) = route.methods
    operation = DOCUMENT["paths"][route.path_format][method.lower()]
    assert operation["operationId"] == route.operation_id
    assert operation["summary"] and operation["description"] and operation["tags"]
    assert "HTTPValidationError" not in str(operation)
    assert bool(operation["security"]) is not own.is_open
    for code in own.codes:
        assert f"`{code}`" in operation["responses"][str(KINDS[code].status)]["description"]
    for status, answer in operation["responses"].items():
        if int(status) >= 400 and status != "503":
            assert list(answer["content"]) == ["application/problem+json"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: str(route.operation_id))
def test_every_answer_in_json_has_an_example_that_fits(route: GuardedRoute) -> None:
    if not route.include_in_schema:
        return
    (method,) = route.methods
    operation = DOCUMENT["paths"][route.path_format][method.lower()]
    answer = operation["responses"][str(route.status_code or 200)]
    content = answer.get("content", {}).get("application/json")
    if content is None or route.operation_id == "docs.openapi":
        return
    assert content["example"] is not None
    if route.response_model is not None:
        TypeAdapter(route.response_model).validate_json(json.dumps(content["example"]))


def test_operations_have_distinct_names() -> None:
    names = [route.operation_id for route in ROUTES]
    assert len(set(names)) == len(names)


def test_a_spelled_out_path_comes_before_one_with_a_name_in_its_place() -> None:
    """Every literal path, asked for, reaches its own route."""
    for route in ROUTES:
        for method in route.methods:
            path = route.path_format.replace("{job_id}", "0" * 32).replace("{", "").replace("}", "")
            scope = {"type": "http", "method": method, "path": path, "headers": [], "root_path": ""}
            first = next(one for one in ROUTES if one.matches(scope)[0].name == "FULL")
            assert first is route, f"{method} {path} reaches {first.path_format}"


def test_the_order_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: with the routers turned round, a literal path is taken for an id."""
    monkeypatch.setattr(app_module, "ROUTERS", app_module.ROUTERS[::-1])
    paths = [(route.path_format, route.methods) for route in bare().routes if isinstance(route, GuardedRoute)]
    assert paths.index(("/jobs/{job_id}", {"GET"})) < paths.index(("/jobs/stream", {"GET"}))
    assert all(a != b for a, b in pairwise(paths))


def test_a_route_must_say_who_may_use_it() -> None:
    router = guarded_router("jobs")
    with pytest.raises(Broken, match="@guard"):

        @router.get("/open-to-all")
        async def forgotten() -> None: ...


def test_a_route_past_the_guard_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    router = APIRouter()

    @router.get("/open-to-all")
    async def unguarded() -> None: ...

    monkeypatch.setattr(app_module, "ROUTERS", (router,))
    with pytest.raises(Broken, match="not guarded"):
        bare()
