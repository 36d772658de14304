"""Asking until there is an answer: which requests are sent again, when, and how often."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from windlass.client.exchange import Answer, Ask, Flow, Lost, Means, Pause
from windlass.client.problems import error_of, retry_after_s
from windlass.core.errors import BadInput, BadSetting, Broken, DatabaseUnavailable, ServerUnavailable, WindlassError

TRIES = 5
# The server has repeated the operation for some seconds before it says that its database is away.
DATABASE_TRIES = 2
PAUSE_S = 0.5
# A longer wait than this is for the caller to decide about.
RETRY_AFTER_MAX_S = 60.0
# The server refused without having begun: whatever was asked may be asked again.
_NOT_BEGUN = (429,)
# It may or may not have done what was asked.
_UNCLEAR = (502, 503, 504)

T = TypeVar("T")


def asked(means: Means, ask: Ask) -> Flow[Answer]:
    """The answer to a request, if it is a success; anything else is raised, after it was tried again if that is safe.

    A request that must not be sent twice is sent again only where it cannot have arrived.
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
        yield Pause(max(wait_s, pause_s(no, means)))
    raise Broken("a request was neither answered nor given up")


def pause_s(no: int, means: Means) -> float:
    """How long to wait after the failure of try `no`, from 0: doubling, and no two clients at the same moment."""
    return float(PAUSE_S * 2 ** min(no, 10) * (0.75 + 0.5 * means.chance()))


def refusal(answer: Answer) -> WindlassError:
    """What an answer that is no success raises."""
    if 300 <= answer.status < 400:
        return BadSetting(
            f"the server points elsewhere: {answer.headers.get('location', 'without saying where')}",
            remedy="Give that address as the server; a key is never sent on to another one",
        )
    return error_of(answer)


def unreachable(lost: Lost) -> ServerUnavailable:
    """What a lost connection raises once it is given up."""
    return ServerUnavailable(
        f"the server cannot be reached: {lost.message}",
        remedy="Check that it runs (`windlass up` or `windlass serve api`) and that its address is right",
    )


def expect_answer(got: object) -> Answer:
    """What a driver gives for an Ask that was answered."""
    if not isinstance(got, Answer):
        raise Broken(f"a driver gave {type(got).__name__} where an answer was asked for")
    return got


def get(means: Means, path: str, query: Iterable[tuple[str, str]] = ()) -> Flow[Any]:
    """The JSON value at a path."""
    answer = yield from asked(means, Ask("GET", path, tuple(query)))
    return decoded(answer)


def send(
    means: Means,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    is_safe: bool = True,
) -> Flow[Any]:
    """The JSON value that comes back for one that is sent; None when nothing comes back."""
    content = None if body is None else encoded(body)
    kind = {} if content is None else {"content-type": "application/json"}
    answer = yield from asked(
        means, Ask(method, path, headers={**kind, **(headers or {})}, body=content, is_safe=is_safe)
    )
    return decoded(answer) if answer.body else None


def encoded(value: Any) -> bytes:
    """A value as JSON. What JSON has no words for (NaN, sets of classes) is refused rather than bent."""
    try:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_dumped), allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise BadInput(
            f"this cannot be written as JSON: {error}",
            remedy="Inputs are text, numbers, true, false, null, lists, maps",
        ) from None


def _dumped(value: Any) -> Any:
    """A Pydantic model as JSON; anything else is refused."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise NotImplementedError(f"a value of type {type(value).__qualname__} is not JSON")
    return dump(mode="json", by_alias=True)


def decoded(answer: Answer) -> Any:
    """The JSON value of an answer."""
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(error) from None


def converted(value: Any, kind: type[T]) -> T:
    """A value of an answer as one of the client's types. Fields that this release does not know are left out."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> Broken:
    return Broken(
        f"the server's answer cannot be read: {error}",
        remedy="Check that the address is that of a Windlass server, and that its release fits this one",
    )
