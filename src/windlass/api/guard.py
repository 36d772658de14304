"""The stages before every handler, in this fixed order.

    request id → refusals of this address → authentication → authorisation → rate limit → is there room
               → query names, body: kind, size, depth, text → FastAPI's own checks → the handler → errors to problems

An unauthenticated request is refused before its body is read or its query is checked. The stages belong to a route
class, not to dependencies: FastAPI reads and checks a body before it solves the dependencies that could refuse it.

Each handler declares its requirements with `@guard(…)`. Creating the app fails for a handler without a guard, so a
route cannot be added without deciding who may use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Path
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, WithJsonSchema
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from windlass.api.admission import authenticate, charged, limited
from windlass.api.compressed import for_browsers
from windlass.api.direct import Handler, direct
from windlass.api.parts import Parts
from windlass.api.problem import answer_to
from windlass.api.visit import visit_of
from windlass.core.caller import CallerContext, Role, Scope, is_internal
from windlass.core.errors import BadMedia, BadRequest, Broken, Forbidden, Limited, NotFound, TooLarge
from windlass.documents.tracebacks import expose_to_caller

DEPTH_MAX = 32
_SMALL_BYTES = 4096
# Every string of a JSON document, and whether it is a key.
_TOKENS = re.compile(rb'"((?:[^"\\]++|\\.)*+)"\s*+(:?)', re.DOTALL)
# The status that proxies log for a client that hung up.
CLIENT_GONE = 499
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[][{}]")
_JSON_TYPE = re.compile(r'application/json(\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE)
_ATTRIBUTE = "__guard__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Guard:
    """The requirements of a route. `codes` are its own error codes, in addition to those of every route."""

    scope: Scope | None
    is_open: bool
    cost: int
    by_depth: bool
    operation: Literal["read", "write"]
    codes: frozenset[str]
    takes_ticket: bool
    is_internal: bool
    takes_any_query: bool


def guard(
    scope: Scope | None = None,
    *,
    is_open: bool = False,
    cost: int = 1,
    by_depth: bool = False,
    operation: Literal["read", "write"] = "read",
    codes: Iterable[str] = (),
    takes_ticket: bool = False,
    is_internal: bool = False,
    takes_any_query: bool = False,
) -> Callable[[F], F]:
    """Declare who may use a handler. Without a scope any valid key may; with `is_open` no key is needed.

    `is_internal` restricts the handler to our own services and admins. `takes_any_query` is for handlers whose query
    parameters are defined by a third party.
    """
    made = Guard(
        scope, is_open, cost, by_depth, operation, frozenset(codes), takes_ticket, is_internal, takes_any_query
    )

    def decorate(function: F) -> F:
        setattr(function, _ATTRIBUTE, made)
        return function

    return decorate


def guard_of(endpoint: Callable[..., Any]) -> Guard:
    """Return the guard that a handler declared."""
    found = getattr(endpoint, _ATTRIBUTE, None)
    if not isinstance(found, Guard):
        raise Broken(f"{getattr(endpoint, '__qualname__', endpoint)} declares no callers: give it a @guard(…)")
    return found


def parts_of(request: Request) -> Parts:
    """Return the parts that the service is made of."""
    parts: Parts = request.app.state.parts
    return parts


def caller_of(request: Request) -> CallerContext:
    """Return the caller of the request."""
    caller = visit_of(request).caller
    if caller is None:
        raise Broken("an open route asks who asks")
    return caller


def request_id_of(request: Request) -> str:
    """Return the id of this request, which is in every log line, event and problem that results from it."""
    return visit_of(request).request_id


async def charge(request: Request, cost: int) -> None:
    """Count this cost against the caller's limit before the handler does anything; raises Limited or TooLarge."""
    await charged(request, parts_of(request), caller_of(request), cost)


# FastAPI would run a dependency that is no coroutine in a thread.
async def _caller(request: Request) -> CallerContext:
    return caller_of(request)


async def _parts(request: Request) -> Parts:
    return parts_of(request)


async def _request_id(request: Request) -> str:
    return request_id_of(request)


def _job_id(text: Any) -> UUID:
    # An id is opaque: a malformed id names no job, and the caller need not know more.
    if isinstance(text, str) and len(text) in (32, 36):
        try:
            return UUID(text)
        except ValueError:
            pass
    raise NotFound("there is no such job")


Caller = Annotated[CallerContext, Depends(_caller)]
Has = Annotated[Parts, Depends(_parts)]
RequestId = Annotated[str, Depends(_request_id)]
JobId = Annotated[
    UUID, BeforeValidator(_job_id), Path(description="A job."), WithJsonSchema({"type": "string", "format": "uuid"})
]


# The dependencies that need nothing but the request.
_KNOWN = {_caller: caller_of, _parts: parts_of, _request_id: request_id_of}


class GuardedRoute(APIRoute):
    """A path operation behind its guard. Direct routes are called without FastAPI (`api/direct.py`)."""

    methods: set[str]
    is_direct: bool
    guarded: Handler

    def get_route_handler(self) -> Handler:
        """Return the handler with all stages before and after it."""
        route_guard = guard_of(self.endpoint)
        called = direct(self, _KNOWN)
        handle = called or super().get_route_handler()
        names = query_names(self)
        takes_body = self.body_field is not None

        async def guarded(request: Request) -> Response:
            visit = visit_of(request)
            visit.route, visit.operation = self.path_format, route_guard.operation
            try:
                await _admit(request, route_guard)
                if not route_guard.takes_any_query:
                    _check_query(request, names)
                strict = request if type(request) is StrictRequest else StrictRequest(request.scope, request.receive)
                if takes_body:
                    await strict.take()
                return for_browsers(request, await handle(strict))
            except ClientDisconnect:
                # The client hung up before its request had arrived. This response reaches only the log and the metrics.
                return Response(status_code=CLIENT_GONE)
            except Exception as error:
                if isinstance(error, Limited):
                    await limited(request, parts_of(request), error)
                return answer_to(request, error)

        self.is_direct, self.guarded = called is not None, guarded
        return guarded


