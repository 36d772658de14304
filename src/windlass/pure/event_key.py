"""The idempotency key of an event: what a reader stores to apply the event once, however often it is delivered.

An event has the key that its sender gave, such as the id of a signal. Any other has a key that is made from its row, so
nothing is written for it. The sequence number alone would do while the history stands; a failover that lost commits may
give the number to another event, whose type, step or attempt differ.
"""

from __future__ import annotations

from uuid import UUID


def event_key(job_id: UUID, seq: int, type: str, no: int | None, attempt: int | None) -> str:
    """The key of an event without one of its own: the same whenever it is read, and no other event's."""
    own = f"{job_id}:{seq}:{type}"
    return own if no is None else f"{own}:{no}:{attempt or 0}"
