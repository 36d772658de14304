"""Duties: work that a loop does one batch at a time, and that declares when it is due next.

A new duty of the engine is one file and one line: a class that derives from `EngineDuty`, named in `registry.py`. The
class declares when it is due by a table and a column (`Earliest`, `AnyRow`), or by a statement (`Due`). The runner
knows no duty by name. It wakes a duty

- when one of its `bells` rings,
- when the moment of its `due` has come; one query asks for all duties, and
- every `every_s` seconds, if it has neither bells nor moments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, assert_never
from uuid import UUID

from windlass.core.bell import Bell
from windlass.core.template import Resolver
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.due import any_row, earliest
from windlass.store.statements import sql

_PARAMETER = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Done:
    """The size of the batch. `is_more` says that the batch was full, so more work is likely."""

    count: int
    is_more: bool = False


class Duty(Protocol):
    """A recurring piece of work. Several processes may do the same duty at once, because each action is fenced."""

    name: str

    async def run_once(self) -> Done:
        """Do one bounded batch of the work that is due."""
        ...


@dataclass(frozen=True, slots=True)
class Earliest:
    """The duty is due at the earliest moment in a table's column, of all rows or of the rows in one state.

    An index must serve the query: on the column, or a partial index on the rows in that state.
    """

    table: str
    column: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class AnyRow:
    """The duty is due while the table holds a row, in the given state if any. An index must serve the query."""

    table: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """The duty is due at the moment that a statement of `store/sql` returns; NULL means not due."""

    statement: str
    values: tuple[Any, ...] = ()


# How a duty declares when it is due.
Moment = Earliest | AnyRow | Due


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that duties are built from. `ring` makes the runner do a duty now."""

    db: Database
    artifacts: Artifacts
    resolver: Resolver
    new_id: Callable[[], UUID]
    spread: Callable[[], float]
    retention_s: float
    fan_out_max: int
    backlog_max: int
    ring: Callable[[str], None]


class EngineDuty:
    """A duty of the engine's own loop."""

    name: str
    # The bells that wake the duty.
    bells: ClassVar[tuple[type[Bell], ...]] = ()
    # When the duty is due next. None if only bells or `every_s` wake it.
    due: ClassVar[Moment | None] = None
    every_s: float | None = None

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        raise NotImplementedError

    async def run_once(self) -> Done:
        """Do one bounded batch of the work that is due."""
        raise NotImplementedError

    async def resolving(self) -> bool:
        """Wait for background work that the duty needs. Returns False if there is none. For tests."""
        return False

    async def close(self) -> None:
        """Cancel the duty's background work."""


def look(duties: Sequence[EngineDuty], *values: Any) -> tuple[str, list[Any]]:
    """Build one statement that returns the due moments of these duties, in order; `values` are its own parameters."""
    given = list(values)
    asked = []
    for duty in duties:
        match duty.due:
            case None:
                asked.append("NULL")
            case Earliest(table, column, state):
                asked.append(f"({earliest(table, column, state)})")
            case AnyRow(table, state):
                asked.append(f"({any_row(table, state)})")
            case Due(statement, its_values):
                asked.append(f"({_renumbered(sql(statement), len(given))})")
                given.extend(its_values)
            case moment:
                assert_never(moment)
    return sql("due_times").replace("/* duties */", ", ".join(asked)), given


def _renumbered(text: str, after: int) -> str:
    """Shift the statement's parameter numbers by `after`."""
    return _PARAMETER.sub(lambda number: f"${after + int(number[1])}", text)
