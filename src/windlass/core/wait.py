"""What a PARKED step waits for: one typed value. A moment, if there is one, is the step's `wake_at`.

It is stored as text, `kind` or `kind:name`; this is the only place that writes and parses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windlass.core.hold import Hold


class WaitKind(StrEnum):
    """The kinds of waits."""

    RETRY = "retry"  # the next attempt's time
    SNOOZE = "snooze"  # the time that the handler asked for
    TIMER = "timer"  # a timer of the recipe
    FAN = "fan"  # its children
    CHILD = "child"  # a child job
    EXTERNAL = "external"  # a provider or a callback; `name` says which
    EVENT = "event"  # an event that is sent to the job; `name` is the event's


# Waits that a report from outside ends.
OUTSIDE = frozenset({WaitKind.EXTERNAL, WaitKind.CHILD, WaitKind.EVENT})


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait."""

    kind: WaitKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else str(self.kind)

    @classmethod
    def parse(cls, text: str) -> Wait:
        """Return the wait that this text was written from."""
        kind, _, name = text.partition(":")
        return cls(WaitKind(kind), name)

    @property
    def is_outside(self) -> bool:
        """Whether a report from outside ends it."""
        return self.kind in OUTSIDE


def waiting_for(wait: Wait | None, holds: Hold) -> str | None:
    """Return what people are shown that a step waits for: the names of its holds, or its wait."""
    if holds:
        return ",".join(holds.names)
    return None if wait is None else str(wait)
