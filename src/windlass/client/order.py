"""An order: the options of a submission, under the same names as in the SDK and the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from windlass.core.errors import BadInput
from windlass.pure.argument import check_inputs_mapping, check_labels, check_priority, check_text, wrong

Time = float | str | timedelta
Money = Decimal | float | str
Order: TypeAlias = Mapping[str, Any]

# The server takes the id of the request as the job's correlation id, so it is sent as a header.
CORRELATION = "correlation_id"
# The values of options that an order leaves out.
_USUAL: dict[str, Any] = {"labels": {}, "priority": 0}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


def check_order(order: Order, key: object = None) -> None:
    """Refuse options of a wrong type."""
    check_priority(order.get("priority", 0))
    if key is not None:
        check_text("key", key)
    if (labels := order.get("labels")) is not None:
        check_labels(labels)
    if (correlation_id := order.get(CORRELATION)) is not None:
        check_text(CORRELATION, correlation_id)
    webhook = order.get("webhook")
    if webhook is not None and not (isinstance(webhook, tuple | list) and len(webhook) == 2):
        raise wrong("webhook", "a URL and a secret", webhook)


def body_of(recipe: object, order: Order, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the request for one job, without options that have their default values."""
    check_text("recipe", recipe)
    check_inputs_mapping(inputs)
    told = {name: _told(value) for name, value in order.items() if value is not None and value != _USUAL.get(name)}
    if "webhook" in told:
        told["webhook"] = dict(zip(("url", "secret"), told["webhook"], strict=True))
    told.pop(CORRELATION, None)
    return {"recipe": recipe, "inputs": dict(inputs), **told}


def headers_of(order: Order) -> dict[str, str]:
    """Return the headers of the request."""
    correlation_id = order.get(CORRELATION)
    if correlation_id is None:
        return {}
    if not _REQUEST_ID.fullmatch(correlation_id):
        raise BadInput(f"a {CORRELATION} over HTTP has 1 to 64 letters, digits, and . _ : -")
    return {"x-request-id": correlation_id}


def joined(inputs: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a call: the mapping `inputs`, with the keyword inputs in `more` added."""
    if inputs is not None:
        check_inputs_mapping(inputs)
    return {**(inputs or {}), **more}


def _told(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else value
