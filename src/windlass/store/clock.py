"""The database's clock, for timestamps that a process needs before it queries the database: the time in job ids.

Lists, the filter `since` and the order of claims follow the ids. A process with a wrong clock would give its jobs a
wrong position, so no process uses its own clock. It reads the server's time whenever it opens a connection, at least
every five minutes. From there it counts on by a clock that cannot be set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import asyncpg

# Continues while the machine sleeps, if the system has such a clock.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_READ = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8"


def _steady_ms() -> float:
    return time.clock_gettime_ns(_STEADY) / 1_000_000


class ServerClock:
    """The server's time. `now` replaces it in tests and simulations."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self._now = now
        self._ahead_ms = 0.0
        self._is_read = False

    async def read(self, connection: asyncpg.Connection) -> None:
        """Read the server's time. It lies between the request and the answer."""
        asked_ms = _steady_ms()
        server_ms: float = await connection.fetchval(_READ)
        self._ahead_ms = server_ms - (asked_ms + _steady_ms()) / 2
        self._is_read = True

    def now_ms(self) -> int:
        """Return the server's time in milliseconds since 1970."""
        if self._now is not None:
            return int(self._now().timestamp() * 1000)
        if not self._is_read:
            raise RuntimeError("the server's clock was never read")
        return int(_steady_ms() + self._ahead_ms)
