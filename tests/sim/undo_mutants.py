"""Planted flaws in how effects are undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import asyncpg

from tests.sim.mutants import Patch, mutant
from windlass.core import undo as law
from windlass.core.draft import Draft
from windlass.core.hold import Hold
from windlass.core.plan import Plan
from windlass.engine import rerun, settle
from windlass.engine.loops.duty import Done
from windlass.engine.loops.undoer import Undoer
from windlass.engine.undo import Owned
from windlass.store import undo as store

_write = store.UndoWriter.write
_run_once = Undoer.run_once


@mutant(60, has_undo=True)
def an_undo_job_comes_in_a_second_commit(patch: Patch) -> None:
    later: list[Draft] = []

    async def write(self: Any, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        later.extend(drafts)

    async def run_once(self: Undoer) -> Done:
        found, later[:] = later[:], []

        async def insert(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await _write(store.UndoWriter(), connection, found)

        if found:
            await self._db.run(insert)
        return await _run_once(self)

    patch.setattr(store.UndoWriter, "write", write)
    patch.setattr(Undoer, "run_once", run_once)


@mutant(60, has_undo=True)
def an_undo_runs_while_an_old_attempt_runs(patch: Patch) -> None:
    def holds(plan: Plan, *, may_act: bool) -> Hold:
        return law.holds(plan, may_act=False)

    patch.setattr(store, "holds", holds)


@mutant(60, has_undo=True)
def effects_are_undone_in_any_order(patch: Patch) -> None:
    def undo_plan(plan: Plan, stands: Sequence[law.Standing]) -> Plan:
        made = law.undo_plan(plan, stands)
        return replace(made, nodes=tuple(replace(node, needs=(), follows=()) for node in made.nodes))

    patch.setattr(store, "undo_plan", undo_plan)


@mutant(60, has_undo=True)
def a_late_success_is_forgotten(patch: Patch) -> None:
    async def note_late(connection: asyncpg.Connection, late: Any) -> None:
        return None

    patch.setattr(settle, "note_late", note_late)


@mutant(200, has_undo=True)
def a_retry_keeps_what_was_undone(patch: Patch) -> None:
    async def owned(*_: Any) -> Owned:
        return Owned()

    patch.setattr(rerun, "owned", owned)
