"""Work that others do, at a database: providers, budgets, costs, events for jobs. See `Desk`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from windlass.app.windlass import Windlass
from windlass.cli import wire
from windlass.core.errors import NotFound
from windlass.engine import budgets, signals
from windlass.store.plans import plan_of
from windlass.views import costs, providers
from windlass.views.read import job as read_job


class LocalOutside:
    """Of a database."""

    _windlass: Windlass

    async def send_event(self, job_id: UUID, name: str, body: Any, id: str | None) -> str:
        """Send a job an event."""
        windlass = self._windlass
        own = id or str(windlass.ids.new())
        return await signals.send(windlass.db, job_id, name, body, id=own, sender=windlass.settings.caller)

    async def providers(self) -> list[dict[str, Any]]:
        """Every provider."""
        return [wire.provider_json(view) for view in await providers.views(self._windlass.db)]

    async def budgets(self) -> list[dict[str, Any]]:
        """Every budget."""
        return [wire.budget_json(view) for view in await budgets.list(self._windlass.db)]

    async def set_budget(self, scope: str, name: str, most: Decimal) -> dict[str, Any]:
        """Say how much may be spent."""
        return wire.budget_json(await budgets.set(self._windlass.db, scope, name, most))

    async def remove_budget(self, scope: str, name: str) -> None:
        """Lift a limit."""
        if not await budgets.remove(self._windlass.db, scope, name):
            raise NotFound(f"there is no budget of {scope} {name}", remedy="`windlass budgets list` shows them")

    async def costs(self, job_id: UUID) -> dict[str, Any]:
        """What a job's attempts cost."""
        db = self._windlass.db
        plan = await plan_of(db, (await read_job(db, job_id)).plan)
        found = await costs.costs_of(db, job_id)
        budget = await budgets.get(db, "job", str(job_id))
        names = [plan.nodes[one.node].name + ("" if one.index is None else f"[{one.index}]") for one in found]
        items = [wire.cost_json(one, name) for one, name in zip(found, names, strict=True)]
        return wire.costs_json(items, budget)
