"""Converts the arguments of the SDK for the engine. A wrong argument raises an error that names it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from windlass.client.order import Money, Order, Time
from windlass.core.errors import BadInput
from windlass.core.plan import Plan
from windlass.engine.submit import Webhook
from windlass.pure.argument import shown
from windlass.recipe.duration import duration_s


def plan_of(recipe: Any) -> Plan:
    """Return the plan of a recipe, or the plan itself."""
    plan = recipe if isinstance(recipe, Plan) else getattr(recipe, "plan", None)
    if not isinstance(plan, Plan):
        remedy = "Decorate the function with @wl.recipe" if callable(recipe) else "Pass a recipe or its name"
        raise BadInput(f"{shown(recipe)} is not a recipe", remedy=remedy)
    return plan


async def submit_options(windlass: Any, order: Order) -> dict[str, Any]:
    """Return the options of a submission for the engine: times in seconds, the budget as an amount, secrets sealed."""
    options = dict(order)
    webhook = options.pop("webhook", None)
    options.pop("version", None)
    deadline, ttl, budget = (options.pop(name, None) for name in ("deadline", "ttl", "budget"))
    return {
        **options,
        "deadline_s": _seconds(deadline, "deadline"),
        "ttl_s": _seconds(ttl, "ttl"),
        "budget": _budget(budget),
        "webhook": None if webhook is None else await _webhook(windlass, *webhook),
    }


def _budget(value: Money | None) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except InvalidOperation:
        raise BadInput(f"the budget is an amount of money, not {value!r}") from None


def _seconds(value: Time | None, name: str) -> float | None:
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) else duration_s(value, name)
    if seconds <= 0:
        raise BadInput(f"{name} must be longer than 0")
    return seconds


async def _webhook(windlass: Any, url: str, secret: str) -> Webhook:
    """Check the webhook's address, seal its secret, and return the webhook to store."""
    from windlass.app.first_key import served_secret
    from windlass.outbound.send import Sender
    from windlass.pure.webhook import parse_secret

    plain = parse_secret(secret)
    await Sender(is_loopback_allowed=windlass.settings.webhook_loopback).check(url)
    return Webhook(url, (await served_secret(windlass)).seal(plain))
