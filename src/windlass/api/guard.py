"""What stands before every handler, in this order and no other.

    request id → refusals of this address → who asks → may they → how much may they → is there room
               → query names, body: kind, size, depth, text → FastAPI's own checks → the handler → errors to problems

A stranger is turned away before anything that they sent is looked at. The stages are those of a route class, not
dependencies, because FastAPI reads and checks a body before it solves the dependencies that could refuse it.

Each handler says what it takes with `@guard(…)`. One that does not say is refused when the app is made, so a route
cannot be added without deciding who may use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Path
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, WithJsonSchema
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from windlass.api.admission import authenticate, charged
from windlass.api.compressed import for_browsers
from windlass.api.parts import Parts
from windlass.api.problem import answer_to
from windlass.api.tracebacks import expose_to_caller
from windlass.api.visit import visit_of
from windlass.core.caller import CallerContext, Role, Scope, is_internal
from windlass.core.errors import BadMedia, BadRequest, Broken, Forbidden, Limited, NotFound, TooLarge

DEPTH_MAX = 32
_SMALL_BYTES = 4096
# Every text of a JSON document, and whether it is a key.
_TOKENS = re.compile(rb'"((?:[^"\\]++|\\.)*+)"\s*+(:?)', re.DOTALL)
# What proxies write into their logs for it.
CLIENT_GONE = 499
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[][{}]")
_JSON_TYPE = re.compile(r'application/json(\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE)
_ATTRIBUTE = "__guard__"
F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass(frozen=True, slots=True)
class Guard:
    """What a route asks of those who use it. `codes` are its own error codes, beside those that every route has."""

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
    """Say who may use a handler. Without a scope any good key does; `is_open` needs none.

    `is_internal` keeps it for services of our own and admins; `takes_any_query` is for those whose query is others'.
    """
    made = Guard(
        scope, is_open, cost, by_depth, operation, frozenset(codes), takes_ticket, is_internal, takes_any_query
    )

    def decorate(function: F) -> F:
        setattr(function, _ATTRIBUTE, made)
        return function

    return decorate


def guard_of(endpoint: Callable[..., Any]) -> Guard:
    """What a handler has said of itself."""
    found = getattr(endpoint, _ATTRIBUTE, None)
    if not isinstance(found, Guard):
        raise Broken(f"{getattr(endpoint, '__qualname__', endpoint)} does not say who may use it: give it a @guard(…)")
    return found


def parts_of(request: Request) -> Parts:
    """What the service is made of."""
    parts: Parts = request.app.state.parts
    return parts


def caller_of(request: Request) -> CallerContext:
    """Who asks."""
    caller = visit_of(request).caller
    if caller is None:
        raise Broken("an open route asks who asks")
    return caller


def request_id_of(request: Request) -> str:
    """The id of this request: in every log line, event and problem that comes of it."""
    return visit_of(request).request_id


async def charge(request: Request, cost: int) -> None:
    """Count this much against the caller's limit, before anything is done; raises Limited or TooLarge."""
    await charged(request, parts_of(request), caller_of(request), cost)


# A dependency that is no coroutine would be run in a thread.
async def _caller(request: Request) -> CallerContext:
    return caller_of(request)


async def _parts(request: Request) -> Parts:
    return parts_of(request)


async def _request_id(request: Request) -> str:
    return request_id_of(request)


def _job_id(text: Any) -> UUID:
    # An id is opaque: what cannot be one names no job, which is all that a caller needs to know.
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


class GuardedRoute(APIRoute):
    """A path operation behind its guard."""

    def get_route_handler(self) -> Handler:
        """FastAPI's handler, and all that comes before and after it."""
        own = guard_of(self.endpoint)
        handle = super().get_route_handler()
        names = query_names(self)
        takes_body = self.body_field is not None

        async def guarded(request: Request) -> Response:
            visit = visit_of(request)
            visit.route, visit.operation = self.path_format, own.operation
            try:
                await _admit(request, own)
                if not own.takes_any_query:
                    _check_query(request, names)
                strict = StrictRequest(request.scope, request.receive)
                if takes_body:
                    await strict.take()
                return for_browsers(request, await handle(strict))
            except ClientDisconnect:
                # The client hung up before its request had arrived. The answer reaches only the log and the metrics.
                return Response(status_code=CLIENT_GONE)
            except Exception as error:
                if isinstance(error, Limited):
                    parts_of(request).meters.limited(error.code)
                return answer_to(request, error)

        return guarded


def guarded_router(tag: str) -> APIRouter:
    """A router whose routes are guarded."""
    return APIRouter(route_class=GuardedRoute, tags=[tag])


async def _admit(request: Request, own: Guard) -> None:
    if own.is_open:
        return
    parts = parts_of(request)
    caller = await authenticate(request, parts, takes_ticket=own.takes_ticket)
    expose_to_caller(caller.role is Role.ADMIN)
    if own.scope is not None and not caller.has(own.scope):
        raise Forbidden(f"this takes the scope {own.scope}", remedy="Ask for a key that has it")
    if own.is_internal and caller.role is not Role.ADMIN and not is_internal(caller, parts.settings.internal_callers):
        raise Forbidden(
            "this is for internal services", remedy="Use a key of type service, or one whose caller is internal"
        )
    if own.cost:
        await charged(request, parts, caller, own.cost)
    if own.by_depth:
        await parts.depth.check(caller.caller_id, is_internal=is_internal(caller, parts.settings.internal_callers))


def query_names(route: APIRoute) -> dict[str, bool]:
    """The names that a route's query may have, and whether one may be given more than once."""
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
    """A request whose JSON is JSON: no NaN, no endless numbers, no half characters, no bottomless nesting."""

    async def take(self) -> None:
        """Read the body, if there is one, and decode it."""
        # The edge counts what is read, and raises TooLarge.
        body = await self.body()
        if not body:
            return
        if self.headers.get("content-encoding", "identity") != "identity":
            raise BadMedia("a compressed body is not taken")
        if not _JSON_TYPE.fullmatch(self.headers.get("content-type", "")):
            raise BadMedia("the body is not application/json")
        self._json = decoded(body)

    async def json(self) -> Any:
        """What was decoded."""
        return self._json


def decoded(body: bytes) -> Any:
    """The value of JSON text from a stranger."""
    if too_deep(body):
        raise TooLarge(f"the body is nested deeper than {DEPTH_MAX}")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {str(error)[:200]}") from None
    # Most bodies are small and have a colon for each key; looking at their text would take longer than decoding it.
    is_plain = len(body) <= _SMALL_BYTES and body.count(b":") == _keys(value)
    if not is_plain and (name := repeated_key(body)) is not None:
        raise BadRequest(f"the key {name[:100]!r} is given twice in one object", remedy="Give it once")
    return value


def _keys(value: Any) -> int:
    """How many keys the objects of a value have."""
    count, rest = 0, [value]
    for one in rest:
        if type(one) is dict:
            count += len(one)
            rest.extend(one.values())
        elif type(one) is list:
            rest.extend(one)
    return count


def repeated_key(body: bytes) -> str | None:
    """A key that one object of this JSON text has twice: two readers would each believe another value."""
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
    """Numbers are not looked at, and an endless one must not be read."""


def too_deep(body: bytes) -> bool:
    """Whether the text nests deeper than it may, without decoding it."""
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            return True
    return False
