"""Holds: the reasons why a step that is ready may not be claimed yet.

A HELD step has a set of holds, stored as a bit mask in `steps.holds`. Each hold has one owner, which alone adds and
removes it. A step is QUEUED if and only if its set is empty, so no owner needs to know the others: the removal of the
last hold queues the step. The database checks the same rule (`steps_held`).

| hold | owner | added | removed |
|---|---|---|---|
| PAUSED | `core/control.py` | the job is paused | the job is resumed |
| SLOT | `core/slot.py` | the step needs a provider's place, a key's or money | the granter reserved all of them |
| ROUTE | `core/birth.py` | a step is born held, still to be routed | with the last other hold: it is READY then |

A held step holds no resource. So SLOT is granted last: the granter looks only at steps that have no other hold, and a
step that gets another hold gives its place back.

A new hold is a member here with a row above, its owner's calls of `Draft.hold` and `Draft.release`, and a sentence in
`views/explain.py`.
"""

from __future__ import annotations

from enum import IntFlag


class Hold(IntFlag):
    """One reason; combined with `|` into a set. The values are stored: they never change."""

    PAUSED = 1
    SLOT = 2
    ROUTE = 4

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the holds in the set, in the order of their values, as users see them."""
        return tuple((hold.name or "").lower() for hold in Hold if hold in self)


NO_HOLD = Hold(0)
