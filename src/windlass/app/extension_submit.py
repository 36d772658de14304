"""Submits jobs for extensions: for a caller of their routes, or for the installation's caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from windlass.app.windlass import Windlass
from windlass.engine.recipes import NamedPlans
from windlass.engine.submit import Accepted, Submission
from windlass.engine.submitter import Submitter
from windlass.extension.facade import Submit
from windlass.pure.argument import check_labels
from windlass.recipe.schema import check_inputs


def submitting(windlass: Windlass, clock: Callable[[], float]) -> Submit:
    """Return the function by which extensions of this process submit jobs. Concurrent submits share commits."""
    plans = NamedPlans(windlass.db, clock)
    submitter = Submitter(windlass.db, windlass.observer, clock)

    async def submit(
        recipe: str,
        inputs: Mapping[str, Any],
        *,
        caller: str | None,
        labels: Mapping[str, str] | None,
        key: str | None,
        priority: int,
        correlation_id: str | None,
    ) -> Accepted:
        check_labels(labels)
        plan = await plans.latest(recipe)
        job_id = windlass.ids.new()
        return await submitter.submit(
            Submission(
                plan=plan,
                inputs=check_inputs(plan, inputs),
                job_id=job_id,
                caller=caller if caller is not None else windlass.settings.caller,
                idempotency_key=key,
                labels=labels,
                priority=priority,
                correlation_id=correlation_id or (str(job_id) if windlass.is_served else None),
            )
        )

    return submit
