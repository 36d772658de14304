"""Records the notes of running attempts: progress, previews, checkpoints, log lines."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import note as law
from windlass.core.note import Note
from windlass.store import drafts
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql

__all__ = ["Note", "note"]


async def note(db: Database, notes: Sequence[Note]) -> list[bool]:
    """Record the notes in one commit. Returns for each note whether its attempt was still running."""

    async def operation(connection: asyncpg.Connection) -> list[bool]:
        wanted: dict[UUID, set[int]] = {}
        for said in notes:
            wanted.setdefault(said.job_id, set()).add(said.no)
        async with connection.transaction():
            await drafts.lock(connection, wanted)
            found = await drafts.load(connection, wanted, lambda plan_hash: read_plan(connection, plan_hash))
            by_job = {draft.job.id: draft for draft in found}
            heard = [
                (draft := by_job.get(said.job_id)) is not None
                and law.note(draft, said, None if said.preview is None else msgspec.json.decode(said.preview))
                for said in notes
            ]
            await drafts.write(connection, found)
            await write_columns(connection, [said for said, is_heard in zip(notes, heard, strict=True) if is_heard])
        return heard

    return await db.run(operation)


async def write_columns(connection: asyncpg.Connection, notes: Sequence[Note]) -> None:
    """Write progress and checkpoints to the steps and jobs. The jobs are locked and the notes accepted."""
    notes = [said for said in notes if said.progress is not None or said.checkpoint is not None]
    if not notes:
        # Only events carry previews and log lines.
        return
    progress = [None if said.progress is None else encode(said.progress) for said in notes]
    await connection.execute(
        sql("note_step"),
        [said.job_id for said in notes],
        [said.no for said in notes],
        progress,
        [said.checkpoint for said in notes],
    )
    latest = {said.job_id: text for said, text in zip(notes, progress, strict=True) if text is not None}
    if latest:
        await connection.execute(sql("note_job"), list(latest), list(latest.values()))
