"""The wait of a PARKED step, as one typed value. The end of a timed wait is the step's `wake_at`.

A wait is stored as text, `kind` or `kind:name`. Only this module writes and parses that text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windlass.core.hold import Hold


class WaitKind(StrEnum):
    """What a PARKED step waits for."""

    RETRY = "retry"  # the time of the next attempt
    SNOOZE = "snooze"  # the time that the handler asked for
    TIMER = "timer"  # a timer of the recipe
    FAN = "fan"  # the children of the fan-out
    CHILD = "child"  # a child job
    EXTERNAL = "external"  # a provider or a callback, named by `name`
    EVENT = "event"  # an event, named by `name`, that is sent to the job
    APPROVAL = "approval"  # the votes on an approval, whose id is `name`


# Waits that a report from outside ends. Votes are not reports: only `core/ballot.py` ends the wait for an approval.
OUTSIDE = frozenset({WaitKind.EXTERNAL, WaitKind.CHILD, WaitKind.EVENT})


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of a PARKED step."""

    kind: WaitKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else str(self.kind)

    @classmethod
    def parse(cls, text: str) -> Wait:
        """Parse a wait from its text."""
        kind, _, name = text.partition(":")
        return cls(WaitKind(kind), name)

    @property
    def is_outside(self) -> bool:
        """Return whether a report from outside ends the wait."""
        return self.kind in OUTSIDE


def waiting_for(wait: Wait | None, holds: Hold) -> str | None:
    """Return a step's wait as people see it: the names of its holds, or its wait."""
    if holds:
        return ",".join(holds.names)
    return None if wait is None else str(wait)
