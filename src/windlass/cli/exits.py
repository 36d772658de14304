"""The exit codes and their meanings, in one table. `--json` never changes a code."""

from __future__ import annotations

from enum import IntEnum

from windlass.core.errors import (
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
    WindlassError,
    WrongState,
)
from windlass.core.states import JobState


class Exit(IntEnum):
    """The exit codes. Scripts rely on them."""

    DONE = 0
    BROKEN = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_FOUND = 4
    REFUSED = 5
    WAITED_TOO_LONG = 6
    JOB_FAILED = 10
    JOB_CANCELLED = 11
    INTERRUPTED = 130


MEANING: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.BROKEN: "an internal error",
    Exit.USAGE: "usage: a flag, setting, input or recipe that cannot be used",
    Exit.UNREACHABLE: "the database or the server cannot be reached, or is overloaded",
    Exit.NOT_FOUND: "no such job, step or recipe",
    Exit.REFUSED: "refused: no valid key, a conflict, or the job's state does not allow it",
    Exit.WAITED_TOO_LONG: "timed out waiting; the job goes on",
    Exit.JOB_FAILED: "the job failed (also TIMEOUT, EXPIRED, DENIED, OUTPUT_QUARANTINED)",
    Exit.JOB_CANCELLED: "the job was cancelled",
    Exit.INTERRUPTED: "interrupted",
}

# The first class that matches an error decides its code.
_BY_ERROR: tuple[tuple[type[WindlassError], Exit], ...] = (
    (NotFound, Exit.NOT_FOUND),
    (Conflict, Exit.REFUSED),
    (WrongState, Exit.REFUSED),
    (Unauthenticated, Exit.REFUSED),
    (Forbidden, Exit.REFUSED),
    (Refused, Exit.USAGE),
    (WaitTimeout, Exit.WAITED_TOO_LONG),
    (Unavailable, Exit.UNREACHABLE),
)


def exit_for_error(error: WindlassError) -> Exit:
    """Return the exit code of an error."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.BROKEN)


def exit_for_job(state: JobState) -> Exit:
    """Return the exit code of a command that waited for a job to end in this state."""
    if state is JobState.COMPLETED:
        return Exit.DONE
    return Exit.JOB_CANCELLED if state is JobState.CANCELLED else Exit.JOB_FAILED


def table() -> str:
    """Return the codes as text for `--help`."""
    return "Exit codes: " + " · ".join(f"{code.value} {meaning}" for code, meaning in MEANING.items())
