"""The inputs and outputs of jobs and steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from fastapi import Header, Path
from pydantic import BeforeValidator, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response

from windlass.api.guard import Caller, Has, JobId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.routes.jobs import IfNoneMatch
from windlass.api.tagged import IMMUTABLE, Body, InMemory, ranged, tagged
from windlass.core.caller import Scope
from windlass.core.errors import NotFound, Unavailable
from windlass.store.artifact import Artifacts, Ref
from windlass.store.plans import plan_of
from windlass.views import job_graph
from windlass.views.fan_output import FanOutput
from windlass.views.output_text import output_text
from windlass.views.read import check_output

router = guarded_router("results")
_NO_MAX = 2**31 - 1
_PARTS: dict[int | str, dict[str, Any]] = {
    206: {"description": "The range that was asked for."},
    304: {"description": "It has not changed."},
}


def _number(text: Any) -> int:
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= _NO_MAX:
        return int(text)
    raise NotFound("there is no such step")


StepNo = Annotated[
    int,
    BeforeValidator(_number),
    Path(description="A step's number."),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": _NO_MAX}),
]


@contextmanager
def _in_store() -> Iterator[None]:
    """Turn a missing artifact into Unavailable.

    The fault is the server's, and callers must not learn where the store is.
    """
    try:
        yield
    except NotFound:
        raise Unavailable("the output is not in this server's artifact store") from None


@dataclass(frozen=True, slots=True)
class Stored:
    """An artifact that is read in pieces."""

    artifacts: Artifacts
    ref: Ref

    @property
    def tag(self) -> str:
        """Return the artifact's name, which is the hash of its content."""
        return self.ref.sha256

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return self.ref.size

    async def part(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` on."""
        with _in_store():
            return await self.artifacts.part(self.ref, start, length)


@router.get(
    "/jobs/{job_id}/input",
    operation_id="jobs.input",
    summary="Get a job's inputs",
    responses={304: _PARTS[304]},
)
@guard(Scope.JOBS_READ, codes=("not_found",))
async def inputs(
    request: Request, job_id: JobId, caller: Caller, parts: Has, if_none_match: IfNoneMatch = None
) -> Response:
    """Returns the validated inputs, including defaults."""
    job = await owned_job(parts, caller, job_id)
    return tagged(request, msgspec.json.encode(job.input))


@router.get("/jobs/{job_id}/output", operation_id="jobs.output", summary="Get a job's output", responses=_PARTS)
@guard(
    Scope.JOBS_READ,
    codes=("not_found", "wrong_state", "output_quarantined", "bad_range", "bad_expression", "unavailable"),
)
async def output(
    request: Request,
    job_id: JobId,
    caller: Caller,
    parts: Has,
    range_: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Returns the recipe's output as JSON. A job that is not COMPLETED has none, and gets 409 with its state."""
    job = await owned_job(parts, caller, job_id)
    check_output(job)
    plan = await plan_of(parts.db, job.plan)
    with _in_store():
        body = await output_text(parts.db, parts.artifacts, parts.resolver, job, plan)
        return await ranged(request, body)


@router.get(
    "/jobs/{job_id}/steps/{no}/output", operation_id="jobs.step_output", summary="Get a step's output", responses=_PARTS
)
@guard(Scope.JOBS_READ, codes=("not_found", "wrong_state", "output_quarantined", "bad_range", "unavailable"))
async def step_output(
    request: Request,
    job_id: JobId,
    no: StepNo,
    caller: Caller,
    parts: Has,
    range_: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Returns the step's output as JSON, of any size. A fan-out's output is the list of its children's outputs."""
    await owned_job(parts, caller, job_id)
    found = await job_graph.output_ref(parts.db, parts.artifacts, job_id, no)
    body: Body = found if isinstance(found, FanOutput) else _body(parts.artifacts, found)
    with _in_store():
        return await ranged(request, body, cache=IMMUTABLE)


def _body(artifacts: Artifacts, found: Ref | bytes) -> Body:
    return InMemory(found) if isinstance(found, bytes) else Stored(artifacts, found)
