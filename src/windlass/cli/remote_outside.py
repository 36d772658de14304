"""Work that others do, at a server. Apart from what a database does, so that local commands need no HTTP client."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from windlass.cli import wire
from windlass.client import outside, views
from windlass.client.async_client import AsyncClient
from windlass.client.exchange import Means


class RemoteOutside:
    """Of a server."""

    _client: AsyncClient
    _means: Means

    async def send_event(self, job_id: UUID, name: str, body: Any, id: str | None) -> str:
        """Send a job an event."""
        return await self._client.job(job_id).send_event(name, body, id=id)

    async def providers(self) -> list[dict[str, Any]]:
        """Every provider."""
        return [wire.provider_json(view) for view in await self._client.providers()]

    async def budgets(self) -> list[dict[str, Any]]:
        """Every budget."""
        return [wire.budget_json(view) for view in await self._client.budgets()]

    async def set_budget(self, scope: str, name: str, most: Decimal) -> dict[str, Any]:
        """Say how much may be spent."""
        return wire.budget_json(await self._client.set_budget(scope, name, most))

    async def remove_budget(self, scope: str, name: str) -> None:
        """Lift a limit."""
        await self._client.remove_budget(scope, name)

    async def costs(self, job_id: UUID) -> dict[str, Any]:
        """What a job's attempts cost."""
        found: views.CostsView = await self._client.run(outside.costs(self._means, job_id))
        return wire.costs_json([wire.cost_json(one, one.step) for one in found.items], found.budget, found)
