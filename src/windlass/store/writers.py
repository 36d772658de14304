"""The writers: each writes one kind of row that follows from drafts, in the drafts' own commit.

`store/drafts.py` writes jobs, steps and events first, then calls the writers in the order of WRITERS. That order is the
order of row locks (ARCHITECTURE.md, "Locks are taken in one order"). So two commits that share rows wait for each other
and never deadlock. A draft that no writer touches is written by one statement, without an explicit transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import asyncpg

from windlass.core.draft import Draft
from windlass.core.effect import AddChildren, MoveExpiry, StartJob
from windlass.store.approvals import ApprovalWriter
from windlass.store.columns import encode
from windlass.store.provider_jobs import WorkWriter
from windlass.store.signals import WaitWriter
from windlass.store.slots import SlotWriter
from windlass.store.statements import sql
from windlass.store.undo import UndoWriter
from windlass.store.verdicts import VerdictWriter


class Writer(Protocol):
    """Writes one kind of row.

    - `touches` is called for every draft that is not plain. It reads only the draft: its effects and its changed steps.
    - `write` gets the drafts that the writer touches, ordered by job id. The jobs' rows are locked and the steps are
      written. It locks rows in the order of their keys, and never rows of an earlier writer in WRITERS.
    """

    def touches(self, draft: Draft) -> bool:
        """Return whether writing the draft changes rows of this kind."""
        ...

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Write the rows."""
        ...


class ExpiryWriter:
    """Moves a job's default expiry."""

    def touches(self, draft: Draft) -> bool:
        """Return whether the expiry moves."""
        return bool(draft.effects_of(MoveExpiry))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Write the last expiry of each draft."""
        for draft in drafts:
            await connection.execute(sql("draft_prolong"), draft.job.id, draft.effects_of(MoveExpiry)[-1].until)


class ChildWriter:
    """Adds the children of fan-outs."""

    def touches(self, draft: Draft) -> bool:
        """Return whether a fan-out grows."""
        return bool(draft.effects_of(AddChildren))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Insert the children, one statement per fan-out."""
        for draft in drafts:
            for added in draft.effects_of(AddChildren):
                node = draft.plan.nodes[draft.steps[added.fan].node]
                await connection.execute(
                    sql("draft_children"),
                    draft.job.id,
                    added.fan,
                    added.children[0].state,
                    node.queue,
                    node.timeout_s,
                    [child.no for child in added.children],
                    [child.index for child in added.children],
                    [child.item for child in added.children],
                )


class ChildJobWriter:
    """Marks drafts that start child jobs. The router writes those rows, because it has the checked inputs."""

    def touches(self, draft: Draft) -> bool:
        """Return whether a step starts a job."""
        return bool(draft.effects_of(StartJob))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Do nothing: the router writes the rows."""


class SweepWriter:
    """Cancels the open steps of ended jobs, and the child jobs of those steps."""

    def touches(self, draft: Draft) -> bool:
        """Return whether the job's open steps are cancelled."""
        return draft.is_swept

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Cancel them with two statements per job; the sweep of a wide job takes long."""
        for draft in drafts:
            await connection.execute(sql("draft_sweep"), draft.job.id, draft.source)
            await connection.execute(sql("inbox_cancel_children"), draft.job.id, not draft.keeps_effects)


class ParentWriter:
    """Tells the parent job that a child job has ended."""

    def touches(self, draft: Draft) -> bool:
        """Return whether a parent waits for this end. A late charge to a job that ended before tells it nothing."""
        return draft.is_changed and draft.is_finished and draft.job.parent is not None

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Put each end into the inbox for the parent notifier."""
        for draft in drafts:
            assert draft.job.parent is not None
            parent_job, no, attempt = draft.job.parent
            outcome = encode({"child": str(draft.job.id), "state": draft.job.state})
            await connection.execute(sql("inbox_put"), parent_job, no, attempt, "child", outcome)


WRITERS: tuple[Writer, ...] = (
    ExpiryWriter(),
    VerdictWriter(),
    ChildWriter(),
    ChildJobWriter(),
    # Before the sweep, which forgets the workers of the attempts in progress.
    UndoWriter(),
    SweepWriter(),
    ParentWriter(),
    WorkWriter(),
    WaitWriter(),
    ApprovalWriter(),
    SlotWriter(),
)


def is_plain(draft: Draft) -> bool:
    """Return whether no writer can touch the draft. This quick check is true for most drafts."""
    return not draft.effects and draft.job.parent is None and draft.plan.is_plain


def is_touched(draft: Draft) -> bool:
    """Return whether a writer touches the draft, so that it must be written inside a transaction."""
    return not is_plain(draft) and any(writer.touches(draft) for writer in WRITERS)


async def write_touched(connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
    """Call every writer with the drafts that it touches, in the order of locks."""
    if not (asked := [draft for draft in drafts if not is_plain(draft)]):
        return
    for writer in WRITERS:
        if touched := [draft for draft in asked if writer.touches(draft)]:
            await writer.write(connection, touched)
