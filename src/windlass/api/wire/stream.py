"""Streams on the wire: where a stream starts, and the ticket that opens it."""

from __future__ import annotations

from pydantic import Field

from windlass.api.topics import TEXT_MAX
from windlass.api.wire.wire import Asked, Id, Sought, Text, Time, Told

_AFTER = "The id of the last known event. The header `Last-Event-ID` has precedence."
_TICKET = "In place of a key: a ticket from POST /stream-tickets."


class StreamQuery(Sought):
    """Where a stream starts."""

    after: str | None = Field(default=None, max_length=255, description=_AFTER)
    ticket: str | None = Field(default=None, max_length=255, description=_TICKET)
    # Polyfills of a browser's EventSource send the header as this parameter.
    last_event_id: str | None = Field(default=None, alias="lastEventId", max_length=255, description=_AFTER)


class JobsStreamQuery(StreamQuery):
    """Where a stream starts, and whose jobs it has."""

    caller: Text | None = Field(
        default=None,
        description="The caller that owns the jobs. Only an admin may name another caller, or `*` for all callers.",
    )


class ConsoleStreamQuery(Sought):
    """The topics that a console follows."""

    topics: str = Field(
        max_length=TEXT_MAX,
        description="`jobs` and `job:<id>` in a list with commas, each with `@` and its place if it has one; up to 64. "
        "The header `Last-Event-ID` wins over it.",
        examples=["jobs,job:0199a1b2-0000-7000-8000-000000000000@57"],
    )
    ticket: str | None = Field(default=None, max_length=255, description=_TICKET)


class TicketRequest(Asked):
    """The stream that a ticket is for."""

    job_id: Id | None = Field(
        default=None, description="The job whose stream the ticket opens. Default: any one stream."
    )


class Ticket(Told):
    """Permission to open one stream, once: `?ticket=…`."""

    ticket: str
    expires_at: Time
