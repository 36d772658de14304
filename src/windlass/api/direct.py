"""Calls a handler with its arguments; how to read them is worked out once for each route.

FastAPI solves a handler's dependencies anew for every request, which costs more than most of our handlers do. The most
frequently called handlers take few kinds of values: the caller, the parts, path parameters, headers, one body. This
module reads these values directly. FastAPI's own fields check them, so a refusal is the same document either way.
FastAPI calls a handler that takes any other value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from copy import deepcopy
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.params import Header
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Source = Callable[[Request], Any]
_MISSING = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}


def direct(route: APIRoute, known: Mapping[Any, Source]) -> Handler | None:
    """Return a function that calls the route's handler, or None if the handler needs FastAPI.

    `known` has the dependencies that are read from the request alone.
    """
    dependant = route.dependant
    endpoint: Any = route.endpoint
    if not _is_plain(route) or any(one.call not in known for one in dependant.dependencies):
        return None
    given = [(str(one.name), known[one.call]) for one in dependant.dependencies]
    if dependant.request_param_name:
        given.append((dependant.request_param_name, _itself))
    fields = [_Field(field, "path") for field in dependant.path_params]
    fields += [_Field(field, "header") for field in dependant.header_params]
    body = route.body_field

    async def handle(request: Request) -> Response:
        values = {name: source(request) for name, source in given}
        errors: list[Any] = []
        for field in fields:
            field.read(request, values, errors)
        if body is not None:
            await _read_body(body, request, values, errors)
        if errors:
            raise RequestValidationError(errors)
        answer: Response = await endpoint(**values)
        return answer

    return handle


def _itself(request: Request) -> Request:
    return request


def _is_plain(route: APIRoute) -> bool:
    """Return whether the handler returns a response and takes only values that can be read here."""
    dependant = route.dependant
    others = (dependant.query_params, dependant.cookie_params)
    special = (
        dependant.response_param_name,
        dependant.background_tasks_param_name,
        dependant.websocket_param_name,
        dependant.http_connection_param_name,
        dependant.security_scopes_param_name,
    )
    if any(others) or any(special) or len(dependant.body_params) > 1 or route._embed_body_fields:
        return False
    if any(field.validation_alias for field in (*dependant.path_params, *dependant.header_params)):
        return False
    try:
        answers = inspect.signature(route.endpoint, eval_str=True).return_annotation
    except NameError:
        return False
    return answers is Response and inspect.iscoroutinefunction(route.endpoint)


class _Field:
    """A path parameter or a header, with FastAPI's own check of it."""

    def __init__(self, field: Any, where: str) -> None:
        self._field = field
        self._where = where
        alias = field.alias
        if isinstance(field.field_info, Header) and field.field_info.convert_underscores:
            alias = alias.replace("_", "-")
        self._place = (where, alias)
        self._alias = alias
        self._line = alias.lower().encode("latin-1")
        self._is_required = field.field_info.is_required()
        self._default = None if self._is_required else field.get_default()

    def read(self, request: Request, values: dict[str, Any], errors: list[Any]) -> None:
        """Put the value among the handler's arguments, or its fault among the errors."""
        field, text = self._field, self._text(request)
        if text is None:
            if self._is_required:
                errors.append({**_MISSING, "loc": self._place})
            else:
                values[field.name] = self._default if self._default is None else deepcopy(self._default)
            return
        value, found = field.validate(text, values, loc=self._place)
        if found:
            errors.extend(found)
        else:
            values[field.name] = value

    def _text(self, request: Request) -> str | None:
        if self._where == "path":
            return request.path_params.get(self._alias)
        for name, value in request.scope["headers"]:
            if name == self._line:
                text: str = value.decode("latin-1")
                return text
        return None


async def _read_body(field: Any, request: Request, values: dict[str, Any], errors: list[Any]) -> None:
    if not await request.body():
        if field.field_info.is_required():
            errors.append(_MISSING)
        else:
            values[field.name] = deepcopy(field.get_default())
        return
    value, found = field.validate(await request.json(), values, loc=("body",))
    if found:
        errors.extend(found)
    else:
        values[field.name] = value
