"""Documents about external work: providers, budgets, costs."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from windlass.core.plan import Plan
from windlass.engine.budgets import BudgetView
from windlass.views.costs import CostView
from windlass.views.providers import ProviderView

COSTS_MAX = 1_000


def provider_values(view: ProviderView) -> dict[str, Any]:
    """Return the fields of a provider's document."""
    first = view.first
    return {
        "name": view.name,
        "concurrency": view.concurrency,
        "rate": view.rate,
        "held": view.held,
        "waiting": view.waiting,
        "holders": [
            {"job_id": one.job_id, "step": one.step, "attempt": one.attempt, "since": one.since} for one in view.holders
        ],
        "first": None if first is None else {"job_id": first.job_id, "step": first.step, "since": first.since},
        "breaker": view.breaker,
        "failures": view.failures,
        "error": view.error,
        "paused_until": view.paused_until,
        "free_at": view.free_at,
    }


def budget_values(view: BudgetView) -> dict[str, Any]:
    """Return the fields of a budget's document."""
    return {
        "scope": view.scope,
        "name": view.name,
        "most": view.most,
        "spent": view.spent,
        "reserved": view.reserved,
        "left": max(view.most - view.spent - view.reserved, Decimal(0)),
    }


def costs_values(found: Sequence[CostView], plan: Plan, budget: BudgetView | None) -> dict[str, Any]:
    """Return the fields of the document of the costs of a job's attempts."""
    return {
        "total": sum((one.amount for one in found), Decimal(0)),
        "tokens_in": sum(one.tokens_in for one in found),
        "tokens_out": sum(one.tokens_out for one in found),
        "seconds": float(sum(one.seconds for one in found)),
        "items": [_cost(one, plan) for one in found[:COSTS_MAX]],
        "is_more": len(found) > COSTS_MAX,
        "budget": None if budget is None else budget_values(budget),
    }


def _cost(one: CostView, plan: Plan) -> dict[str, Any]:
    name = plan.nodes[one.node].name
    return {
        "no": one.no,
        "step": name if one.index is None else f"{name}[{one.index}]",
        "attempt": one.attempt,
        "provider": one.provider,
        "amount": one.amount,
        "tokens_in": one.tokens_in,
        "tokens_out": one.tokens_out,
        "seconds": one.seconds,
        "at": one.at,
    }
