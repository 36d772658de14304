"""Streams of a caller's jobs, of one job and of console topics; and tickets for clients that cannot send a key."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import Response

from windlass.api.console_stream import HEARTBEAT_S
from windlass.api.guard import Caller, Has, JobId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.sse import EventStream
from windlass.api.topics import TEXT_MAX, parse_topics
from windlass.api.wire.console import FRAMES
from windlass.api.wire.stream import ConsoleStreamQuery, JobsStreamQuery, StreamQuery, Ticket, TicketRequest
from windlass.core.caller import Role, Scope
from windlass.core.errors import BadRequest, Forbidden

router = guarded_router("streams")
SEQ_MAX = 2**31 - 1
LastEventId = Annotated[str | None, Header(description="The id of the last known event.", max_length=255)]
_FRAMES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events, until the client or the server closes the connection.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
# OpenAPI 3.1 has no schema for the events of a stream, so the extension names a schema for each event.
_CONSOLE_FRAMES: dict[int | str, dict[str, Any]] = {
    200: {
        **_FRAMES[200],
        "x-frames": {name: {"$ref": f"#/components/schemas/{model.__name__}"} for name, model in FRAMES.items()},
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
    """For a browser's EventSource, which cannot send a key. A ticket opens one stream, once, within 60 seconds."""
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
    """Sends all state changes and progress of the caller's jobs, from now on or after the event with the given id.

    Frames: `open`, `job`, and `bye` (reconnect with the last id) or `reset` (the id is older than a restore of the
    database: list the jobs, and continue from the id in this frame).
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
    responses=_CONSOLE_FRAMES,
    summary="Follow the topics of a console",
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
    """Sends several topics as one stream of patches: the changed documents, and for single jobs their events.

    The topic `jobs` has all jobs that the caller may see; `job:<id>` is one of them. Frames: `open`, `patch` (its id is
    the cursor to reconnect with), `reset` (read the topic's snapshot again), `gone` (the topic ended or does not
    exist), `bye`.
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
    """Sends every event of the job, from its first event or after the given number, to its end.

    Frames: `open`, `job` and `step`, then `end` with the job's document; or `bye`: reconnect with the last id.
    """
    await owned_job(parts, caller, job_id)
    after = _number(last_event_id or query.last_event_id or query.after or "0")
    return EventStream(await parts.hub.follow_job(job_id, caller.caller_id, after))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= SEQ_MAX):
        raise BadRequest("this is not the id of a job's event", remedy="Send the number of the stream unchanged")
    return int(text)
