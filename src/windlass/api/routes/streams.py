"""Streams: a caller's jobs as they go, one job to its end, and tickets for those who can send no key."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import Response

from windlass.api.console_stream import HEARTBEAT_S
from windlass.api.guard import Caller, Has, JobId, guard, guarded_router
from windlass.api.own import owned_job
from windlass.api.sse import EventStream
from windlass.api.topics import TEXT_MAX, parse_topics
from windlass.api.wire.stream import ConsoleStreamQuery, JobsStreamQuery, StreamQuery, Ticket, TicketRequest
from windlass.core.caller import Role, Scope
from windlass.core.errors import BadRequest, Forbidden

router = guarded_router("streams")
SEQ_MAX = 2**31 - 1
LastEventId = Annotated[str | None, Header(description="The id of the last event that is known.", max_length=255)]
_FRAMES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events, until somebody hangs up.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post(
    "/stream-tickets",
    operation_id="streams.ticket",
    status_code=201,
    response_model=Ticket,
    summary="Get a ticket for a stream",
)
@guard(Scope.JOBS_READ, operation="write", codes=("not_found", "bad_input", "bad_media", "too_large"))
async def ticket(caller: Caller, parts: Has, wish: TicketRequest | None = None) -> Ticket:
    """For a browser's EventSource, which can send no key. A ticket opens one stream, once, within 60 seconds."""
    job_id = wish.job_id if wish is not None else None
    if job_id is not None:
        await owned_job(parts, caller, job_id)
    text, until = await parts.tickets.make(caller, job_id)
    return Ticket(ticket=text, expires_at=until)


@router.get(
    "/jobs/stream",
    operation_id="streams.jobs",
    response_model=None,
    response_class=Response,
    responses=_FRAMES,
    summary="Follow all jobs",
)
@guard(Scope.JOBS_READ, takes_ticket=True, codes=("too_many_streams", "bad_input"))
async def follow_jobs(
    query: Annotated[JobsStreamQuery, Query()], caller: Caller, parts: Has, last_event_id: LastEventId = None
) -> Response:
    """Every change of state and all progress of the caller's jobs, from now on or after the event with the given id.

    Frames: `open`, `job`, and `bye` (come back with the last id) or `reset` (the id is of before the database was
    restored: list the jobs, and go on from the id that comes with it).
    """
    if query.caller not in (None, caller.caller_id) and caller.role is not Role.ADMIN:
        raise Forbidden("only an admin may follow another caller's jobs")
    after = last_event_id or query.last_event_id or query.after
    return EventStream(await parts.hub.follow_caller(caller.caller_id, after, of=query.caller))


@router.get(
    "/console/stream",
    operation_id="streams.console",
    response_model=None,
    response_class=Response,
    responses=_FRAMES,
    summary="Follow what a console shows",
)
@guard(Scope.JOBS_READ, takes_ticket=True, codes=("too_many_streams", "bad_input"))
async def follow_topics(
    query: Annotated[ConsoleStreamQuery, Query()],
    caller: Caller,
    parts: Has,
    last_event_id: Annotated[
        str | None, Header(description="The cursor of the last patch.", max_length=TEXT_MAX)
    ] = None,
) -> Response:
    """Several topics as one stream of patches: documents of what was touched, and for single jobs their events.

    `jobs` are all jobs that the caller may see, `job:<id>` is one of them. Frames: `open`, `patch` (its id is a cursor
    to come back with), `reset` (read the topic's snapshot again), `gone` (a topic that ended or is not there), `bye`.
    """
    stream = await parts.hub.follow_topics(caller, parse_topics(last_event_id or query.topics))
    return EventStream(stream, heartbeat_s=HEARTBEAT_S)


@router.get(
    "/jobs/{job_id}/stream",
    operation_id="streams.job",
    response_model=None,
    response_class=Response,
    responses=_FRAMES,
    summary="Follow a job",
)
@guard(Scope.JOBS_READ, takes_ticket=True, codes=("not_found", "too_many_streams", "bad_input"))
async def follow_job(
    job_id: JobId,
    query: Annotated[StreamQuery, Query()],
    caller: Caller,
    parts: Has,
    last_event_id: LastEventId = None,
) -> Response:
    """Every event of the job, from its first or after the one with the given number, to its end.

    Frames: `open`, `job` and `step`, then `end` with the job's document; or `bye`: come back with the last id.
    """
    await owned_job(parts, caller, job_id)
    after = _number(last_event_id or query.last_event_id or query.after or "0")
    return EventStream(await parts.hub.follow_job(job_id, caller.caller_id, after))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= SEQ_MAX):
        raise BadRequest("that is not the id of an event of a job", remedy="It is a number, as the stream gave it")
    return int(text)
