"""Holds: the reasons why a step that is ready may not be claimed yet.

A HELD step has a set of holds, stored as a bit mask in `steps.holds`. Each hold has one owner, which alone adds and
removes it. A step is QUEUED if and only if its set is empty, so no owner needs to know the others: the removal of the
last hold queues the step. The database checks the same rule (`steps_held`).

| hold | owner | added | removed |
|---|---|---|---|
| PAUSED | `core/control.py` | the job is paused | the job is resumed |
| SLOT | `core/slot.py` | the step needs places, a concurrency key or money | the granter reserved all of them |
| ROUTE | `core/birth.py` | a step is born held, still to be routed | with the last other hold: it is READY then |
| POLICY | `core/gatekeeping.py` | the policy throttles the job, or did not answer | the policy lets the job go on |
| APPROVAL | `core/gatekeeping.py` | the policy asks for an approval of the job | the approval is used, or not needed |
| ATTEMPT | `core/undo.py` | an undo job is born while attempts of the old job may still act | they are over |
| ASK | `core/undo.py` | an undo job is born and its recipe says `undo: ask` | a person says go |

A held step holds no resource. So the granter grants SLOT last: it considers only steps that have no other hold. A step
that gets another hold gives its slot back.

A new hold is a member here with a name and a row above, its owner's calls of `Draft.hold` and `Draft.release`, and a
sentence in `views/explain.py`.
"""

from __future__ import annotations

from enum import IntFlag, StrEnum


class HoldName(StrEnum):
    """The name of a hold, as users see it. Every hold has one."""

    PAUSED = "paused"
    SLOT = "slot"
    ROUTE = "route"
    POLICY = "policy"
    APPROVAL = "approval"
    ATTEMPT = "attempt"
    ASK = "ask"


class Hold(IntFlag):
    """A reason to hold a step; `|` combines reasons into a set. The values are stored, so they never change."""

    PAUSED = 1
    SLOT = 2
    ROUTE = 4
    POLICY = 8
    APPROVAL = 16
    ATTEMPT = 32
    ASK = 64

    @property
    def names(self) -> tuple[HoldName, ...]:
        """The names of the holds in the set, in the order of their values. Users see these names."""
        return tuple(HoldName[hold.name or ""] for hold in Hold if hold in self)


NO_HOLD = Hold(0)
