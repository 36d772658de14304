"""The rows of steps that wait to be told something: there exactly while the step is parked for it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from windlass.core.draft import Draft
from windlass.core.plan import NodeKind
from windlass.core.states import StepState
from windlass.store.statements import sql


def changes_waits(draft: Draft) -> bool:
    """Whether writing the draft touches these rows, so that it takes more than one statement."""
    return draft.plan.has_events and (draft.sweep or bool(draft.matches) or bool(_left(draft)))


async def write_waits(connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
    """In the commit of the steps' own moves: rows come with those that begin to wait, and go with those that stop."""
    concerned = [draft for draft in drafts if changes_waits(draft)]
    swept = [draft.job.id for draft in concerned if draft.sweep]
    if swept:
        await connection.execute(sql("waits_clear"), swept)
    left = [(draft.job.id, no) for draft in concerned if not draft.sweep for no in _left(draft)]
    if left:
        await connection.execute(sql("waits_drop"), [job_id for job_id, _ in left], [no for _, no in left])
    come: list[tuple[UUID, int, str, str]] = [
        (draft.job.id, no, draft.plan.nodes[draft.steps[no].node].run, match)
        for draft in concerned
        if not draft.sweep
        for no, match in draft.matches.items()
    ]
    if come:
        await connection.execute(sql("waits_put"), *(list(column) for column in zip(*come, strict=True)))


def _left(draft: Draft) -> list[int]:
    """The steps that this draft has made stop waiting."""
    return [
        step.no
        for step in draft.changed.values()
        if draft.plan.nodes[step.node].kind is NodeKind.EVENT
        and step.state is not StepState.PARKED
        and step.no not in draft.matches
    ]
