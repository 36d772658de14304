"""What went into a job and what came out of it."""

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
from windlass.api.own import owned_job
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
    304: {"description": "It is what is known already."},
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
    """What a job names and its store does not have is our trouble; where the store is, is nobody's business."""
    try:
        yield
    except NotFound:
        raise Unavailable("the output is not in the artifact store that this server was given") from None


@dataclass(frozen=True, slots=True)
class Stored:
    """An artifact, in pieces."""

    artifacts: Artifacts
    ref: Ref

    @property
    def tag(self) -> str:
        """Its name, which is its content's."""
        return self.ref.sha256

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.ref.size

    async def part(self, start: int, length: int) -> bytes:
        """Some of them."""
        with _in_store():
            return await self.artifacts.part(self.ref, start, length)


@router.get(
    "/jobs/{job_id}/input",
    operation_id="jobs.input",
    summary="A job's inputs",
    responses={304: _PARTS[304]},
)
@guard(Scope.JOBS_READ, codes=("not_found",))
async def inputs(
    request: Request, job_id: JobId, caller: Caller, parts: Has, if_none_match: IfNoneMatch = None
) -> Response:
    """The inputs as they were checked, with defaults filled in."""
    job = await owned_job(parts, caller, job_id)
    return tagged(request, msgspec.json.encode(job.input))


@router.get("/jobs/{job_id}/output", operation_id="jobs.output", summary="A job's output", responses=_PARTS)
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
    """What the recipe returned, as JSON. A job that is not COMPLETED has none: 409 says where it stands."""
    job = await owned_job(parts, caller, job_id)
    check_output(job)
    plan = await plan_of(parts.db, job.plan)
    with _in_store():
        body = await output_text(parts.db, parts.artifacts, parts.resolver, job, plan)
        return await ranged(request, body)


@router.get(
    "/jobs/{job_id}/steps/{no}/output", operation_id="jobs.step_output", summary="A step's output", responses=_PARTS
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
    """What the step returned, as JSON, however large it is. A fan-out returns the list of its children's outputs."""
    await owned_job(parts, caller, job_id)
    found = await job_graph.output_ref(parts.db, parts.artifacts, job_id, no)
    body: Body = found if isinstance(found, FanOutput) else _body(parts.artifacts, found)
    with _in_store():
        return await ranged(request, body, cache=IMMUTABLE)


def _body(artifacts: Artifacts, found: Ref | bytes) -> Body:
    return InMemory(found) if isinstance(found, bytes) else Stored(artifacts, found)
