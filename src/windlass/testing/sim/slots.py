"""Checks the slots after every commit that touched them: no limit is exceeded, and every row has its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.draft import Step
from windlass.core.hold import Hold
from windlass.core.plan import Plan
from windlass.core.slot import SlotState, slot_state
from windlass.core.states import StepState
from windlass.core.wait import Wait
from windlass.testing.sim.log import Log

_SLOTS = (
    "SELECT s.*, p.concurrency, p.paused_until > windlass.clock() AS is_busy, windlass.clock() AS now"
    " FROM windlass.slots s LEFT JOIN windlass.providers p ON p.name = s.provider ORDER BY s.job_id, s.no"
)
_STEPS = (
    "SELECT s.job_id, s.no, s.node, s.index, s.state, s.waiting_for, s.holds, j.plan, j.is_paused"
    " FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id"
    " WHERE s.state IN ('HELD', 'QUEUED', 'RUNNING', 'PARKED') AND j.plan = ANY($1)"
)
_BUDGETS = (
    "SELECT b.*,"
    " (SELECT coalesce(sum(s.cost), 0) FROM windlass.slots s WHERE s.state = 'HELD'"
    "  AND CASE b.scope WHEN 'caller' THEN b.name = s.caller WHEN 'recipe' THEN b.name = s.recipe"
    "  ELSE b.name = ANY(s.jobs) END) AS held,"
    " (SELECT coalesce(sum(c.amount), 0) FROM windlass.costs c JOIN windlass.jobs j ON j.id = c.job_id"
    "  WHERE CASE b.scope WHEN 'caller' THEN b.name = j.caller WHEN 'recipe' THEN b.name = j.recipe"
    "  ELSE b.name = ANY(windlass.lineage(j.id)) END) AS paid"
    " FROM windlass.budgets b ORDER BY b.scope, b.name"
)
# How often everything is checked, and not only the held slots.
_THOROUGH_EVERY = 4
_COMPLAINTS_MAX = 20


class Watch:
    """Remembers the slots of the last commit, and reports violations of the current commit."""

    def __init__(self, connection: asyncpg.Connection, log: Log, plans: list[Plan]) -> None:
        self._connection = connection
        self._log = log
        self._plans = {plan.hash: plan for plan in plans if plan.is_slotted}
        # The steps that hold a slot, and the fence of each step's last holding.
        self._held: set[tuple[UUID, int]] = set()
        self._fences: dict[tuple[UUID, int], int] = {}
        self._paid_before: dict[tuple[str, str], Decimal] = {}
        self._looks = 0
        # When each provider's slots were granted.
        self.grants: dict[str, list[datetime]] = {}

    @staticmethod
    def is_touched(statement: str) -> bool:
        """Tell whether a statement may change the slots."""
        return "windlass.slots" in statement or "windlass.budgets" in statement or "windlass.costs" in statement

    async def look(self) -> None:
        """Check the slots after a commit."""
        if len(self._log.violations) > _COMPLAINTS_MAX:
            return
        rows = await self._connection.fetch(_SLOTS)
        self._limits(rows)
        paying = self._granted(rows)
        self._looks += 1
        is_thorough = self._looks % _THOROUGH_EVERY == 0
        if is_thorough:
            await self._reasons(rows)
        if is_thorough or paying:
            await self._money(paying)

    def _say(self, text: str) -> None:
        self._log.violations.append(text)

    def _limits(self, rows: list[Any]) -> None:
        held = [row for row in rows if row["state"] == SlotState.HELD]
        places = {row["provider"]: row["concurrency"] or 1 for row in rows}
        by_provider: Counter[str] = Counter()
        by_key: Counter[str] = Counter()
        for row in held:
            # A step that takes more slots than the provider has takes all of them.
            by_provider[row["provider"]] += min(row["places"], places[row["provider"]])
            by_key[row["key"]] += row["takes"]
        for provider, count in by_provider.items():
            if provider and count > places[provider]:
                self._say(f"{provider} has {places[provider]} places, and {count} are held")
        most = {row["key"]: row["most"] for row in rows}
        for key, count in by_key.items():
            if key and count > most[key]:
                self._say(f"of key {key} there are {most[key]}, and {count} are held")

    def _granted(self, rows: list[Any]) -> set[tuple[str, str]]:
        """Return the budgets of the newly granted steps."""
        paying: set[tuple[str, str]] = set()
        held = {(row["job_id"], row["no"]) for row in rows if row["state"] == SlotState.HELD}
        for row in rows:
            place = (row["job_id"], row["no"])
            if place in held - self._held:
                self.grants.setdefault(row["provider"], []).append(row["now"])
                if row["fence"] <= self._fences.get(place, 0):
                    self._say(f"{place} was granted what it needs with fence {row['fence']}, which it had before")
                self._fences[place] = row["fence"]
                if row["is_busy"]:
                    self._say(f"{place} was granted a place at {row['provider']}, which is busy")
                if row["cost"] is not None:
                    paying |= {("caller", row["caller"]), ("recipe", row["recipe"])}
                    paying |= {("job", job) for job in row["jobs"]}
        self._held = held
        return paying

    async def _reasons(self, rows: list[Any]) -> None:
        wanted: dict[tuple[UUID, int], SlotState | None] = {}
        for row in await self._connection.fetch(_STEPS, list(self._plans)):
            step = Step(row["no"], row["node"], row["index"], StepState(row["state"]), 0, 0, 0, 0)
            step.holds = Hold(row["holds"])
            step.wait = Wait.parse(row["waiting_for"]) if step.state is StepState.PARKED else None
            state = slot_state(self._plans[row["plan"]], step)
            if row["is_paused"] and (state is SlotState.WAITING or step.state is StepState.QUEUED):
                self._say(
                    f"step {row['no']} of job {row['job_id']} is {step.state} and not held although its job is paused"
                )
            if state is not None:
                wanted[row["job_id"], row["no"]] = state
        found = {(row["job_id"], row["no"]): row["state"] for row in rows}
        for place in sorted(wanted.keys() | found.keys()):
            if wanted.get(place) != found.get(place):
                self._say(f"the slot of {place} is {found.get(place)}, and should be {wanted.get(place)}")

    async def _money(self, paying: set[tuple[str, str]]) -> None:
        for row in await self._connection.fetch(_BUDGETS):
            name = f"budget {row['scope']} {row['name']}"
            if row["reserved"] != row["held"]:
                self._say(f"{name} has {row['reserved']} reserved, and its steps hold {row['held']}")
            # Costs paid before the budget existed do not count.
            before = self._paid_before.setdefault((row["scope"], row["name"]), row["paid"] - row["spent"])
            if row["spent"] != row["paid"] - before:
                self._say(f"{name} has {row['spent']} spent, and its attempts cost {row['paid'] - before}")
            # Work without a reserved cost may exceed the budget; but then nothing more is granted.
            if (row["scope"], row["name"]) in paying and row["spent"] + row["reserved"] > row["most"]:
                self._say(f"{name} of {row['most']} has {row['spent']} spent and {row['reserved']} reserved")


def too_often(grants: Sequence[datetime], rate: float, burst: int) -> bool:
    """Tell whether the grants of any period exceed the rate."""
    for first, begin in enumerate(grants):
        for count, end in enumerate(grants[first:], 1):
            if count > rate * (end - begin).total_seconds() + burst + 0.001:
                return True
    return False
