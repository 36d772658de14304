"""Writes the slots of steps, which record waiting and held resources, and the costs of attempts.

Every row follows from its step (`core.slot.slot_state`). The commit of the step's move writes it, under the job's row
lock. The same commit tells every resource (`store/resources`) which rows became HELD and which no longer are. So
nothing can leak. It also notes for the granter (`slot_changes`) every change that may release another step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.bell import GrantDue
from windlass.core.draft import Draft, Step
from windlass.core.effect import Charge, UseKey
from windlass.core.outcome import Cost
from windlass.core.slot import BEHIND_KEY, Name, Slot, SlotState, slot_state
from windlass.core.states import StepState
from windlass.store.resources.keys import FRONT_MAX
from windlass.store.resources.registry import LINE, RESOURCES
from windlass.store.statements import sql

NOTHING = Decimal(0)


@dataclass(slots=True)
class _Move:
    """The new state of the slot of a step; None deletes its row."""

    draft: Draft
    step: Step
    state: SlotState | None
    # The concurrency key, if this draft assigned it.
    key: str | None

    @property
    def step_id(self) -> tuple[UUID, int]:
        """The key of the row: the job and the number of the step."""
        return self.draft.job.id, self.step.no


class SlotWriter:
    """Writes slots, costs and budgets (store/writers.py)."""

    def touches(self, draft: Draft) -> bool:
        """Return whether writing the draft may change a slot or the spent money."""
        if draft.is_slotted and (draft.is_swept or any(_is_lined(draft, step) for step in draft.changed.values())):
            return True
        return bool(draft.effects_of(Charge))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Write the slots and costs that follow from these drafts."""
        await write_slots(connection, drafts)


def _is_lined(draft: Draft, step: Step) -> bool:
    """Return whether the step may have a row: its node needs a slot, and the router has resolved the step."""
    node = draft.plan.nodes[step.node]
    if not node.is_slotted or (node.each is not None and not step.is_child):
        return False
    return step.state not in (StepState.BLOCKED, StepState.READY)


