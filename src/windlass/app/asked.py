"""Checks what a program passes to the SDK, so that a slip raises an error of ours which names the argument."""

from __future__ import annotations

from typing import Any

from windlass.core.errors import BadInput
from windlass.core.plan import Plan
from windlass.engine.submit import Webhook
from windlass.pure.argument import check_inputs_mapping, check_labels, check_priority, check_text, shown, wrong


def check_options(
    key: object, labels: object, priority: object, webhook: object, correlation_id: object, inputs: object
) -> None:
    """Refuse options of `submit` that are of another type than they must be."""
    check_priority(priority)
    if key is not None:
        check_text("key", key)
    if labels is not None:
        check_labels(labels)
    if webhook is not None and not isinstance(webhook, Webhook):
        raise wrong("webhook", "a Webhook with a sealed secret", webhook)
    if correlation_id is not None:
        check_text("correlation_id", correlation_id)
    if inputs is not None:
        check_inputs_mapping(inputs)


def plan_of(recipe: Any) -> Plan:
    """The plan of a recipe, or the plan itself."""
    plan = recipe if isinstance(recipe, Plan) else getattr(recipe, "plan", None)
    if not isinstance(plan, Plan):
        remedy = "Decorate the function with @wl.recipe" if callable(recipe) else "Pass a recipe, or the name of one"
        raise BadInput(f"{shown(recipe)} is not a recipe", remedy=remedy)
    return plan
