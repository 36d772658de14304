"""Sends requests until the server answers, and decides which requests to retry, when, and how often."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from windlass.client.exchange import Answer, Ask, Flow, Lost, Pause, Sources
from windlass.client.problems import error_of, retry_after_s
from windlass.core.errors import BadInput, BadSetting, Broken, DatabaseUnavailable, ServerUnavailable, WindlassError

TRIES = 5
# The server retries the operation for some seconds before it reports that its database is unavailable.
DATABASE_TRIES = 2
PAUSE_S = 0.5
# The client does not wait longer than this. It raises the error, so that the caller decides.
RETRY_AFTER_MAX_S = 60.0
# The server refused before it began, so every request may be sent again.
_NOT_BEGUN = (429,)
# The server may have done the work of the request, so only a safe request may be sent again.
_UNCLEAR = (502, 503, 504)

T = TypeVar("T")


def asked(sources: Sources, ask: Ask) -> Flow[Answer]:
    """Return the answer to a request if it is a success. Otherwise retry if that is safe, and then raise the error.

    A request that must not be sent twice is sent again only if the server cannot have begun it.
    """
    outages = 0
    for no in range(TRIES):
        got = yield ask
        if isinstance(got, Lost):
            error: WindlassError = unreachable(got)
            is_again, wait_s = ask.is_safe or not got.is_sent, 0.0
        else:
            answer = expect_answer(got)
            if 200 <= answer.status < 300 or answer.status == 304:
                return answer
            error = refusal(answer)
            wait_s = retry_after_s(answer) or 0.0
            is_again = answer.status in _NOT_BEGUN or (answer.status in _UNCLEAR and ask.is_safe)
        outages += isinstance(error, DatabaseUnavailable)
        is_last = no == TRIES - 1 or outages == DATABASE_TRIES
        if not is_again or is_last or wait_s > RETRY_AFTER_MAX_S:
            raise error
        yield Pause(max(wait_s, pause_s(no, sources)))
    raise Broken("a request was neither answered nor given up")


def pause_s(no: int, sources: Sources) -> float:
    """Return the wait after the failure of try `no`, counted from 0. It doubles; `spread` keeps clients apart."""
    return float(PAUSE_S * 2 ** min(no, 10) * (0.75 + 0.5 * sources.spread()))


def refusal(answer: Answer) -> WindlassError:
    """Return the error for an answer that is not a success."""
    if 300 <= answer.status < 400:
        return BadSetting(
            f"the server redirects to {answer.headers.get('location', 'without saying where')}",
            remedy="Use that address as the server; a key is never sent to another server",
        )
    return error_of(answer)


def unreachable(lost: Lost) -> ServerUnavailable:
    """Return the error for a lost connection after the last try."""
    return ServerUnavailable(
        f"the server cannot be reached: {lost.message}",
        remedy="Check that it runs (`windlass up` or `windlass serve api`) and that its address is right",
    )


def expect_answer(got: object) -> Answer:
    """Return the answer that a driver sent into the flow, or raise Broken if the value is not an Answer."""
    if not isinstance(got, Answer):
        raise Broken(f"a driver gave {type(got).__name__} where an answer was asked for")
    return got


def get(sources: Sources, path: str, query: Iterable[tuple[str, str]] = ()) -> Flow[Any]:
    """Return the JSON value at a path."""
    answer = yield from asked(sources, Ask("GET", path, tuple(query)))
    return decoded(answer)


def send(
    sources: Sources,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    is_safe: bool = True,
) -> Flow[Any]:
    """Send a JSON value and return the JSON value of the answer, or None if the answer is empty."""
    content = None if body is None else encoded(body)
    kind = {} if content is None else {"content-type": "application/json"}
    answer = yield from asked(
        sources, Ask(method, path, headers={**kind, **(headers or {})}, body=content, is_safe=is_safe)
    )
    return decoded(answer) if answer.body else None


def encoded(value: Any) -> bytes:
    """Encode a value as JSON. A value that JSON cannot express (NaN, a set of classes) is refused."""
    try:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_dumped), allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise BadInput(
            f"this cannot be written as JSON: {error}",
            remedy="Inputs are text, numbers, true, false, null, lists, maps",
        ) from None


def _dumped(value: Any) -> Any:
    """Return the JSON value of a Pydantic model; refuse other types."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise NotImplementedError(f"a value of type {type(value).__qualname__} is not JSON")
    return dump(mode="json", by_alias=True)


def decoded(answer: Answer) -> Any:
    """Return the JSON value of an answer."""
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(error) from None


def converted(value: Any, kind: type[T]) -> T:
    """Convert a value of an answer to one of the client's types. Fields unknown to this release are ignored."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> Broken:
    return Broken(
        f"the server's answer cannot be read: {error}",
        remedy="Check that the address is that of a Windlass server, and that its release fits this one",
    )
