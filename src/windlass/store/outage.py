"""The PostgreSQL errors that are temporary, with their meaning and remedy, in one table.

An error with a row here is not the operation's fault: the server cannot do it now. The operation is repeated, and a
caller gets `DatabaseUnavailable` with the row's text, never the text of the driver. Every other error concerns the
operation itself and is raised as it is.

| property | meaning |
|---|---|
| `is_repeated` | A repeat within seconds may succeed. Only a person can make room on a full disk. |
| `is_stale` | The server does not accept writes. Its connections are closed; the next one may find the primary. |
| `is_lasting` | Writes fail until a person acts. A readiness check reports it until a test write succeeds. |
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import asyncpg

from windlass.core.errors import DatabaseUnavailable

# The interval at which a log repeats an outage that continues.
REMIND_EVERY_S = 60.0

_GOES_ON = "Accepted work is safe; Windlass continues automatically"


@dataclass(frozen=True, slots=True)
class Outage:
    """A reason why PostgreSQL cannot do an operation now. The module's docstring describes the properties."""

    reason: str
    remedy: str = f"{_GOES_ON} when the server is back"
    is_repeated: bool = True
    is_stale: bool = False
    is_lasting: bool = False

    def error(self) -> DatabaseUnavailable:
        """Return the error for the caller."""
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

# Keyed by SQLSTATE, or by its class (the first two characters).
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

# Errors of the driver and the operating system without an answer from the server. A connection that is cut in the
# middle of an operation raises an InterfaceError or an InternalClientError.
_NO_ANSWER = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


def outage_of(error: BaseException) -> Outage | None:
    """Return the outage behind an error, or None if the error concerns the operation itself."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        # Functions that write a transaction id fail with an internal error on a standby.
        if state == "XX000" and "during recovery" in str(error):
            return READ_ONLY
        return OUTAGES.get(state) or OUTAGES.get(state[:2])
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return READ_ONLY
    return AWAY if isinstance(error, _NO_ANSWER) else None


def is_transient(error: BaseException) -> bool:
    """Return whether the same operation may succeed later."""
    return outage_of(error) is not None


class OutageLog:
    """Logs an outage once, then once a minute while it lasts, and its end. For loops that retry every second."""

    def __init__(self, log: logging.Logger, who: str) -> None:
        self._log = log
        self._who = who
        self._reason: str | None = None
        self._logged_s = 0.0

    def note(self, error: BaseException) -> None:
        """Log that the loop failed because of `error` and will try again."""
        reason, now_s = str(error) or type(error).__name__, time.monotonic()
        if reason == self._reason and now_s - self._logged_s < REMIND_EVERY_S:
            return
        self._reason, self._logged_s = reason, now_s
        cause = error.__cause__
        detail = f" ({str(cause) or type(cause).__name__})" if cause is not None else ""
        self._log.warning("%s cannot continue now and tries again: %s%s", self._who, reason, detail)

    def over(self) -> None:
        """Log the end of the outage after a success."""
        if self._reason is not None:
            self._reason = None
            self._log.warning("%s continues", self._who)
