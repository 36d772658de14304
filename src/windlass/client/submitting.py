# Made from async_submitting.py by scripts/unasync.py: edit that file, then run the script.
"""The methods that submit jobs, with one signature for the client and the SDK.

A new option is a keyword of `submit` and `submit_many` here. It keeps its name in the body of a request and as a field
of the engine's submission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from windlass.client.order import Money, Order, Time, joined

R = TypeVar("R", contravariant=True)
J = TypeVar("J", covariant=True)


class Submitting(Generic[R, J]):
    """Submits jobs. `R` is the type of a recipe argument, and `J` is the handle of a job."""

    def submit(
        self,
        recipe: R,
        /,
        *,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        deadline: Time | None = None,
        ttl: Time | None = None,
        version: int | None = None,
        webhook: tuple[str, str] | None = None,
        budget: Money | None = None,
        correlation_id: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        **more_inputs: Any,
    ) -> J:
        """Make a job durably and return its handle. The same `key` returns the same job, or raises Conflict if the
        body differs.

        A recipe's inputs are keywords. Inputs whose names are options of this method go into `inputs`. A `webhook` is
        an address that is notified of the job's end, and the secret that signs the notification. The steps of the job
        spend at most its `budget`. Its events carry the `correlation_id`. Concurrent calls share commits.
        """
        order: Order = {
            "labels": labels, "priority": priority, "deadline": deadline, "ttl": ttl, "version": version,
            "webhook": webhook, "budget": budget, "correlation_id": correlation_id,
        }  # fmt: skip
        return self._submit(recipe, order, joined(inputs, more_inputs), key)

    def submit_many(
        self,
        recipe: R,
        /,
        inputs: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        deadline: Time | None = None,
        ttl: Time | None = None,
        version: int | None = None,
        webhook: tuple[str, str] | None = None,
        budget: Money | None = None,
        correlation_id: str | None = None,
    ) -> list[J]:
        """Make a job per element of `inputs`, up to a thousand per commit. A refusal is raised after the other jobs
        are made.

        With one of `keys` per element, the call can be repeated safely.
        """
        order: Order = {
            "labels": labels, "priority": priority, "deadline": deadline, "ttl": ttl, "version": version,
            "webhook": webhook, "budget": budget, "correlation_id": correlation_id,
        }  # fmt: skip
        return self._submit_many(recipe, order, inputs, keys)

    def _submit(self, recipe: R, order: Order, inputs: Mapping[str, Any], key: str | None) -> J:
        raise NotImplementedError

    def _submit_many(
        self, recipe: R, order: Order, inputs: Sequence[Mapping[str, Any]], keys: Sequence[str] | None
    ) -> list[J]:
        raise NotImplementedError
