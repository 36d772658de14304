"""Budgets: how much a job, a recipe or a caller may spend, and the cost of a job's attempts."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Path
from pydantic import BeforeValidator
from starlette.responses import Response

from windlass.api.guard import Caller, Has, JobId, RequestId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.wire.external import (
    BudgetDocument,
    BudgetList,
    BudgetRequest,
    BudgetScope,
    Costs,
    budget_document,
    costs_document,
)
from windlass.api.wire.wire import TEXT_MAX, storable
from windlass.core.caller import Scope
from windlass.core.errors import NotFound
from windlass.engine import budgets
from windlass.pure.audit import AuditEvent
from windlass.store.plans import plan_of
from windlass.views.costs import costs_of

router = guarded_router("budgets")
JOB = "job"


def _name(value: Any) -> str:
    try:
        if isinstance(value, str) and 0 < len(value) <= TEXT_MAX:
            return storable(value)
    except ValueError:
        pass
    raise NotFound("there is no such budget")


ScopePath = Annotated[BudgetScope, Path(description="Of what.")]
Name = Annotated[str, BeforeValidator(_name), Path(description="A job's id, a recipe's or a caller's name.")]


@router.get("/budgets", operation_id="budgets.list", response_model=BudgetList, summary="List budgets")
@guard(Scope.ADMIN)
async def list_budgets(parts: Has) -> BudgetList:
    """Returns every budget, with the amounts spent and reserved."""
    return BudgetList.model_construct(items=[budget_document(one) for one in await budgets.list(parts.db)])


@router.get(
    "/budgets/{scope}/{name:path}",
    operation_id="budgets.get",
    response_model=BudgetDocument,
    summary="Get a budget",
)
@guard(Scope.ADMIN, codes=("not_found", "bad_input"))
async def get(scope: ScopePath, name: Name, parts: Has) -> BudgetDocument:
    """Returns one budget."""
    found = await budgets.get(parts.db, scope, _spelled(scope, name))
    if found is None:
        raise _unknown(scope, name)
    return budget_document(found)


@router.put(
    "/budgets/{scope}/{name:path}", operation_id="budgets.set", response_model=BudgetDocument, summary="Set a budget"
)
@guard(Scope.ADMIN, operation="write", codes=("not_found", "bad_input", "too_large", "bad_media"))
async def put(
    scope: ScopePath, name: Name, wish: BudgetRequest, caller: Caller, parts: Has, request_id: RequestId
) -> BudgetDocument:
    """Sets a budget. A higher budget lets waiting steps start at once. Earlier spending counts."""
    name = _spelled(scope, name)
    await parts.audit.note(
        None, AuditEvent.BUDGET_SET, caller, request_id=request_id, scope=scope, name=name, most=str(wish.most)
    )
    return budget_document(await budgets.set(parts.db, scope, name, wish.most))


@router.delete(
    "/budgets/{scope}/{name:path}",
    operation_id="budgets.remove",
    status_code=204,
    response_class=Response,
    summary="Remove a budget",
)
@guard(Scope.ADMIN, operation="write", codes=("not_found", "bad_input"))
async def remove(scope: ScopePath, name: Name, caller: Caller, parts: Has, request_id: RequestId) -> None:
    """Removes a budget. Without a budget there is no limit."""
    name = _spelled(scope, name)
    if await budgets.get(parts.db, scope, name) is None:
        raise _unknown(scope, name)
    await parts.audit.note(None, AuditEvent.BUDGET_REMOVED, caller, request_id=request_id, scope=scope, name=name)
    await budgets.remove(parts.db, scope, name)


@router.get("/jobs/{job_id}/costs", operation_id="jobs.costs", response_model=Costs, summary="Get the costs of a job")
@guard(Scope.JOBS_READ, codes=("not_found",))
async def costs(job_id: JobId, caller: Caller, parts: Has) -> Costs:
    """Returns the money, tokens and seconds of each attempt that reported them, and the job's own budget."""
    job = await owned_job(parts, caller, job_id)
    found = await costs_of(parts.db, job_id)
    plan = await plan_of(parts.db, job.plan)
    return costs_document(found, plan, await budgets.get(parts.db, JOB, str(job_id)))


def _unknown(scope: str, name: str) -> NotFound:
    return NotFound(f"there is no budget of {scope} {name}", remedy="GET /budgets lists them")


def _spelled(scope: str, name: str) -> str:
    """Return the name in its canonical spelling: a job's id has only one."""
    if scope != JOB:
        return name
    try:
        return str(UUID(name))
    except ValueError:
        raise NotFound("there is no such job") from None
