"""Budgets: how much a job, a recipe or a caller may spend; and what a job's attempts cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Path
from pydantic import BeforeValidator
from starlette.responses import Response

from windlass.api.guard import Caller, Has, JobId, RequestId, guard, guarded_router
from windlass.api.own import owned_job
from windlass.api.wire.external import (
    BudgetDocument,
    BudgetList,
    BudgetRequest,
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


BudgetScope = Annotated[Literal["job", "recipe", "caller"], Path(description="Of what.")]
Name = Annotated[str, BeforeValidator(_name), Path(description="A job's id, a recipe's or a caller's name.")]


@router.get("/budgets", operation_id="budgets.list", response_model=BudgetList, summary="List budgets")
@guard(Scope.ADMIN)
async def list_budgets(parts: Has) -> BudgetList:
    """Every budget, with what was spent and what is reserved."""
    return BudgetList.model_construct(items=[budget_document(one) for one in await budgets.list(parts.db)])


@router.get(
    "/budgets/{scope}/{name:path}",
    operation_id="budgets.get",
    response_model=BudgetDocument,
    summary="Look at a budget",
)
@guard(Scope.ADMIN, codes=("not_found", "bad_input"))
async def get(scope: BudgetScope, name: Name, parts: Has) -> BudgetDocument:
    """One budget."""
    found = await budgets.get(parts.db, scope, _spelled(scope, name))
    if found is None:
        raise _unknown(scope, name)
    return budget_document(found)


@router.put(
    "/budgets/{scope}/{name:path}", operation_id="budgets.set", response_model=BudgetDocument, summary="Set a budget"
)
@guard(Scope.ADMIN, operation="write", codes=("not_found", "bad_input", "too_large", "bad_media"))
async def put(
    scope: BudgetScope, name: Name, wish: BudgetRequest, caller: Caller, parts: Has, request_id: RequestId
) -> BudgetDocument:
    """Steps that wait for money go on at once if this is more than it was. What was spent before counts."""
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
async def remove(scope: BudgetScope, name: Name, caller: Caller, parts: Has, request_id: RequestId) -> None:
    """Without one there is no limit."""
    name = _spelled(scope, name)
    if await budgets.get(parts.db, scope, name) is None:
        raise _unknown(scope, name)
    await parts.audit.note(None, AuditEvent.BUDGET_REMOVED, caller, request_id=request_id, scope=scope, name=name)
    await budgets.remove(parts.db, scope, name)


@router.get("/jobs/{job_id}/costs", operation_id="jobs.costs", response_model=Costs, summary="What a job cost")
@guard(Scope.JOBS_READ, codes=("not_found",))
async def costs(job_id: JobId, caller: Caller, parts: Has) -> Costs:
    """Money, tokens and seconds of each attempt that told them, and the job's own budget."""
    job = await owned_job(parts, caller, job_id)
    found = await costs_of(parts.db, job_id)
    plan = await plan_of(parts.db, job.plan)
    return costs_document(found, plan, await budgets.get(parts.db, JOB, str(job_id)))


def _unknown(scope: str, name: str) -> NotFound:
    return NotFound(f"there is no budget of {scope} {name}", remedy="GET /budgets lists them")


def _spelled(scope: str, name: str) -> str:
    """A job's id has one spelling."""
    if scope != JOB:
        return name
    try:
        return str(UUID(name))
    except ValueError:
        raise NotFound("there is no such job") from None
