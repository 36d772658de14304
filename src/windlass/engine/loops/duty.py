"""What every loop is: a duty that can be done once, and says when it wants to be done again.

A new duty of the engine is one file and one line: a class that derives from `EngineDuty`, named in `registry.py`. The
runner knows no duty by name. It wakes a duty

- when one of its `bells` rings,
- when the moment that its statement `due` gives has come; all duties are asked in one query, and
- every `every_s` seconds, if it has neither bells nor moments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self
from uuid import UUID

from windlass.core.bell import Bell
from windlass.core.template import Resolver
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.statements import sql

_PARAMETER = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Done:
    """How much was done; `is_more` says that a full batch was found, so that there is likely more."""

    count: int
    is_more: bool = False


class Duty(Protocol):
    """Something to do again and again. Any number of processes may do the same duty at once: each action is fenced."""

    name: str

    async def run_once(self) -> Done:
        """Do one bounded batch of whatever is due."""
        ...


@dataclass(frozen=True, slots=True)
class Due:
    """A statement of `store/sql` that gives the moment at which a duty is next due, or nothing; and its parameters."""

    statement: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Engine:
    """What duties are made from. `ring` has the runner do a duty now."""

    db: Database
    artifacts: Artifacts
    resolver: Resolver
    new_id: Callable[[], UUID]
    chance: Callable[[], float]
    retention_s: float
    fan_out_max: int
    backlog_max: int
    ring: Callable[[str], None]


class EngineDuty:
    """A duty of the engine's own loop."""

    name: str
    # What wakes it.
    bells: ClassVar[tuple[type[Bell], ...]] = ()
    # When it is next due; None if only bells or `every_s` say so.
    due: ClassVar[Due | None] = None
    every_s: float | None = None

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """The duty, from what the engine has."""
        raise NotImplementedError

    async def run_once(self) -> Done:
        """Do one bounded batch of whatever is due."""
        raise NotImplementedError

    async def resolving(self) -> bool:
        """Wait for what goes on beside the duty and lets it go on; False if there is nothing. For tests."""
        return False

    async def close(self) -> None:
        """Give up what goes on beside the duty."""


def look(duties: Sequence[EngineDuty], *values: Any) -> tuple[str, list[Any]]:
    """One statement that asks for the moments of all these duties, in their order; `values` are its own parameters."""
    given = list(values)
    asked = []
    for duty in duties:
        due = duty.due
        if due is None:
            asked.append("NULL")
            continue
        asked.append(f"({_renumbered(sql(due.statement), len(given))})")
        given.extend(due.values)
    return sql("due_times").replace("ARRAY[:duties]", f"ARRAY[{', '.join(asked)}]"), given


def _renumbered(text: str, after: int) -> str:
    """The statement with its parameters numbered behind so many others."""
    return _PARAMETER.sub(lambda number: f"${after + int(number[1])}", text)
