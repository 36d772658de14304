"""The granter lets those go on who stand in line: for a provider's place, for a key's, for money.

One granter works at a time, whichever process it is in; the others find the lock taken and leave it to that one. Only
a granter makes a slot HELD, so what it counts can only shrink under it, and no limit is ever exceeded. It need not
poll: whoever leaves or joins a line, or gives money back, says so in the same commit (`slot_changes`); and a provider
that may be asked again at some time has that time in its row (`grant_at`).

    changes of keys, budgets ──► who comes to the front of which line ──► changes of providers
    changes of providers     ──► the first in line, as many as may go ──► QUEUED, HELD, one commit

Those who cannot go, because their key is full or the money is short, are taken out of the line's index until that
changes. So a turn reads about as many rows as it grants, however many wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Self
from uuid import UUID

import asyncpg

from windlass.core.bell import GrantDue
from windlass.core.gate import Gate
from windlass.core.slot import grant
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.provider_gate import gate_of, opened_at
from windlass.store.slots import FRONT_MAX, budgets_of, note_changes
from windlass.store.statements import sql

CHANGES_MAX = 1_000
GRANTS_MAX = 200
# A line is read a little further than there is room: some jobs are being written to, some steps are short of money.
LOOK_FURTHER = 20
# Of those who are short of money, so many are set aside or taken back at once.
SHORT_MAX = 1_000

Budget = tuple[str, str]


class Granter(EngineDuty):
    """See the module."""

    name = "granter"
    bells = (GrantDue,)
    due = Due("due_granter")

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """The duty, from what the engine has."""
        return cls(engine.db)

    async def run_once(self) -> Done:
        """Look at every line that has changed or whose time has come; grants at most GRANTS_MAX in each."""
        todo = await self._db.run(lambda connection: connection.fetchrow(sql("grant_todo")))
        providers = set(todo["providers"])
        if todo["has_keys"]:
            if not await self._db.run(_advance):
                return Done(0)
            todo = await self._db.run(lambda connection: connection.fetchrow(sql("grant_todo")))
            providers |= set(todo["providers"])
        count = 0
        is_more = bool(todo["has_keys"])
        for provider in sorted(providers):
            handled = await self._db.run(partial(_grant, provider=provider))
            count += handled
            is_more |= handled >= GRANTS_MAX
        return Done(count, is_more)


@dataclass(slots=True)
class _Turn:
    """What one look at a line came to."""

    granted: int = 0
    # Whether some could not be looked at, as someone was writing to their jobs; whether others wait who could go.
    is_held_up: bool = False
    is_left: bool = False
    behind: dict[tuple[UUID, int], str] = field(default_factory=dict)
    # Of each job that is short of money, for what and of which budget.
    short: dict[UUID, tuple[Decimal | None, Budget]] = field(default_factory=dict)
    # The keys of those who are short of money: the next of the key may have enough.
    passed: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many it was decided about."""
        return self.granted + len(self.behind)

    def set_short(self, row: Any, budget: Budget) -> None:
        """There is not enough for this one, so neither for others of its job that cost as much."""
        self.behind[row["job_id"], row["no"]] = ":".join(budget)
        self.short.setdefault(row["job_id"], (row["cost"], budget))
        if row["key"]:
            self.passed.add(row["key"])

    def is_short(self, row: Any) -> Budget | None:
        """The budget of which another of its job is short for no more than this one costs."""
        cost, budget = self.short.get(row["job_id"], (None, None))
        if budget is None or cost is None or row["cost"] is None:
            return budget if row["cost"] == cost else None
        return budget if row["cost"] >= cost else None


async def _grant(connection: asyncpg.Connection, provider: str) -> int:
    """Let the first of this line go; how many went, or turned out to be unable to. 0 if another granter is at work."""
    async with connection.transaction():
        if not await connection.fetchval(sql("grant_lock")):
            return 0
        await connection.execute(sql("grant_take_line"), provider)
        if not provider:
            has_budgets = await connection.fetchval(sql("grant_has_budgets"))
            turn = await _turn(connection, provider, GRANTS_MAX, has_budgets=has_budgets)
            await _again(connection, provider, turn, is_full=turn.granted >= GRANTS_MAX)
            return turn.count
        row = await _provider(connection, provider)
        gate, now = gate_of(row), row["now"]
        places = row["concurrency"] - row["held"]
        room = max(0, min(places, gate.room(now), GRANTS_MAX))
        # Even with no room one looks whether anybody waits, so as to know when to come back.
        turn = await _turn(connection, provider, room, has_budgets=row["has_budgets"])
        await _write_gate(connection, provider, gate.taken(turn.granted, now), turn, _later(gate, turn, places, now))
        await _again(connection, provider, turn, is_full=turn.granted >= GRANTS_MAX)
        return turn.count


