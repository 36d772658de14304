"""Flows about work that others do: events for jobs, callbacks, providers, budgets, costs. See `exchange`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

from windlass.client.asking import asked, converted, get, send
from windlass.client.exchange import Ask, Flow, Means
from windlass.client.views import BudgetView, CompletedView, CostsView, ProviderView


def send_event(means: Means, job_id: UUID, name: str, body: Any, id: str | None) -> Flow[str]:
    """Send a job an event; sent again, it is the same one. Says `delivered`, `kept` or `already`.

    The first answer may be lost: then the second try is told `already`, which is as good.
    """
    wish = {"name": name, "body": body, "id": id or means.new_key()}
    answer = yield from send(means, "POST", f"/jobs/{job_id}/events", wish)
    return str(answer["status"])


def complete(means: Means, job_id: UUID, wish: Mapping[str, Any]) -> Flow[CompletedView]:
    """Report on work that was done elsewhere; sent again, it changes nothing."""
    given = {name: value for name, value in wish.items() if value is not None}
    if wish["status"] == "success":
        given["result"] = wish.get("result")
    return converted((yield from send(means, "POST", f"/jobs/{job_id}/complete", given)), CompletedView)


def costs(means: Means, job_id: UUID) -> Flow[CostsView]:
    """What a job's attempts cost."""
    return converted((yield from get(means, f"/jobs/{job_id}/costs")), CostsView)


def providers(means: Means) -> Flow[list[ProviderView]]:
    """Every provider."""
    return converted((yield from get(means, "/providers"))["items"], list[ProviderView])


def provider(means: Means, name: str) -> Flow[ProviderView]:
    """One provider."""
    return converted((yield from get(means, f"/providers/{quote(name, safe='')}")), ProviderView)


def budgets(means: Means) -> Flow[list[BudgetView]]:
    """Every budget."""
    return converted((yield from get(means, "/budgets"))["items"], list[BudgetView])


def set_budget(means: Means, scope: str, name: str, most: str) -> Flow[BudgetView]:
    """Say how much may be spent."""
    return converted((yield from send(means, "PUT", _budget(scope, name), {"most": most})), BudgetView)


def remove_budget(means: Means, scope: str, name: str) -> Flow[None]:
    """Lift a limit."""
    yield from asked(means, Ask("DELETE", _budget(scope, name)))


def _budget(scope: str, name: str) -> str:
    return f"/budgets/{quote(scope, safe='')}/{quote(name, safe='')}"
