"""Resolves host names with the machine's own resolver, in threads that callers share.

    caller ─► its line ─► a free thread ─► getaddrinfo ─► all requests for this name
                             │ the caller already uses its share of threads
                             ▼
                          it waits in its own line

`getaddrinfo` cannot be cancelled: a name whose servers do not answer keeps its thread for half a minute, long after the
request gave up. So a thread counts as busy until it returns. A caller has at most `PER_CALLER_MAX` threads. A free
thread goes to the caller with the fewest, and one name is not resolved twice at the same time.

A failed look-up is remembered for `FAILED_KEPT_S` seconds. A crowd of webhooks for one dead name then takes one thread
in that time, not one each. Addresses are never remembered: `dial.py` checks and dials a fresh answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from windlass.core.errors import Unavailable

THREADS_MAX = 32
PER_CALLER_MAX = 4
# The most look-ups of one caller that wait for a thread.
LINE_MAX = 1_000
# How long a failed look-up is not repeated. The first retry of a webhook comes later than that.
FAILED_KEPT_S = 3.0
FAILED_MAX = 1_000

_Name: TypeAlias = tuple[str, int]
_Answer: TypeAlias = "asyncio.Future[list[str]]"


def not_resolved() -> Unavailable:
    """Build the error for a name that could not be resolved now: a retry may help."""
    return Unavailable("the name of the URL's host could not be resolved in time", remedy="Try again later")


class SystemResolver:
    """The machine's own resolver. Used from one event loop."""

    def __init__(
        self,
        lookup: Callable[..., list[Any]] = socket.getaddrinfo,
        *,
        threads_max: int = THREADS_MAX,
        per_caller_max: int = PER_CALLER_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lookup = lookup
        self._threads_max = threads_max
        self._per_caller_max = per_caller_max
        self._clock = clock
        self._threads: Counter[str] = Counter()
        self._running: dict[_Name, _Answer] = {}
        # Oldest first: when each failure expires, and the error of `getaddrinfo`.
        self._failed: dict[_Name, tuple[float, socket.gaierror]] = {}
        # By caller, in the order of turns: the look-ups that wait for a thread, with their names.
        self._lines: dict[str, dict[asyncio.Future[_Answer], _Name]] = {}

    async def resolve(self, host: str, port: int, caller: str = "") -> list[str]:
        """Return the addresses of a name, in the order in which to try them. Raises the errors of `getaddrinfo`."""
        name = (host, port)
        if (failed := self._failure(name)) is not None:
            raise failed
        # A look-up in another caller's line is not joined: that line may be long.
        answer = self._running.get(name) or await self._turn(name, caller)
        # The shield keeps a caller that gives up from ending the look-up for the others.
        return await asyncio.shield(answer)

    def _failure(self, name: _Name) -> socket.gaierror | None:
        """Return the failure of a recent look-up, as a new exception: a raised one collects a traceback."""
        until_s, error = self._failed.get(name, (float("-inf"), None))
        return socket.gaierror(*error.args) if error is not None and self._clock() < until_s else None

    def _keep_failed(self, name: _Name, error: socket.gaierror) -> None:
        self._failed.pop(name, None)
        while len(self._failed) >= FAILED_MAX:
            del self._failed[next(iter(self._failed))]
        self._failed[name] = (self._clock() + FAILED_KEPT_S, error)

    async def _turn(self, name: _Name, caller: str) -> _Answer:
        line = self._lines.setdefault(caller, {})
        if len(line) >= LINE_MAX:
            raise not_resolved()
        turn: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        line[turn] = name
        self._begin()
        try:
            return await turn
        finally:
            line.pop(turn, None)
            if not line and self._lines.get(caller) is line:
                del self._lines[caller]

    def _begin(self) -> None:
        """Assign the free threads."""
        while self._threads.total() < self._threads_max:
            waiting = [caller for caller, line in self._lines.items() if line]
            free = [caller for caller in waiting if self._threads[caller] < self._per_caller_max]
            if not free:
                return
            caller = min(free, key=self._threads.__getitem__)
            # Moved to the end, so that callers with equally many threads take turns.
            line = self._lines[caller] = self._lines.pop(caller)
            turn = next(iter(line))
            name = line.pop(turn)
            if turn.done():
                continue
            if (failed := self._failure(name)) is not None:
                turn.set_exception(failed)
                turn.exception()  # marks it as read: a request that gave up leaves no line in the log
            else:
                turn.set_result(self._running.get(name) or self._start(name, caller))

    def _start(self, name: _Name, caller: str) -> _Answer:
        loop = asyncio.get_running_loop()
        answer = self._running[name] = loop.create_future()
        # Marks the failure as read, so that a look-up without a waiting request does not log it.
        answer.add_done_callback(lambda done: done.exception())
        self._threads[caller] += 1

        def ended(found: list[Any] | BaseException) -> None:
            del self._running[name]
            self._threads[caller] -= 1
            self._threads += Counter()  # drops the zeros
            if isinstance(found, BaseException):
                if isinstance(found, socket.gaierror):
                    self._keep_failed(name, found)
                answer.set_exception(found)
            else:
                self._failed.pop(name, None)
                answer.set_result(list(dict.fromkeys(str(address[0]) for *_, address in found)))
            self._begin()

        def look() -> None:
            found: list[Any] | BaseException
            try:
                found = self._lookup(*name, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
            except BaseException as error:
                found = error
            # The loop may have ended in the meantime.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended, found)

        # A daemon: the process must not wait for a name when it ends.
        threading.Thread(target=look, name="windlass-resolver", daemon=True).start()
        return answer