async def _advance(connection: asyncpg.Connection) -> bool:
    """Bring to the front whom changed keys and budgets let go on; False if another granter is at work.

    This is a commit of its own: it locks slots without their jobs, so it must not wait for a job afterwards.
    """
    async with connection.transaction():
        if not await connection.fetchval(sql("grant_lock")):
            return False
        rows = await connection.fetch(sql("grant_take_changes"), CHANGES_MAX)
        changes = sorted({(row["kind"], row["name"]) for row in rows})
        keys = {name for kind, name in changes if kind == "key"}
        lines: set[str] = set()
        for budget in (change for change in changes if change[0] != "key"):
            for row in await _refunded(connection, budget):
                if row["key"]:
                    keys.add(row["key"])
                else:
                    lines.add(row["provider"])
        if keys:
            await connection.execute(sql("grant_front"), sorted(keys), FRONT_MAX)
        if lines:
            names = sorted(lines)
            await note_changes(connection, [("provider", name) for name in names])
        return True


async def _refunded(connection: asyncpg.Connection, budget: Budget) -> list[Any]:
    """Those who waited for this budget and can be paid now."""
    [found] = await connection.fetch(sql("budget_lock"), [budget[0]], [budget[1]]) or [None]
    rows: list[Any] = await connection.fetch(sql("grant_short"), ":".join(budget), SHORT_MAX)
    is_cut = len(rows) >= SHORT_MAX
    if found is not None:
        money = _Money({budget: found})
        rows = [row for row in rows if money.takes(budget, row["cost"])]
    if rows and is_cut:
        # More steps may wait behind this batch, and the budget's change was taken with it.
        await note_changes(connection, [budget])
    if rows:
        await connection.execute(sql("grant_back"), [row["job_id"] for row in rows], [row["no"] for row in rows])
    return rows


class _Money:
    """What is left of each budget that exists, while it is being given out."""

    def __init__(self, found: Mapping[Budget, Any]) -> None:
        self._left = {budget: row["most"] - row["spent"] - row["reserved"] for budget, row in found.items()}

    def takes(self, budget: Budget, cost: Decimal | None) -> bool:
        """Take the cost from the budget if it has so much; what costs nobody knows how much needs that any is left."""
        if budget not in self._left:
            return True
        if self._left[budget] <= 0 if cost is None else self._left[budget] < cost:
            return False
        self._left[budget] -= cost or 0
        return True

    def short(self, row: Any) -> Budget | None:
        """The first budget that has not enough for the row; None if all have, and then they are charged."""
        cost = row["cost"]
        for budget in budgets_of(row):
            left = self._left.get(budget)
            if left is not None and (left <= 0 if cost is None else left < cost):
                return budget
        for budget in budgets_of(row):
            self.takes(budget, cost)
        return None


async def _provider(connection: asyncpg.Connection, name: str) -> Any:
    row = await connection.fetchrow(sql("provider_gate"), name)
    if row is None:
        # A recipe may name a provider before any process has declared it.
        await connection.execute(sql("provider_make"), name)
        row = await connection.fetchrow(sql("provider_gate"), name)
    return row


