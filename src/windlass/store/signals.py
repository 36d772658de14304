"""The rows of steps that wait for an event. A row exists exactly while its step is parked for the event."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from windlass.core.draft import Draft
from windlass.core.effect import ExpectEvent
from windlass.core.plan import NodeKind
from windlass.core.states import StepState
from windlass.store.statements import sql


class WaitWriter:
    """Writes the rows of waiting steps (store/writers.py)."""

    def touches(self, draft: Draft) -> bool:
        """Return whether a step begins or stops waiting for an event."""
        return draft.plan.has_events and (draft.is_swept or bool(draft.effects_of(ExpectEvent)) or bool(_left(draft)))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Delete the rows of steps that no longer wait, then add the rows of steps that begin to wait."""
        swept = [draft.job.id for draft in drafts if draft.is_swept]
        if swept:
            await connection.execute(sql("waits_clear"), swept)
        open_drafts = [draft for draft in drafts if not draft.is_swept]
        left = [(draft.job.id, no) for draft in open_drafts for no in _left(draft)]
        if left:
            await connection.execute(sql("waits_drop"), [job_id for job_id, _ in left], [no for _, no in left])
        come: list[tuple[UUID, int, str, str]] = [
            (draft.job.id, expected.no, draft.plan.nodes[draft.steps[expected.no].node].run, expected.match)
            for draft in open_drafts
            for expected in draft.effects_of(ExpectEvent)
        ]
        if come:
            await connection.execute(sql("waits_put"), *(list(column) for column in zip(*come, strict=True)))


def _left(draft: Draft) -> list[int]:
    """Return the steps that this draft made stop waiting."""
    expected = {one.no for one in draft.effects_of(ExpectEvent)}
    return [
        step.no
        for step in draft.changed.values()
        if draft.plan.nodes[step.node].kind is NodeKind.EVENT
        and step.state is not StepState.PARKED
        and step.no not in expected
    ]
