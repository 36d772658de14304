"""Money: the expected costs of attempts are reserved in every budget that their step is charged to.

A budget's reserved amount is the sum of the costs of its HELD rows; both change in one commit. The amount is stored as
a sum, so `give` checks the rows first and never subtracts a finished holding again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import asyncpg

from windlass.core.bell import GrantDue
from windlass.core.slot import Name, Slot
from windlass.store.resources.port import Lack
from windlass.store.statements import sql

_NOTHING = Decimal(0)
# The amounts to add to the spent and the reserved money of a budget.
_Delta = tuple[Decimal, Decimal]


class MoneyRoom:
    """The rest of each existing budget, during one turn of the granter."""

    steps: int | None = None

    def __init__(self) -> None:
        self._left: dict[Name, Decimal] = {}

    async def read(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Lock the steps' budgets and read their rests."""
        names = sorted({budget for slot in slots if slot.is_charged for budget in slot.budgets})
        if names:
            rows = await connection.fetch(sql("budget_lock"), *_columns(names))
            self._left = {_name(row): row["most"] - row["spent"] - row["reserved"] for row in rows}

    def lack(self, slot: Slot) -> Lack | None:
        """Return the first budget that has too little. A step of unknown cost may start while any money is left."""
        if not self._left:
            return None
        for budget in slot.budgets:
            left = self._left.get(budget)
            if left is not None and (left <= 0 if slot.cost is None else left < slot.cost):
                return Lack(":".join(budget))
        return None

    def use(self, slot: Slot) -> None:
        """Subtract the step's cost from its budgets."""
        if self._left and slot.cost is not None:
            for budget in slot.budgets:
                if budget in self._left:
                    self._left[budget] -= slot.cost

    async def close(self, connection: asyncpg.Connection, *, is_left: bool) -> None:
        """Write nothing: `take` reserves."""


class Money:
    """Reserves the costs of steps in their budgets."""

    kinds: tuple[str, ...] = ("caller", "job", "recipe")

    async def room(self, connection: asyncpg.Connection, line: str) -> MoneyRoom:
        """Return an empty room. The steps name the budgets, not the line."""
        return MoneyRoom()

    async def take(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Reserve the expected costs of the steps."""
        deltas: dict[Name, _Delta] = {}
        for slot in slots:
            if slot.cost is not None:
                _add(deltas, slot, _NOTHING, slot.cost)
        names = await _lock(connection, deltas)
        await _write(connection, {name: deltas[name] for name in names})

    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Return the reserved amounts, and spend the actual costs of the attempts."""
        paid = [slot for slot in slots if slot.cost is not None or slot.spent]
        asked: dict[Name, _Delta] = {}
        for slot in paid:
            _add(asked, slot, slot.spent, -(slot.cost or _NOTHING))
        names = await _lock(connection, asked)
        if not names:
            return
        held = await _held(connection, paid)
        deltas: dict[Name, _Delta] = {}
        for slot in paid:
            cost = slot.cost if (slot.job_id, slot.no, slot.fence) in held else None
            _add(deltas, slot, slot.spent, -(cost or _NOTHING))
        await _write(connection, {name: deltas[name] for name in names})

    async def back(self, connection: asyncpg.Connection, names: Sequence[Name], most: int) -> set[Name]:
        """Put steps that can be paid now back in line, or behind their key. The others wait for what they lack."""
        waiting: list[tuple[Name, Slot]] = []
        cut: set[Name] = set()
        for name in names:
            rows = await connection.fetch(sql("grant_short"), ":".join(name), most)
            waiting += [(name, Slot(*row)) for row in rows]
            cut |= {name} if len(rows) >= most else set()
        room = MoneyRoom()
        await room.read(connection, [slot for _, slot in waiting])
        moved: dict[str | None, list[Slot]] = {}
        again: set[Name] = set()
        for name, slot in waiting:
            lack = room.lack(slot)
            if lack is None:
                room.use(slot)
                again.add(("key", slot.key) if slot.key else ("provider", slot.provider))
            elif lack.behind == ":".join(name):
                continue
            moved.setdefault(None if lack is None else lack.behind, []).append(slot)
            # More steps may wait beyond this batch.
            again |= {name} & cut
        for behind, slots in sorted(moved.items(), key=lambda item: item[0] or ""):
            places = _columns([(slot.job_id, slot.no) for slot in slots])
            if behind is None:
                await connection.execute(sql("grant_back"), *places)
            else:
                await connection.execute(sql("grant_behind"), *places, behind)
        return again


def _add(deltas: dict[Name, _Delta], slot: Slot, spent: Decimal, reserved: Decimal) -> None:
    for budget in slot.budgets:
        before = deltas.get(budget, (_NOTHING, _NOTHING))
        deltas[budget] = (before[0] + spent, before[1] + reserved)


async def _lock(connection: asyncpg.Connection, deltas: Mapping[Name, _Delta]) -> list[Name]:
    """Lock the budgets that change; most of them do not exist."""
    asked = sorted(name for name, delta in deltas.items() if any(delta))
    return [_name(row) for row in await connection.fetch(sql("budget_lock"), *_columns(asked))] if asked else []


async def _held(connection: asyncpg.Connection, slots: Sequence[Slot]) -> set[tuple[Any, int, int]]:
    """Return which of these holdings are held now."""
    holdings = [(slot.job_id, slot.no, slot.fence) for slot in slots if slot.cost is not None]
    rows = await connection.fetch(sql("slot_held"), *_columns(holdings)) if holdings else []
    return {(row["job_id"], row["no"], row["fence"]) for row in rows}


async def _write(connection: asyncpg.Connection, deltas: Mapping[Name, _Delta]) -> None:
    rows = [(*name, *delta) for name, delta in deltas.items() if any(delta)]
    if rows and await connection.fetchval(sql("budget_add"), *_columns(rows)):
        connection.ring(GrantDue())


def _name(row: Any) -> Name:
    return row["scope"], row["name"]


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
