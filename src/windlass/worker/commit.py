"""`commit`: a handler's own short database operation, done again when the connection breaks under it.

Three layers stand between a broken connection and a failed job. The pool of the handler's driver replaces dead
connections. `commit` repeats one short operation. The worker turns the error that is left into `database_lost`, and the
step is tried again after 15, 30, 60 … 300 s. Without the second layer a dropped connection costs a whole attempt.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar, overload

from windlass.core.retry import DATABASE_OPERATION
from windlass.worker.fault import is_database_lost

T = TypeVar("T")

TRIES = 4
WAITS_S = tuple(DATABASE_OPERATION.wait_s(failures, 0.0) for failures in range(1, TRIES))
# Two transactions met, and the server gave one of them up: it succeeds when it is repeated.
_GIVEN_UP = frozenset({"40001", "40P01"})


@overload
def commit(operation: Callable[[], Awaitable[T]]) -> Awaitable[T]: ...
@overload
def commit(operation: Callable[[], T]) -> T: ...


def commit(operation: Callable[[], Any]) -> Any:
    """Do a short operation on a database of your own; again if the database went away, after 1, 2 and 4 s.

    `operation` opens its connection and its transaction itself, so that each try has new ones. It must bear being done
    twice: the answer to a commit may be lost after the commit. Any other error, and the last one, is raised as it is.
    An `async` operation is awaited: `await wl.commit(save)`. In a plain handler: `wl.commit(save)`.
    """
    return _awaited(operation) if inspect.iscoroutinefunction(operation) else _called(operation)


def is_transient(error: BaseException) -> bool:
    """Whether the same operation may succeed on a new connection."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return state in _GIVEN_UP or isinstance(error, ConnectionError) or is_database_lost(error)


async def _awaited(operation: Callable[[], Awaitable[T]]) -> T:
    for wait_s in _waits():
        try:
            return await operation()
        except Exception as error:
            if wait_s is None or not is_transient(error):
                raise
        await asyncio.sleep(wait_s)
    raise AssertionError("the last try returns or raises")


def _called(operation: Callable[[], T]) -> T:
    for wait_s in _waits():
        try:
            return operation()
        except Exception as error:
            if wait_s is None or not is_transient(error):
                raise
        time.sleep(wait_s)
    raise AssertionError("the last try returns or raises")


def _waits() -> Iterator[float | None]:
    """The wait after each try; None after the last."""
    yield from WAITS_S
    yield None