async def write_slots(connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
    """Write the slots and costs that follow from these drafts. The jobs' rows are locked and the steps are written."""
    moves = sorted(_moves(drafts), key=lambda move: (move.draft.job.id.bytes, move.step.no))
    left: list[Any] = []
    swept = [draft.job.id for draft in drafts if draft.plan.is_slotted and draft.is_swept]
    if swept:
        left += await connection.fetch(sql("slot_lock_all"), swept)
    old: dict[tuple[UUID, int], Any] = {}
    if moves:
        rows = await connection.fetch(sql("slot_lock"), *_columns([move.step_id for move in moves]))
        old = {(row["job_id"], row["no"]): row for row in rows}
    # Most steps that end before the router resolved them have no row, and need none.
    moves = [move for move in moves if move.state is not None or move.step_id in old]
    changed = [move for move in moves if move.step_id in old and old[move.step_id]["state"] != move.state]
    left += [old[move.step_id] for move in changed if not _is_granted(move)]
    changes = {_joined(move, old.get(move.step_id)) for move in moves if move.state is SlotState.WAITING}
    for row in left:
        changes |= _freed(row)
    await _give(connection, left, await _write_costs(connection, drafts, moves, old))
    if swept:
        await connection.execute(sql("slot_sweep"), swept)
    taken = await _write(connection, moves, old, changes)
    if taken:
        for resource in RESOURCES:
            await resource.take(connection, taken)


async def note_changes(connection: asyncpg.Connection, changes: Sequence[Name]) -> None:
    """Make the granter check these lines and returned resources, given as kinds and names."""
    await connection.execute(sql("slot_change"), *_columns(changes))
    connection.ring(GrantDue())


def _moves(drafts: Iterable[Draft]) -> Iterable[_Move]:
    for draft in drafts:
        if not draft.plan.is_slotted or draft.is_swept:
            continue
        keys = {used.no: used.key for used in draft.effects_of(UseKey)}
        for step in draft.changed.values():
            if _is_lined(draft, step):
                yield _Move(draft, step, slot_state(draft.plan, step), keys.get(step.no))


def _is_granted(move: _Move) -> bool:
    """Return whether a grant releases no other step: all steps that fit into its key are at the front already."""
    return move.state is SlotState.HELD and move.draft.plan.nodes[move.step.node].limit <= FRONT_MAX


def _freed(row: Any) -> set[Name]:
    """Return the resources that may have become free after a row changed."""
    freed = {(BEHIND_KEY, row["key"])} if row["key"] else set()
    if row["state"] == SlotState.HELD and row["provider"]:
        freed.add((LINE, row["provider"]))
    return freed


def _key(move: _Move, old: Any) -> str:
    """Return the step's key: the router's new key, or the stored key."""
    return move.key or (old["key"] if old is not None else "")


def _joined(move: _Move, old: Any) -> Name:
    key = _key(move, old)
    return (BEHIND_KEY, key) if key else (LINE, move.draft.plan.nodes[move.step.node].provider)


async def _give(connection: asyncpg.Connection, left: Sequence[Any], costs: Sequence[Any]) -> None:
    """Tell the resources about returned holdings and the costs of attempts."""
    given = {(row["job_id"], row["no"]): Slot(*row[:-1]) for row in left if row["state"] == SlotState.HELD}
    for cost in costs:
        place = (cost["job_id"], cost["no"])
        # A step that keeps its holding, or holds nothing, gives back nothing but has spent.
        slot = given.get(place) or Slot(*place, 0, "", 0, "", 0, 0, None, cost["caller"], cost["recipe"], cost["jobs"])
        given[place] = slot._replace(spent=slot.spent + cost["amount"])
    if given:
        slots = list(given.values())
        for resource in RESOURCES:
            await resource.give(connection, slots)


async def _write(
    connection: asyncpg.Connection,
    moves: Sequence[_Move],
    old: dict[tuple[UUID, int], Any],
    changes: set[Name],
) -> list[Slot]:
    """Write the rows; return the slots that became HELD."""
    joining: list[_Move] = []
    moved: dict[SlotState, list[tuple[UUID, int]]] = {SlotState.HELD: [], SlotState.IDLE: []}
    for move in moves:
        # If an existing row does not wait from now on, only its state changes.
        if move.state is None or move.state is SlotState.WAITING or move.step_id not in old:
            joining.append(move)
        elif old[move.step_id]["state"] != move.state:
            moved[move.state].append(move.step_id)
    for state, places in moved.items():
        if places:
            await connection.execute(sql("slot_move"), *_columns(places), state)
    granted = [Slot(*old[place][:-1]) for place in moved[SlotState.HELD]]
    taken = [slot._replace(fence=slot.fence + 1) for slot in granted]
    if joining:
        taken += await _join(connection, joining, old, changes)
    elif changes:
        await note_changes(connection, sorted(changes))
    return taken


async def _join(
    connection: asyncpg.Connection, moves: Sequence[_Move], old: dict[tuple[UUID, int], Any], changes: set[Name]
) -> list[Slot]:
    """Insert, update and delete rows; return the new rows that are HELD."""
    nodes = [move.draft.plan.nodes[move.step.node] for move in moves]
    rows = await connection.fetch(
        sql("slot_write"),
        *_columns([move.step_id for move in moves]),
        [move.state for move in moves],
        [node.provider for node in nodes],
        [_key(move, old.get(move.step_id)) for move in moves],
        [node.limit for node in nodes],
        [None if node.cost is None else Decimal(str(node.cost)) for node in nodes],
        [node.places for node in nodes],
        [node.takes for node in nodes],
        *(_columns(sorted(changes)) if changes else ([], [])),
    )
    if changes:
        connection.ring(GrantDue())
    return [Slot(*row) for row in rows]


async def _write_costs(
    connection: asyncpg.Connection,
    drafts: Sequence[Draft],
    moves: Sequence[_Move],
    old: dict[tuple[UUID, int], Any],
) -> Sequence[Any]:
    """Write the costs of attempts; return each cost with the budgets that it is charged to."""
    told: dict[tuple[UUID, int, int], tuple[str, Decimal, int, int, float, bool]] = {}
    for draft in drafts:
        for charge in draft.effects_of(Charge):
            place = (draft.job.id, charge.no, charge.attempt)
            told[place] = _sum(told.get(place), charge.cost, charge.provider)
    for move in moves:
        row = old.get(move.step_id)
        place = (*move.step_id, move.step.attempt)
        # Without a reported cost, the expected cost of a completed step counts as its cost.
        if row is not None and row["cost"] and move.step.state is StepState.COMPLETED and place not in told:
            told[place] = (row["provider"], row["cost"], 0, 0, 0.0, True)
    if not told:
        return ()
    places = sorted(told, key=lambda place: (place[0].bytes, *place[1:]))
    columns = _columns([(*place, *told[place]) for place in places])
    columns[3] = [provider or None for provider in columns[3]]
    costs: Sequence[Any] = await connection.fetch(sql("cost_put"), *columns)
    return costs


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


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
