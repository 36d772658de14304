"""The worker processes."""

from __future__ import annotations

from windlass.api.guard import Has, guard, guarded_router
from windlass.api.wire.key import WorkerList, worker_document
from windlass.core.caller import Scope
from windlass.views import gauge
from windlass.views import workers as worker_views

router = guarded_router("workers")


@router.get("/workers", operation_id="workers.list", response_model=WorkerList, summary="List workers")
@guard(Scope.ADMIN)
async def list_workers(parts: Has) -> WorkerList:
    """Returns every worker with the steps that it holds.

    A worker whose lease expired is lost, and its steps run elsewhere.
    """
    found = await worker_views.listing(parts.db)
    at_work = await worker_views.at_work(parts.db)
    now = await gauge.now(parts.db)
    return WorkerList.model_construct(
        items=[worker_document(view, at_work.get(view.id, []), now) for view in found],
        engines=await gauge.engines(parts.db),
        as_of=now,
    )
