"""The granter makes HELD steps QUEUED when the resources they wait for are free: provider slots, key slots, money.

One granter works at a time, in any process; the others find its lock taken and return. Only a granter makes a slot
HELD, so the usage that it counts can only shrink meanwhile, and no limit is ever exceeded. The granter need not poll:
every commit in which a step leaves or joins a line, or returns money, records it (`slot_changes`). A provider that
accepts requests again at a known time has that time in its row (`grant_at`).

    changes of keys, budgets ──► which steps come to the front of which line ──► changes of providers
    changes of providers     ──► the first steps in line, as many as may go  ──► QUEUED, HELD, one commit

All resources implement one port (`store/resources`): the granter walks them and knows none by name. Steps that lack a
resource leave the line's index until that changes. So a turn reads about as many rows as it grants, however many steps
wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self
from uuid import UUID

import asyncpg

from windlass.core.bell import GrantDue
from windlass.core.slot import BEHIND_KEY, Name, Slot, grant
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.resources.port import Lack, Room
from windlass.store.resources.registry import KINDS, LINE, RESOURCES
from windlass.store.slots import note_changes
from windlass.store.statements import sql

CHANGES_MAX = 1_000
GRANTS_MAX = 200
# Reads this many steps more than there is room for: some jobs are locked, some steps lack a resource.
LOOK_FURTHER = 20
# The most steps that are set aside, or returned to their lines, at once.
SHORT_MAX = 1_000


class Granter(EngineDuty):
    """Grants slots to the steps that wait for them."""

    name = "granter"
    bells = (GrantDue,)
    due = Due("due_granter")

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Process every line that changed or is due. Grants at most GRANTS_MAX slots in each."""
        todo = await self._db.run(lambda connection: connection.fetchrow(sql("grant_todo"), KINDS))
        lines = set(todo["providers"])
        if todo["has_changes"]:
            if not await self._db.run(_advance):
                return Done(0)
            todo = await self._db.run(lambda connection: connection.fetchrow(sql("grant_todo"), KINDS))
            lines |= set(todo["providers"])
        count = 0
        is_more = bool(todo["has_changes"])
        for line in sorted(lines):
            handled = await self._db.run(partial(_grant, line=line))
            count += handled
            is_more |= handled >= GRANTS_MAX
        return Done(count, is_more)


@dataclass(slots=True)
class _Turn:
    """The result of one pass over a line."""

    granted: int = 0
    # Whether some steps were skipped because their jobs are locked; whether other steps remain that could go.
    is_held_up: bool = False
    is_left: bool = False
    # Where each step that lacks a resource waits, and the jobs of these steps.
    behind: dict[tuple[UUID, int], str] = field(default_factory=dict)
    lacking: set[UUID] = field(default_factory=set)
    # The keys of steps that lack another resource: the next step of the key may have enough.
    passed: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """The number of steps decided."""
        return self.granted + len(self.behind)

    def set_aside(self, slot: Slot, behind: str) -> None:
        """Record that this step lacks a resource."""
        self.behind[slot.job_id, slot.no] = behind
        self.lacking.add(slot.job_id)
        if slot.key and behind != BEHIND_KEY:
            self.passed.add(slot.key)


async def _grant(connection: asyncpg.Connection, line: str) -> int:
    """Grant slots to the first steps in line. Returns how many steps were granted or set aside.

    Returns 0 if another granter is at work.
    """
    async with connection.transaction():
        if not await connection.fetchval(sql("grant_lock")):
            return 0
        await connection.execute(sql("grant_take_line"), line)
        rooms = [await resource.room(connection, line) for resource in RESOURCES]
        turn = await _turn(connection, line, rooms)
        for room in rooms:
            await room.close(connection, is_left=turn.is_left)
        await _again(connection, line, turn)
        return turn.count


