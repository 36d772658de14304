"""The rows of those who stand in line, and the money that they have reserved or spent.

Every row follows from its step (`core.slot.slot_state`) and is written in the commit of the step's own move, under the
job's row lock. What a budget has reserved is the sum of the costs of the rows that are HELD; both change in one commit,
so neither can leak. Whatever may let someone else go on is noted for the granter (`slot_changes`), in that commit too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.bell import GrantDue
from windlass.core.draft import Draft, Step
from windlass.core.outcome import Cost
from windlass.core.slot import SlotState, slot_state
from windlass.core.states import StepState
from windlass.store.statements import sql

NOTHING = Decimal(0)
# Of one key at most this many stand at the front of a provider's line.
FRONT_MAX = 100


@dataclass(slots=True)
class _Want:
    """A row as it is to be; no state, no row."""

    draft: Draft
    step: Step
    state: SlotState | None

    @property
    def place(self) -> tuple[UUID, int]:
        return self.draft.job.id, self.step.no


@dataclass(slots=True)
class _Money:
    """What is added to each budget's spent and reserved, by scope and name; most of them do not exist."""

    deltas: dict[tuple[str, str], tuple[Decimal, Decimal]] = field(default_factory=dict)

    def add(self, row: Any, spent: Decimal, reserved: Decimal) -> None:
        for budget in budgets_of(row):
            before = self.deltas.get(budget, (NOTHING, NOTHING))
            self.deltas[budget] = (before[0] + spent, before[1] + reserved)


def has_lines(draft: Draft) -> bool:
    """Whether writing the draft may change a line or what was spent."""
    return draft.plan.is_slotted or bool(draft.costs)


def budgets_of(row: Any) -> tuple[tuple[str, str], ...]:
    """The scopes and names of the budgets that a row of slots or costs is charged to, if they exist."""
    return ("caller", row["caller"]), *(("job", job) for job in row["jobs"]), ("recipe", row["recipe"])