def guarded_router(tag: str) -> APIRouter:
    """Return a router whose routes are guarded."""
    return APIRouter(route_class=GuardedRoute, tags=[tag])


async def _admit(request: Request, route_guard: Guard) -> None:
    if route_guard.is_open:
        return
    parts = parts_of(request)
    caller = await authenticate(request, parts, takes_ticket=route_guard.takes_ticket)
    expose_to_caller(caller.role is Role.ADMIN)
    if route_guard.scope is not None and not caller.has(route_guard.scope):
        raise Forbidden(f"this needs the scope {route_guard.scope}", remedy="Ask for a key that has it")
    if (
        route_guard.is_internal
        and caller.role is not Role.ADMIN
        and not is_internal(caller, parts.settings.internal_callers)
    ):
        raise Forbidden(
            "this is for internal services", remedy="Use a key of type service, or a key of an internal caller"
        )
    if route_guard.cost:
        await charged(request, parts, caller, route_guard.cost)
    if route_guard.by_depth:
        await parts.depth.check(caller.caller_id, is_internal=is_internal(caller, parts.settings.internal_callers))


def query_names(route: APIRoute) -> dict[str, bool]:
    """Return the names that a route's query may have, and whether each may occur more than once."""
    found: dict[str, bool] = {}
    for parameter in route.dependant.query_params:
        kind = parameter.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found.update((field.alias or name, _is_list(field.annotation)) for name, field in kind.model_fields.items())
        else:
            found[parameter.alias] = _is_list(kind)
    return found


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is list or any(map(_is_list, get_args(kind)))


def _check_query(request: Request, names: Mapping[str, bool]) -> None:
    if not request.scope.get("query_string"):
        return
    given = request.query_params
    twice = [name for name in names if not names[name] and len(given.getlist(name)) > 1]
    if twice:
        raise BadRequest(f"the query parameter {twice[0]!r} is given twice", remedy="Give it once")
    unknown = sorted(set(given) - names.keys())
    if unknown:
        known = f"Known: {', '.join(sorted(names))}" if names else "This path takes no query"
        raise BadRequest(f"there is no query parameter {unknown[0][:100]!r}", remedy=known)


class StrictRequest(Request):
    """A request that accepts only strict JSON: no NaN, no endless numbers, no lone surrogates, no deep nesting."""

    async def body(self) -> bytes:
        """Return the whole body. The edge counts the bytes, and raises TooLarge."""
        if not hasattr(self, "_body"):
            pieces: list[bytes] = []
            has_more = True
            while has_more:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect()
                pieces.append(message.get("body", b""))
                has_more = message.get("more_body", False)
            self._body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return self._body

    async def take(self) -> None:
        """Read and decode the body, if there is one."""
        body = await self.body()
        if not body:
            return
        encoding, kind = b"identity", b""
        for name, value in reversed(self.scope["headers"]):
            if name == b"content-type":
                kind = value
            elif name == b"content-encoding":
                encoding = value
        if encoding != b"identity":
            raise BadMedia("a compressed body is not accepted")
        if kind != b"application/json" and not _JSON_TYPE.fullmatch(kind.decode("latin-1")):
            raise BadMedia("the body is not application/json")
        self._json = decoded(body)

    async def json(self) -> Any:
        """Return the decoded body."""
        return self._json


def decoded(body: bytes) -> Any:
    """Decode JSON text from an untrusted client."""
    if too_deep(body):
        raise TooLarge(f"the body is nested deeper than {DEPTH_MAX}")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {str(error)[:200]}") from None
    # Most bodies are small and have a colon for each key. Searching their text would take longer than decoding it.
    is_plain = len(body) <= _SMALL_BYTES and body.count(b":") == _keys(value)
    if not is_plain and (name := repeated_key(body)) is not None:
        raise BadRequest(f"the key {name[:100]!r} is given twice in one object", remedy="Give it once")
    return value


def _keys(value: Any) -> int:
    """Count the keys of all objects in a value."""
    count, rest = 0, [value]
    for one in rest:
        if type(one) is dict:
            count += len(one)
            rest.extend(one.values())
        elif type(one) is list:
            rest.extend(one)
    return count


def repeated_key(body: bytes) -> str | None:
    """Return a key that occurs twice in one object of this JSON text: two parsers could each use a different value."""
    keys = [text for text, colon in _TOKENS.findall(body) if colon]
    if len(set(keys)) == len(keys) and b"\\u" not in body:
        return None  # all keys of all objects differ
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            found.append(next(name for place, name in enumerate(names) if name in names[:place]))

    json.loads(body, object_pairs_hook=look, parse_int=_nothing, parse_float=_nothing)
    return found[0] if found else None


def _nothing(text: str) -> None:
    """Ignore a number: numbers are not checked here, and an endless number must not be converted."""


def too_deep(body: bytes) -> bool:
    """Return whether the text nests too deeply, without decoding it."""
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            return True
    return False