async def _advance(connection: asyncpg.Connection) -> bool:
    """Return steps to their lines that changed keys and budgets allow to go. False if another granter is at work.

    This is a separate commit: it locks slots without their jobs, so it must not wait for a job afterwards.
    """
    async with connection.transaction():
        if not await connection.fetchval(sql("grant_lock")):
            return False
        rows = await connection.fetch(sql("grant_take_changes"), CHANGES_MAX, KINDS)
        changes: set[Name] = {(row["kind"], row["name"]) for row in rows}
        for resource in RESOURCES:
            names = sorted(change for change in changes if change[0] in resource.kinds)
            if names:
                changes.difference_update(names)
                changes |= await resource.back(connection, names, SHORT_MAX)
        if changes:
            await note_changes(connection, sorted(changes))
        return True


async def _line(connection: asyncpg.Connection, line: str, limit: int) -> list[Slot]:
    return [Slot(*row) for row in await connection.fetch(sql("grant_line"), line, limit)]


async def _turn(connection: asyncpg.Connection, line: str, rooms: Sequence[Room]) -> _Turn:
    """Grant the first steps in line what they need, while there is enough."""
    turn = _Turn()
    most = min([GRANTS_MAX, *(room.steps for room in rooms if room.steps is not None)])
    # Without room it still reads one step, to know whether to come back.
    limit = most + LOOK_FURTHER if most else 1
    slots = await _line(connection, line, limit)
    turn.is_left = bool(slots)
    if not slots or not most:
        return turn
    free = await _lock_jobs(connection, slots)
    wanted: dict[UUID, set[int]] = {}
    for slot in slots:
        if slot.job_id in free:
            wanted.setdefault(slot.job_id, set()).add(slot.no)
    found = await drafts.load(connection, wanted, lambda plan_hash: read_plan(connection, plan_hash))
    by_job = {draft.job.id: draft for draft in found}
    for room in rooms:
        await room.read(connection, slots)
    turn.is_left = len(slots) >= limit
    for slot in slots:
        if turn.granted >= most:
            turn.is_left = True
            break
        draft = by_job.get(slot.job_id)
        if draft is None:
            turn.is_held_up = turn.is_held_up or slot.job_id not in free
            continue
        lack = _lack(rooms, slot)
        if lack is None:
            draft.source = Granter.name
            if grant(draft, slot.no):
                turn.granted += 1
                for room in rooms:
                    room.use(slot)
        elif lack.behind is not None:
            turn.set_aside(slot, lack.behind)
        else:
            turn.is_left = True
            break
    await drafts.write(connection, found)
    await _set_aside(connection, line, rooms, turn, free)
    return turn


def _lack(rooms: Sequence[Room], slot: Slot) -> Lack | None:
    """Return the first resource that the step lacks, or None."""
    for room in rooms:
        lack = room.lack(slot)
        if lack is not None:
            return lack
    return None


async def _set_aside(
    connection: asyncpg.Connection, line: str, rooms: Sequence[Room], turn: _Turn, free: set[UUID]
) -> None:
    """Remove the steps that lack a resource from the line, with other steps of their jobs that lack one too."""
    if turn.behind and turn.is_left:
        for slot in await _line(connection, line, SHORT_MAX):
            if slot.job_id in turn.lacking and slot.job_id in free:
                lack = _lack(rooms, slot)
                if lack is not None and lack.behind is not None:
                    turn.set_aside(slot, lack.behind)
    for behind in sorted(set(turn.behind.values())):
        places = sorted(place for place, why in turn.behind.items() if why == behind)
        await connection.execute(sql("grant_behind"), [job for job, _ in places], [no for _, no in places], behind)


async def _lock_jobs(connection: asyncpg.Connection, slots: Sequence[Slot]) -> set[UUID]:
    """Lock the steps' jobs and skip jobs that are locked already. If all are, wait for the first."""
    ids = sorted({slot.job_id for slot in slots})
    free = {row["id"] for row in await connection.fetch(sql("grant_jobs"), ids)}
    if not free:
        free = {slots[0].job_id}
        await drafts.lock(connection, free)
    return free


async def _again(connection: asyncpg.Connection, line: str, turn: _Turn) -> None:
    """Record the work that remains, for the next turn of any granter."""
    changes: list[Name] = [(BEHIND_KEY, key) for key in sorted(turn.passed)]
    is_full = turn.granted >= GRANTS_MAX
    if turn.is_held_up or ((is_full or turn.behind) and turn.is_left):
        changes.append((LINE, line))
    if changes:
        await note_changes(connection, changes)
