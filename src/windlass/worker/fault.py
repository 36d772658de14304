"""Classifies exceptions: whether another attempt may help, and the fault that people see.

Explicit exceptions win: `Permanent` is final, `Transient` is not. Next come known shapes: HTTP responses by their
status, a lost database by its class, timeouts and lost connections. A lost database has its own code, because such an
attempt waits 15, 30, 60 … 300 s. A program that cannot be loaded or called is final. Every other exception may be
retried, as often as the step's policy allows.
"""

from __future__ import annotations

import os
import traceback
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from windlass.core.errors import DatabaseUnavailable, Permanent, Refused, Transient
from windlass.core.outcome import ATTEMPT_TIMEOUT, Failure, Fault
from windlass.providers import errors as providers
from windlass.worker.output import WAIT_MAX_S

MESSAGE_MAX = 2_000
DETAIL_MAX = 4_000
FRAMES_MAX = 5
LINKS_MAX = 4
RETRY_AFTER_MAX_S = 3600.0

_HERE = os.path.dirname(__file__)
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
# Another attempt would run the same program on the same arguments.
_PROGRAM_FAULTS = (ImportError, SyntaxError, NotImplementedError, NameError)
_HTTP_RETRYABLE = frozenset({408, 425, 429})
_DATABASE_MODULES = ("asyncpg", "psycopg", "psycopg2", "sqlalchemy", "pymysql", "aiomysql", "MySQLdb")
_DATABASE_LOST = frozenset(
    {
        "OperationalError",
        "InterfaceError",
        "DisconnectionError",
        "PostgresConnectionError",
        "ConnectionDoesNotExistError",
        "ConnectionFailureError",
        "CannotConnectNowError",
        "AdminShutdown",
        "AdminShutdownError",
        "CrashShutdown",
        "CrashShutdownError",
    }
)


def failure_of(error: BaseException) -> Failure:
    """Return the failure that this exception makes of an attempt."""
    match error:
        case Permanent():
            return _failure("permanent", error, is_retryable=False)
        case Transient():
            return _failure("transient", error, after_s=_wait_s(error.after_s))
        case providers.ProviderError():
            return providers.failure_of(error)
    if (status := _status(error)) is not None:
        is_retryable = status in _HTTP_RETRYABLE or status >= 500
        return _failure(f"http_{status}", error, is_retryable=is_retryable, after_s=_retry_after_s(error))
    if is_database_lost(error):
        return _failure("database_lost", error)
    match error:
        case TimeoutError():
            return _failure("timeout", error)
        case ConnectionError():
            return _failure("connection", error)
        case _ if isinstance(error, _PROGRAM_FAULTS):
            return _failure("program", error, is_retryable=False)
        case Refused():
            return _failure(error.code, error, is_retryable=False)
        case MemoryError():
            return _failure("out_of_memory", error)
    return _failure("exception", error)


def timeout(timeout_s: float) -> Failure:
    """Return the failure of an attempt that ran longer than its step allows."""
    return Failure(Fault(ATTEMPT_TIMEOUT, f"the attempt ran longer than its {timeout_s:g} s", "TimeoutError"))


def is_database_lost(error: BaseException) -> bool:
    """Whether the handler's own database connection was lost, judged by the class names of the usual drivers."""
    if isinstance(error, DatabaseUnavailable):
        return True
    return any(
        kind.__name__ in _DATABASE_LOST and kind.__module__.partition(".")[0] in _DATABASE_MODULES
        for kind in type(error).__mro__
    )


def _failure(code: str, error: BaseException, *, is_retryable: bool = True, after_s: float | None = None) -> Failure:
    kind = type(error)
    # An exit code alone would not explain what happened.
    said = f"the handler raised {error!r}" if isinstance(error, SystemExit) else _text(error)
    message = _storable(said)[:MESSAGE_MAX] or kind.__name__
    fault = Fault(code, message, f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."), _tail(error))
    return Failure(fault, is_retryable=is_retryable, after_s=after_s)


def _wait_s(asked: Any) -> float | None:
    """Return the wait that the handler asked for, if it is a valid length of time."""
    return min(float(asked), WAIT_MAX_S) if isinstance(asked, int | float) and asked >= 0 else None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _storable(text: str) -> str:
    """Make text storable: PostgreSQL refuses the zero character, and UTF-8 has no half surrogates."""
    return text.replace("\x00", "\\0").encode(errors="backslashreplace").decode()


def _tail(error: BaseException) -> str:
    """Format the last frames of the traceback; of a chain, the last frames of each link.

    A chain is written as Python writes it: the first cause first, each link with its class and message.
    """
    links = _chain(error)
    if len(links) == 1:
        text = _frames(error)
    else:
        blocks = [f"{_frames(one)}{type(one).__name__}: {_text(one)[:MESSAGE_MAX]}\n{joint}" for one, joint in links]
        text = "\n".join(blocks)
    return _storable(text)[-DETAIL_MAX:]


def _chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """Return the chain of exceptions, the first cause first, each with the sentence that joins it to the next."""
    links = [(error, "")]
    while len(links) < LINKS_MAX:
        last = links[0][0]
        before, joint = (last.__cause__, _CAUSE) if last.__cause__ is not None else (last.__context__, _CONTEXT)
        is_hidden = last.__cause__ is None and last.__suppress_context__
        if before is None or is_hidden or any(before is one for one, _ in links):
            break
        links.insert(0, (before, f"\n{joint}\n"))
    return links


def _frames(error: BaseException) -> str:
    """Format the last frames, without the worker's own code, which begins every traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if os.path.dirname(frame.filename) != _HERE]
    return "".join(traceback.format_list((own or frames)[-FRAMES_MAX:]))


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of any client library's exception: `.response.status_code`, `.status_code`, `.status`."""
    response = getattr(error, "response", None)
    for holder, name in ((response, "status_code"), (response, "status"), (error, "status_code"), (error, "status")):
        status = getattr(holder, name, None)
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
            return status
    return None


def _retry_after_s(error: BaseException) -> float | None:
    """Return the wait that a server asked for, in seconds or as a date, up to an hour."""
    holder = getattr(error, "response", None)
    headers: Any = getattr(holder if holder is not None else error, "headers", None)
    try:
        said = headers.get("Retry-After") or headers.get("retry-after")
    except (AttributeError, TypeError):
        return None
    if not said:
        return None
    try:
        wait_s = float(said)
    except (TypeError, ValueError):
        wait_s = _until_s(str(said), headers)
    return min(RETRY_AFTER_MAX_S, wait_s) if wait_s > 0 else None


def _until_s(said: str, headers: Any) -> float:
    """Return the seconds until a date, measured from the response's own `Date`, so that one clock gives both."""
    try:
        until, at = parsedate_to_datetime(said), parsedate_to_datetime(str(headers.get("Date") or headers.get("date")))
        return (_aware(until) - _aware(at)).total_seconds()
    except (TypeError, ValueError):
        return 0.0


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