async def write_lines(connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
    """Write what follows from these drafts. Their jobs' rows are locked and the steps are written."""
    wants = sorted(_wants(drafts), key=lambda want: (want.draft.job.id.bytes, want.step.no))
    changes: set[tuple[str, str]] = set()
    money = _Money()
    left: list[Any] = []
    slotted = [draft for draft in drafts if draft.plan.is_slotted]
    swept = [draft.job.id for draft in slotted if draft.sweep]
    if swept:
        left += await connection.fetch(sql("slot_sweep"), swept)
    old: dict[tuple[UUID, int], Any] = {}
    if wants:
        rows = await connection.fetch(sql("slot_lock"), *_columns([want.place for want in wants]))
        old = {(row["job_id"], row["no"]): row for row in rows}
    # Most steps that end before they were routed have no row, and need none.
    wants = [want for want in wants if want.state is not None or want.place in old]
    moved = [want for want in wants if want.place in old and old[want.place]["state"] != want.state]
    left += [old[want.place] for want in moved if not _is_granted(want)]
    for row in left:
        changes |= _freed(row)
        if row["state"] == SlotState.HELD and row["cost"] is not None:
            money.add(row, NOTHING, -row["cost"])
    changes |= {_joined(want, old.get(want.place)) for want in wants if want.state is SlotState.WAITING}
    await _write(connection, wants, old, changes, money)
    await _write_costs(connection, drafts, wants, old, money)
    await _write_money(connection, money)


async def note_changes(connection: asyncpg.Connection, changes: Sequence[tuple[str, str]]) -> None:
    """Have the granter look at these lines: kinds and names."""
    await connection.execute(sql("slot_change"), *_columns(changes))
    connection.ring(GrantDue())


def _wants(drafts: Iterable[Draft]) -> Iterable[_Want]:
    for draft in drafts:
        if not draft.plan.is_slotted or draft.sweep:
            continue
        for step in draft.changed.values():
            node = draft.plan.nodes[step.node]
            if not node.is_slotted or (node.each is not None and not step.is_child):
                continue
            if step.state not in (StepState.BLOCKED, StepState.READY):
                yield _Want(draft, step, slot_state(draft.plan, step))


def _is_granted(want: _Want) -> bool:
    """Whether that lets nobody else go on: all that its key has room for are at the front already."""
    return want.state is SlotState.HELD and want.draft.plan.nodes[want.step.node].limit <= FRONT_MAX


def _freed(row: Any) -> set[tuple[str, str]]:
    """What may have become free now that a row is no longer what it was."""
    freed = {("key", row["key"])} if row["key"] else set()
    if row["state"] == SlotState.HELD and row["provider"]:
        freed.add(("provider", row["provider"]))
    return freed


def _joined(want: _Want, old: Any) -> tuple[str, str]:
    key = want.draft.keys.get(want.step.no) or (old["key"] if old is not None else "")
    return ("key", key) if key else ("provider", want.draft.plan.nodes[want.step.node].provider)


async def _write(
    connection: asyncpg.Connection,
    wants: Sequence[_Want],
    old: dict[tuple[UUID, int], Any],
    changes: set[tuple[str, str]],
    money: _Money,
) -> None:
    if not wants:
        if changes:
            await note_changes(connection, sorted(changes))
        return
    nodes = [want.draft.plan.nodes[want.step.node] for want in wants]
    rows = await connection.fetch(
        sql("slot_write"),
        *_columns([want.place for want in wants]),
        [want.state for want in wants],
        [node.provider for node in nodes],
        [want.draft.keys.get(want.step.no) for want in wants],
        [node.limit for node in nodes],
        [None if node.cost is None else Decimal(str(node.cost)) for node in nodes],
        *(_columns(sorted(changes)) if changes else ([], [])),
    )
    if changes:
        connection.ring(GrantDue())
    was_held = {place for place, row in old.items() if row["state"] == SlotState.HELD}
    for row in rows:
        if (row["job_id"], row["no"]) not in was_held:
            money.add(row, NOTHING, row["cost"])


async def _write_costs(
    connection: asyncpg.Connection,
    drafts: Sequence[Draft],
    wants: Sequence[_Want],
    old: dict[tuple[UUID, int], Any],
    money: _Money,
) -> None:
    told: dict[tuple[UUID, int, int], tuple[str, Decimal, int, int, float, bool]] = {}
    for draft in drafts:
        for step, cost in draft.costs:
            place = (draft.job.id, step.no, step.attempt)
            provider = cost.provider or draft.plan.nodes[step.node].provider
            told[place] = _sum(told.get(place), cost, provider)
    for want in wants:
        row = old.get(want.place)
        place = (*want.place, want.step.attempt)
        # What a step was expected to cost is taken for what it did cost, unless somebody says so.
        if row is not None and row["cost"] and want.step.state is StepState.COMPLETED and place not in told:
            told[place] = (row["provider"], row["cost"], 0, 0, 0.0, True)
    if not told:
        return
    places = sorted(told, key=lambda place: (place[0].bytes, *place[1:]))
    columns = _columns([(*place, *told[place]) for place in places])
    columns[3] = [provider or None for provider in columns[3]]
    for row in await connection.fetch(sql("cost_put"), *columns):
        money.add(row, row["amount"], NOTHING)


def _sum(
    before: tuple[str, Decimal, int, int, float, bool] | None, cost: Cost, provider: str
) -> tuple[str, Decimal, int, int, float, bool]:
    _, amount, tokens_in, tokens_out, seconds, _ = before or ("", NOTHING, 0, 0, 0.0, False)
    return (
        provider,
        amount + Decimal(cost.amount),
        tokens_in + cost.tokens_in,
        tokens_out + cost.tokens_out,
        seconds + cost.seconds,
        False,
    )


async def _write_money(connection: asyncpg.Connection, money: _Money) -> None:
    deltas = {budget: delta for budget, delta in money.deltas.items() if any(delta)}
    if not deltas:
        return
    rows = await connection.fetch(sql("budget_lock"), *_columns(sorted(deltas)))
    found = [(row["scope"], row["name"]) for row in rows]
    if found:
        values = _columns([(*budget, *deltas[budget]) for budget in found])
        if await connection.fetchval(sql("budget_add"), *values):
            connection.ring(GrantDue())


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
