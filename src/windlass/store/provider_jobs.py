"""What becomes of the work that providers do when the steps that wait for it move. Written in the steps' own commit.

the step                      its open work
COMPLETED                     ENDED
FAILED, CANCELLED, swept      CANCELLING, due now
waits to be tried again       RUNNING is cancelled; SUBMITTING stays: the next attempt asks again, with the same key
waits for the provider        RUNNING, with the provider's id, and due for a first poll
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from uuid import UUID

import asyncpg

from windlass.core.draft import EXTERNAL, Draft, Step
from windlass.core.states import STEP_TERMINAL, StepState
from windlass.store.statements import sql

SUBMITTING = "SUBMITTING"
RUNNING = "RUNNING"
CANCELLING = "CANCELLING"
ENDED = "ENDED"


async def write_work(connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
    """Apply the table above to these drafts' changes. Their jobs' rows are locked and the steps are written."""
    # Job, step, the new state, and the state that stays.
    moved: list[tuple[UUID, int, str, str | None]] = []
    recorded: list[tuple[UUID, int, int, str, str]] = []
    for draft in drafts:
        for step in draft.changed.values():
            provider = draft.plan.nodes[step.node].provider
            if not provider:
                continue
            if (external_id := draft.external_ids.get(step.no)) is not None and _waits_outside(step):
                recorded.append((draft.job.id, step.no, step.attempt, provider, external_id))
            elif (target := _target(step)) is not None:
                moved.append((draft.job.id, step.no, *target))
    if moved:
        await connection.execute(sql("work_moved"), *_columns(moved))
    if recorded:
        providers, external_ids = [row[3] for row in recorded], [row[4] for row in recorded]
        locks = id_locks(zip(providers, external_ids, strict=True))
        await connection.execute(sql("work_recorded"), *_columns(recorded), locks)
        await connection.execute(sql("event_known"), providers, external_ids)
    # Last: one batch may have parked a step and then ended its job.
    swept = [draft.job.id for draft in drafts if draft.sweep]
    if swept:
        await connection.execute(sql("work_swept"), swept)


def id_locks(ids: Iterable[tuple[str, str]]) -> list[int]:
    """The advisory locks of these providers' ids, in the order in which everyone takes them."""
    texts = {f"{provider}\n{external_id}" for provider, external_id in ids}
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return sorted(int.from_bytes(digest, "big", signed=True) for digest in digests)


def _waits_outside(step: Step) -> bool:
    return step.state is StepState.PARKED and (step.waiting_for or "").startswith(EXTERNAL)


def _target(step: Step) -> tuple[str, str | None] | None:
    """What the step's open work becomes, and which state of it stays; None while it goes on."""
    if step.state is StepState.COMPLETED:
        return ENDED, None
    if step.state in STEP_TERMINAL:
        return CANCELLING, None
    if step.state is StepState.PARKED and not _waits_outside(step):
        return CANCELLING, SUBMITTING
    return None


def _columns(rows: Sequence[tuple[object, ...]]) -> tuple[list[object], ...]:
    return tuple(list(column) for column in zip(*rows, strict=True))
