"""Which errors of PostgreSQL pass by themselves, what each means, and what to do about it. The one table.

An error with a row here says nothing against the operation: the server cannot do it now. The operation is repeated, and
a caller gets `DatabaseUnavailable` with the row's words, never the text of the driver. Every other error concerns the
operation itself and is raised as it is.

| property | meaning |
|---|---|
| `is_repeated` | A repeat within seconds may succeed. Only a person makes room on a full disk. |
| `is_stale` | The server is not the one to write to. Its connections are closed; the next one may find the primary. |
| `is_lasting` | Writes fail until somebody acts. A readiness check reports it until a test write succeeds. |
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import asyncpg

from windlass.core.errors import DatabaseUnavailable

# How often a log repeats an outage that goes on.
REMIND_EVERY_S = 60.0

_GOES_ON = "Nothing that was accepted is lost; Windlass goes on by itself"


@dataclass(frozen=True, slots=True)
class Outage:
    """Why PostgreSQL cannot do something now. See the module."""

    reason: str
    remedy: str = f"{_GOES_ON} when the server is back"
    is_repeated: bool = True
    is_stale: bool = False
    is_lasting: bool = False

    def error(self) -> DatabaseUnavailable:
        """What a caller gets."""
        return DatabaseUnavailable(self.reason, remedy=self.remedy)


AWAY = Outage("PostgreSQL cannot be reached, or closed the connection")
READ_ONLY = Outage(
    "PostgreSQL is read-only: it is a standby, or `default_transaction_read_only` is on",
    f"{_GOES_ON} when a failover has finished or the server accepts writes again",
    is_stale=True,
    is_lasting=True,
)
DISK_FULL = Outage(
    "the disk of PostgreSQL is full",
    f"Free space on the database server. {_GOES_ON}",
    is_repeated=False,
    is_lasting=True,
)
_SHUTDOWN = Outage("PostgreSQL is shutting down or starting up", is_stale=True)
_CANCELLED = Outage(
    "PostgreSQL cancelled the statement: `statement_timeout`, or an administrator",
    f"Check `statement_timeout`. {_GOES_ON}",
)
_CONFLICT = Outage("PostgreSQL undid the transaction: it conflicted with another one, or with recovery")
_ROOM = "Check the memory and the limits of the database server"

# By SQLSTATE, else by its class (the first two characters).
OUTAGES: dict[str, Outage] = {
    "08": AWAY,
    "25006": READ_ONLY,
    "25P03": AWAY,  # idle_in_transaction_session_timeout
    "25P04": _CANCELLED,  # transaction_timeout
    "40001": _CONFLICT,  # serialization failure, or a conflict with recovery on a standby
    "40003": AWAY,  # the connection was lost before the answer
    "40P01": _CONFLICT,  # deadlock
    "53000": Outage("PostgreSQL has too few resources", f"{_ROOM}. {_GOES_ON}"),
    "53100": DISK_FULL,
    "53200": Outage("PostgreSQL is out of memory", f"{_ROOM}. {_GOES_ON}"),
    "53300": Outage("PostgreSQL has no free connection", f"Raise `max_connections`. {_GOES_ON}"),
    "53400": Outage("PostgreSQL has reached a configured limit", f"{_ROOM}. {_GOES_ON}"),
    "55P03": Outage("a lock in PostgreSQL was not free in time", f"Look for a long transaction. {_GOES_ON}"),
    "57014": _CANCELLED,
    "57P01": _SHUTDOWN,
    "57P02": _SHUTDOWN,  # crash shutdown
    "57P03": _SHUTDOWN,  # cannot connect now
    "57P04": _SHUTDOWN,  # the database is gone, or a standby ended the session to go on with recovery
    "57P05": AWAY,  # idle_session_timeout
    "58030": Outage(
        "PostgreSQL cannot read or write its disk",
        f"Check the disk of the database server. {_GOES_ON}",
        is_repeated=False,
        is_lasting=True,
    ),
}  # fmt: skip

# What the driver and the operating system raise without an answer of the server. A connection that is cut in the middle
# of an operation gives an InterfaceError or an InternalClientError.
_NO_ANSWER = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


def outage_of(error: BaseException) -> Outage | None:
    """The outage that an error tells of; None when the error concerns the operation itself."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        # Functions that write a transaction number fail with an internal error on a standby.
        if state == "XX000" and "during recovery" in str(error):
            return READ_ONLY
        return OUTAGES.get(state) or OUTAGES.get(state[:2])
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return READ_ONLY
    return AWAY if isinstance(error, _NO_ANSWER) else None


def is_transient(error: BaseException) -> bool:
    """Whether the same operation may succeed later."""
    return outage_of(error) is not None


class OutageLog:
    """Logs an outage once, once a minute while it lasts, and its end. For loops that try again every second."""

    def __init__(self, log: logging.Logger, who: str) -> None:
        self._log = log
        self._who = who
        self._reason: str | None = None
        self._logged_s = 0.0

    def note(self, error: BaseException) -> None:
        """The loop failed because of `error`, and will try again."""
        reason, now_s = str(error) or type(error).__name__, time.monotonic()
        if reason == self._reason and now_s - self._logged_s < REMIND_EVERY_S:
            return
        self._reason, self._logged_s = reason, now_s
        cause = error.__cause__
        detail = f" ({str(cause) or type(cause).__name__})" if cause is not None else ""
        self._log.warning("%s cannot go on now and tries again: %s%s", self._who, reason, detail)

    def over(self) -> None:
        """The loop succeeded."""
        if self._reason is not None:
            self._reason = None
            self._log.warning("%s goes on", self._who)
