"""Handlers that are called without FastAPI: found by the same paths, refused in the same words."""

from __future__ import annotations

from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI, Header, Path
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match

from windlass.api.app import bare
from windlass.api.direct import direct
from windlass.api.dispatch import Dispatch
from windlass.api.guard import GuardedRoute
from windlass.api.wire.job import JobRequest

HOT = {
    ("POST", "/jobs"),
    ("POST", "/jobs/batch"),
    ("GET", "/jobs/{job_id}"),
    ("POST", "/webhooks/{provider}"),
}


async def _rest(*_: Any) -> None:
    raise AssertionError("not called here")


def _routes() -> list[GuardedRoute]:
    return [route for route in bare().router.routes if isinstance(route, GuardedRoute)]


def test_the_hot_routes_are_called_directly() -> None:
    found = {(method, route.path) for route in _routes() if route.is_direct for method in route.methods}
    assert found >= HOT


def _paths() -> list[str]:
    """A path for each route, with values that other routes spell out, and paths that lead nowhere."""
    values = ("batch", "stream", "0190b3a4-0000-7000-8000-000000000000", "a/b", "7")
    paths = {"/", "", "/nothing", "/jobs/", "/jobs//", "/webhooks", "/jobs/batch/x", "//jobs", "/console/x/y"}
    for route in _routes():
        for value in values:
            path = route.path_format
            for name in route.param_convertors:
                path = path.replace(f"{{{name}}}", value)
            paths.add(path)
    return sorted(paths)


def test_a_path_leads_to_the_route_that_starlette_would_choose() -> None:
    routes = _routes()
    dispatch = Dispatch(routes, _rest)
    for path in _paths():
        for method in ("GET", "HEAD", "POST", "DELETE", "PATCH"):
            scope = {"type": "http", "method": method, "path": path, "root_path": ""}
            matches = ((route, *route.matches(scope)) for route in routes)
            chosen = next(((route, child) for route, match, child in matches if match is Match.FULL), None)
            expected = None if chosen is None or not chosen[0].is_direct else chosen
            found = dispatch.find(method, path)
            assert (found and found[0]) is (expected and expected[0]), (method, path)
            if found is not None and expected is not None:
                assert found[1] == expected[1]["path_params"]


async def taken(
    wish: JobRequest,
    no: Annotated[int, Path()],
    key: Annotated[int, Header()],
    last_event_id: Annotated[str | None, Header(max_length=3)] = None,
) -> Response:
    return JSONResponse({"no": no, "key": key, "last": last_event_id, "recipe": wish.recipe, "priority": wish.priority})


async def bodiless(no: int, wish: JobRequest | None = None) -> Response:
    return JSONResponse({"no": no, "is_none": wish is None})


def _apps() -> tuple[FastAPI, FastAPI]:
    """The same two handlers, called by FastAPI and called directly."""
    fast = FastAPI()
    fast.post("/taken/{no}")(taken)
    fast.post("/bodiless/{no}")(bodiless)

    async def answered(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        told = [{"loc": list(one["loc"]), "type": one["type"], "msg": one["msg"]} for one in error.errors()]
        return JSONResponse(told, status_code=422)

    straight = FastAPI()
    for route in [route for route in fast.router.routes if getattr(route, "path", "").endswith("{no}")]:
        handle = direct(route, {})  # type: ignore[arg-type]
        assert handle is not None
        straight.router.add_route(route.path, handle, methods=["POST"])  # type: ignore[attr-defined]
    for app in (fast, straight):
        app.add_exception_handler(RequestValidationError, answered)
    return fast, straight


BODIES: tuple[Any, ...] = (
    {"recipe": "hello"},
    {"recipe": "hello", "priority": 7},
    {"recipe": 1, "labels": {"a": 1}},
    {"recipe": "hello", "typo": 1},
    {},
    [],
    "hello",
    None,
    7,
)


@pytest.mark.parametrize("headers", [{"key": "1"}, {"key": "x"}, {}, {"key": "1", "last-event-id": "four"}])
@pytest.mark.parametrize("path", ["/taken/1", "/taken/x", "/bodiless/1", "/bodiless/x"])
async def test_what_fastapi_refuses_is_refused_in_the_same_words(path: str, headers: dict[str, str]) -> None:
    answers = []
    for app in _apps():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            told = [await client.post(path, json=body, headers=headers) for body in BODIES]
            told.append(await client.post(path, headers=headers))
            answers.append([(answer.status_code, answer.json()) for answer in told])
    assert answers[0] == answers[1]


async def annotated_otherwise(no: int) -> dict[str, int]:
    return {"no": no}


async def with_query(no: int, wanted: str = "") -> Response:
    return Response(wanted)


def with_a_thread(no: int) -> Response:
    return Response()


@pytest.mark.parametrize("handler", [annotated_otherwise, with_query, with_a_thread])
def test_a_handler_that_needs_fastapi_is_left_to_it(handler: Any) -> None:
    app = FastAPI()
    app.get("/left/{no}")(handler)
    [route] = [route for route in app.router.routes if getattr(route, "path", "") == "/left/{no}"]
    assert direct(route, {}) is None  # type: ignore[arg-type]
