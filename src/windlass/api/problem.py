"""Errors as problem documents: every refusal on every path has the same form."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from windlass.api.visit import visit_of
from windlass.api.wire.problem import Denial, FieldError, Problem
from windlass.core.errors import (
    BadInput,
    BadRange,
    Broken,
    Denied,
    Limited,
    MethodNotAllowed,
    NotFound,
    Refused,
    TooLarge,
    Unauthenticated,
    Unavailable,
    WindlassError,
)
from windlass.pure.problem import FAULT_OF_OURS, hint_of, kind_of
from windlass.store.outage import outage_of

MEDIA_TYPE = "application/problem+json"
ERRORS_MAX = 50
_PART_MAX = 100
_log = logging.getLogger("windlass.api")


def problem_of(error: WindlassError, *, instance: str, request_id: str) -> Problem:
    """Return the problem document of an error."""
    kind = kind_of(type(error))
    is_ours = kind.status >= 500 and not kind.is_retryable
    found = error.errors if isinstance(error, BadInput) else ()
    problem = Problem(
        type=f"/problems/{kind.code}",
        title=kind.title,
        status=kind.status,
        detail=FAULT_OF_OURS if is_ours else error.message,
        instance=instance,
        code=kind.code,
        request_id=request_id,
        hint=hint_of(error),
        retryable=kind.is_retryable,
        errors=[FieldError(pointer=pointer, message=message) for pointer, message in found[:ERRORS_MAX]],
    )
    if not isinstance(error, Denied):
        return problem
    return Denial.model_construct(**dict(problem), job_id=error.job_id, rule=error.rule)


def answer_to(request: HTTPConnection, raised: Exception) -> Response:
    """Return the response to a request that ended in an error. Faults of the server are logged."""
    error = known(raised)
    visit = visit_of(request)
    problem = problem_of(error, instance=_shown(request.url.path), request_id=visit.request_id)
    if problem.status >= 500:
        # A temporary fault gets one line in the log; a lasting fault of ours gets a traceback.
        level, trace = (logging.WARNING, None) if problem.retryable else (logging.ERROR, raised)
        what = f"{request.scope.get('method')} {visit.route}: {problem.code}"
        _log.log(level, "request %s: %s", visit.request_id, what, exc_info=trace)
    return Response(
        problem.model_dump_json(), status_code=problem.status, media_type=MEDIA_TYPE, headers=_headers(error)
    )


def known(raised: Exception) -> WindlassError:
    """Return the WindlassError that corresponds to the raised exception."""
    match raised:
        case WindlassError():
            return raised
        case RequestValidationError():
            return _unfit(raised.errors())
        case HTTPException(status_code=404):
            return NotFound("there is nothing at this path", remedy="/openapi shows what there is")
        case HTTPException(status_code=status) if status < 500:
            return Refused(str(raised.detail))
        case OSError():
            return Unavailable("a required store does not answer")
        case _ if (outage := outage_of(raised)) is not None:
            return outage.error()
        case _:
            return Broken(FAULT_OF_OURS)


def _unfit(errors: Sequence[Any]) -> BadInput:
    found = tuple((pointer(error["loc"]), _message(error)) for error in errors[:ERRORS_MAX])
    told = "; ".join(f"{place or 'body'}: {message}" for place, message in found[:3])
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    return BadInput(f"{told}{more}", errors=found)


def pointer(place: Sequence[str | int]) -> str:
    """Return a JSON pointer into the body; `?name` for a query parameter, `name:` for a header."""
    where, *path = place or ("body",)
    parts = [str(part)[:_PART_MAX] for part in path]
    if where == "query":
        return f"?{'.'.join(parts)}"
    if where == "header":
        return f"{'.'.join(parts)}:"
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


def _message(error: Any) -> str:
    text = str(error["msg"]).removeprefix("Value error, ")
    return "there is no such field" if error["type"] == "extra_forbidden" else text


def _shown(path: str) -> str:
    return path if len(path) <= 300 else f"{path[:300]}…"


def _headers(error: WindlassError) -> dict[str, str]:
    kind = kind_of(type(error))
    headers: dict[str, str] = {}
    match error:
        case Limited():
            headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
        case MethodNotAllowed():
            headers["Allow"] = ", ".join(error.allowed)
        case BadRange():
            headers["Content-Range"] = f"bytes */{error.size}"
        case Unauthenticated():
            headers["WWW-Authenticate"] = 'Bearer realm="windlass"'
        case TooLarge():
            # The rest of the body was not read, so no request can follow on this connection.
            headers["Connection"] = "close"
        case _ if kind.retry_after_s is not None:
            headers["Retry-After"] = str(kind.retry_after_s)
    return headers