async def _turn(connection: asyncpg.Connection, provider: str, room: int, *, has_budgets: bool) -> _Turn:
    """Grant up to `room` of the first in line."""
    turn = _Turn()
    limit = room + LOOK_FURTHER if room else 1
    rows = await connection.fetch(sql("grant_line"), provider, limit)
    turn.is_left = bool(rows)
    if not rows or not room:
        return turn
    free = await _lock_jobs(connection, rows)
    wanted: dict[UUID, set[int]] = {}
    for row in rows:
        if row["job_id"] in free:
            wanted.setdefault(row["job_id"], set()).add(row["no"])
    found = await drafts.load(connection, wanted, lambda plan_hash: read_plan(connection, plan_hash))
    by_job = {draft.job.id: draft for draft in found}
    held = await _keys(connection, rows)
    money = await _money(connection, rows) if has_budgets else _Money({})
    turn.is_left = len(rows) >= limit
    for row in rows:
        draft = by_job.get(row["job_id"])
        if turn.granted >= room:
            turn.is_left = True
            break
        if draft is None:
            turn.is_held_up = turn.is_held_up or row["job_id"] not in free
            continue
        if row["key"] and not held.has_room(row):
            turn.behind[row["job_id"], row["no"]] = "key"
        elif (short := money.short(row)) is not None:
            turn.set_short(row, short)
        else:
            draft.source = Granter.name
            if grant(draft, row["no"]):
                turn.granted += 1
                if row["key"]:
                    held.add(row)
    await drafts.write(connection, found)
    if turn.short and turn.is_left:
        for row in await connection.fetch(sql("grant_line"), provider, SHORT_MAX):
            if row["job_id"] in free and (budget := turn.is_short(row)) is not None:
                turn.set_short(row, budget)
    for behind in sorted(set(turn.behind.values())):
        places = sorted(place for place, why in turn.behind.items() if why == behind)
        await connection.execute(sql("grant_behind"), [job for job, _ in places], [no for _, no in places], behind)
    return turn


async def _lock_jobs(connection: asyncpg.Connection, rows: Sequence[Any]) -> set[UUID]:
    """Lock the rows' jobs, but for those that someone is writing to; if that is all of them, wait for the first."""
    ids = sorted({row["job_id"] for row in rows})
    free = {row["id"] for row in await connection.fetch(sql("grant_jobs"), ids)}
    if not free:
        free = {rows[0]["job_id"]}
        await drafts.lock(connection, free)
    return free


class _Keys:
    """Who holds which key, while places are being given out."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._held: dict[str, tuple[int, int | None]] = {row["key"]: (row["held"], row["most"]) for row in rows}

    def has_room(self, row: Any) -> bool:
        """Whether one more may hold the row's key, by its own limit and by those of all who hold it."""
        held, most = self._held[row["key"]]
        limit: int = row["most"]
        return held < (limit if most is None else min(most, limit))

    def add(self, row: Any) -> None:
        """The row's step holds its key now."""
        held, most = self._held[row["key"]]
        self._held[row["key"]] = (held + 1, row["most"] if most is None else min(most, row["most"]))


async def _keys(connection: asyncpg.Connection, rows: Sequence[Any]) -> _Keys:
    keys = sorted({row["key"] for row in rows if row["key"]})
    return _Keys(await connection.fetch(sql("grant_keys"), keys) if keys else [])


async def _money(connection: asyncpg.Connection, rows: Sequence[Any]) -> _Money:
    names = sorted({budget for row in rows for budget in budgets_of(row)})
    scopes = [scope for scope, _ in names]
    found = await connection.fetch(sql("budget_lock"), scopes, [name for _, name in names])
    return _Money({(row["scope"], row["name"]): row for row in found})


def _later(gate: Gate, turn: _Turn, places: int, now: datetime) -> datetime | None:
    """When to look at the line again unasked; None if somebody will say so, or nobody waits."""
    if not turn.is_left or turn.granted >= places:
        return None
    return gate.taken(turn.granted, now).opens_at(now)


async def _write_gate(
    connection: asyncpg.Connection, provider: str, gate: Gate, turn: _Turn, later: datetime | None
) -> None:
    if not turn.granted:
        await connection.execute(sql("provider_later"), provider, later)
        return
    breaker = gate.breaker
    await connection.execute(
        sql("provider_pass"), provider, gate.free_at, breaker.failures, opened_at(breaker), breaker.probes, later
    )


async def _again(connection: asyncpg.Connection, provider: str, turn: _Turn, *, is_full: bool) -> None:
    """What was left undone is looked at in another turn, by whichever granter has it."""
    changes = [("key", key) for key in sorted(turn.passed)]
    if turn.is_held_up or (is_full and turn.is_left) or (turn.behind and turn.is_left):
        changes.append(("provider", provider))
    if changes:
        await note_changes(connection, changes)
