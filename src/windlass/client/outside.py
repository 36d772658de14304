"""Flows about external work: events for jobs, callbacks, providers, budgets, costs. `exchange` defines a flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

from windlass.client.asking import asked, converted, get, send
from windlass.client.exchange import Ask, Flow, Sources
from windlass.client.views import BudgetView, CompletedView, CostsView, ProviderView


def send_event(sources: Sources, job_id: UUID, name: str, body: Any, id: str | None) -> Flow[str]:
    """Send an event to a job and return `delivered`, `kept` or `already`. A retry sends the same event.

    If the first answer is lost, the retry gets `already`, which also means success.
    """
    wish = {"name": name, "body": body, "id": id or sources.new_key()}
    answer = yield from send(sources, "POST", f"/jobs/{job_id}/events", wish)
    return str(answer["status"])


def complete(sources: Sources, job_id: UUID, wish: Mapping[str, Any]) -> Flow[CompletedView]:
    """Report on external work. A repeated report changes nothing."""
    given = {name: value for name, value in wish.items() if value is not None}
    if wish["status"] == "success":
        given["result"] = wish.get("result")
    return converted((yield from send(sources, "POST", f"/jobs/{job_id}/complete", given)), CompletedView)


def costs(sources: Sources, job_id: UUID) -> Flow[CostsView]:
    """Return the costs of a job's attempts."""
    return converted((yield from get(sources, f"/jobs/{job_id}/costs")), CostsView)


def providers(sources: Sources) -> Flow[list[ProviderView]]:
    """Return every provider."""
    return converted((yield from get(sources, "/providers"))["items"], list[ProviderView])


def provider(sources: Sources, name: str) -> Flow[ProviderView]:
    """Return one provider."""
    return converted((yield from get(sources, f"/providers/{quote(name, safe='')}")), ProviderView)


def budgets(sources: Sources) -> Flow[list[BudgetView]]:
    """Return every budget."""
    return converted((yield from get(sources, "/budgets"))["items"], list[BudgetView])


def set_budget(sources: Sources, scope: str, name: str, most: str) -> Flow[BudgetView]:
    """Set a budget's limit."""
    return converted((yield from send(sources, "PUT", _budget(scope, name), {"most": most})), BudgetView)


def remove_budget(sources: Sources, scope: str, name: str) -> Flow[None]:
    """Remove a budget."""
    yield from asked(sources, Ask("DELETE", _budget(scope, name)))


def _budget(scope: str, name: str) -> str:
    return f"/budgets/{quote(scope, safe='')}/{quote(name, safe='')}"
