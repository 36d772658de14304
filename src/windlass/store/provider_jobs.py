"""Updates the work at providers when the steps that wait for it move, in the commit of the steps.

    the step                        its work that is SUBMITTING                its work that is RUNNING
    waits for the provider          RUNNING, due for a first poll              the same
    is tried again later            stays: the next attempt has the same key   stays: the next attempt waits for it
    waited too long for it          stays                                      CANCELLING
    COMPLETED by its worker         ENDED                                      CANCELLING
    ended otherwise, or was swept   CANCELLING                                 CANCELLING

Code that applies a provider's answer marks its work ENDED beforehand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.bell import AnswerDue, PollDue
from windlass.core.draft import Draft, Step
from windlass.core.effect import GiveUpWork, RecordWork
from windlass.core.external import WorkState
from windlass.core.states import STEP_TERMINAL, StepState
from windlass.store.statements import sql

SUBMITTING = WorkState.SUBMITTING
RUNNING = WorkState.RUNNING
CANCELLING = WorkState.CANCELLING
ENDED = WorkState.ENDED


class WorkWriter:
    """Writes the rows of provider jobs (store/writers.py)."""

    def touches(self, draft: Draft) -> bool:
        """Return whether a step with a provider moved."""
        if not draft.is_slotted:
            return False
        nodes = draft.plan.nodes
        return draft.is_swept or any(nodes[step.node].provider for step in draft.changed.values())

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Apply the table above to these drafts' changes."""
        await _write(connection, drafts)


async def _write(connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
    # The job, the step, and the new state of its work if the work is SUBMITTING; `work_moved` has the other column.
    moved: list[tuple[UUID, int, str]] = []
    recorded: list[tuple[UUID, int, int, str, str]] = []
    for draft in drafts:
        recorded_ids = {work.no: work.external_id for work in draft.effects_of(RecordWork)}
        for step in draft.changed.values():
            provider = draft.plan.nodes[step.node].provider
            if not provider:
                continue
            if (external_id := recorded_ids.get(step.no)) is not None and step.waits_for_provider:
                recorded.append((draft.job.id, step.no, step.attempt, provider, external_id))
            elif (target := _target(step, draft)) is not None:
                moved.append((draft.job.id, step.no, target))
    # The work that no step waits for any more.
    over: list[Any] = []
    if moved:
        over += await connection.fetch(sql("work_moved"), *_columns(moved))
    if recorded:
        providers, external_ids = [row[3] for row in recorded], [row[4] for row in recorded]
        locks = id_locks(zip(providers, external_ids, strict=True))
        noted = await connection.fetchrow(sql("work_recorded"), *_columns(recorded), locks)
        if noted["is_soon"]:
            connection.ring(PollDue())
        await release_events(connection, list(zip(providers, external_ids, strict=True)))
    # After the moves, because one batch may have parked a step and then ended its job.
    swept = [draft.job.id for draft in drafts if draft.is_swept]
    if swept:
        over += await connection.fetch(sql("work_swept"), swept)
    if any(row["is_due"] for row in over):
        connection.ring(PollDue())
    # A webhook that arrives while the step runs waits until the step can take it. Now no step will, so it counts as
    # late.
    known = sorted({(row["provider"], row["external_id"]) for row in over if row["external_id"] is not None})
    if known:
        await release_events(connection, known)


async def release_events(connection: asyncpg.Connection, known: Sequence[tuple[str, str]]) -> None:
    """Hand the stored events of these ids to the webhook applier: their work is known, or over."""
    if await connection.fetchval(sql("event_known"), *_columns(known)):
        connection.ring(AnswerDue())


def id_locks(ids: Iterable[tuple[str, str]]) -> list[int]:
    """Return the advisory locks of these providers' ids, in the order that every transaction uses."""
    texts = {f"{provider}\n{external_id}" for provider, external_id in ids}
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return sorted(int.from_bytes(digest, "big", signed=True) for digest in digests)


def _target(step: Step, draft: Draft) -> str | None:
    """Return the new state of the step\'s work, if that is SUBMITTING; None if the work continues."""
    if step.state is StepState.COMPLETED and draft.source == "worker":
        return ENDED
    if step.state in STEP_TERMINAL:
        return CANCELLING
    return SUBMITTING if GiveUpWork(step.no) in draft.effects else None


def _columns(rows: Sequence[tuple[object, ...]]) -> tuple[list[object], ...]:
    return tuple(list(column) for column in zip(*rows, strict=True))
