"""Turns a refusal of the server into the error that the engine would raise, by the code of the problem."""

from __future__ import annotations

import email.utils
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from windlass.client.exchange import Answer
from windlass.core import errors
from windlass.core.errors import WindlassError

_BY_STATUS: dict[int, type[WindlassError]] = {
    400: errors.BadRequest,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    409: errors.Conflict,
    413: errors.TooLarge,
    415: errors.BadMedia,
    416: errors.BadRange,
    422: errors.BadInput,
    429: errors.Limited,
    500: errors.Broken,
    502: errors.ServerUnavailable,
    503: errors.ServerUnavailable,
    504: errors.ServerUnavailable,
}
_REMEDY: dict[type[WindlassError], str] = {
    errors.Unauthenticated: "Give a key: WINDLASS_API_KEY or api_key=…; `windlass keys create` makes one",
    errors.Forbidden: "Ask for a key with the scope that this needs; `windlass keys create --scope` makes one",
    errors.ServerUnavailable: "Try again; if it fails again, read the server's log",
    errors.Broken: "This is a bug in the server: report it with the request's id",
}
# Only the first lines of a proxy's error page are useful.
_TEXT_MAX = 200


def _kinds(kind: type[WindlassError]) -> Iterator[type[WindlassError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _kinds(below)


_BY_CODE = {kind.code: kind for kind in _kinds(WindlassError)}


def error_of(answer: Answer) -> WindlassError:
    """Return the error for an answer that is not a success."""
    problem = problem_in(answer.body)
    error = error_from(problem, answer.status, retry_after_s=retry_after_s(answer))
    request_id = problem.get("request_id") or answer.headers.get("x-request-id")
    if answer.status >= 500 and request_id:
        error.add_note(f"request {request_id}")
    return error


def error_from(problem: dict[str, Any], status: int, *, retry_after_s: float | None = None) -> WindlassError:
    """Return the error for a problem document, which may be one item of a batch."""
    kind = _BY_CODE.get(str(problem.get("code"))) or _kind_of(status)
    message = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    # The server's hint says how to send a key over HTTP. A user of this client must know where to configure it.
    hint = _REMEDY[kind] if kind is errors.Unauthenticated else problem.get("hint") or _REMEDY.get(kind)
    remedy = None if hint is None else str(hint)
    if issubclass(kind, errors.Limited):
        return kind(message, retry_after_s=retry_after_s or 0.0, remedy=remedy)
    if issubclass(kind, errors.BadInput):
        return kind(message, errors=_places(problem), remedy=remedy)
    if issubclass(kind, errors.BadRange):
        return kind(message, size=0, remedy=remedy)
    if issubclass(kind, errors.Denied):
        return kind(message, job_id=str(problem.get("job_id", "")), rule=str(problem.get("rule", "")), remedy=remedy)
    return kind(message, remedy=remedy)


def problem_in(body: bytes) -> dict[str, Any]:
    """Return the problem document of an answer. For another body, return its first words as the detail."""
    try:
        problem = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = " ".join(body[: 4 * _TEXT_MAX].decode(errors="replace").split())[:_TEXT_MAX]
        return {"detail": f"the server, or a proxy before it, answered: {text}"} if text else {}
    return problem if isinstance(problem, dict) else {}


def retry_after_s(answer: Answer) -> float | None:
    """Return the seconds of an answer's `Retry-After` header, or None if it is missing or cannot be parsed."""
    text = answer.headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    now = datetime.now(UTC) if at.tzinfo is not None else datetime.now(UTC).replace(tzinfo=None)
    return max(0.0, (at - now).total_seconds())


def _kind_of(status: int) -> type[WindlassError]:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.Refused if 400 <= status < 500 else errors.Broken


def _places(problem: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    found = problem.get("errors")
    if not isinstance(found, list):
        return ()
    return tuple((str(one.get("pointer", "")), str(one.get("message", ""))) for one in found if isinstance(one, dict))
