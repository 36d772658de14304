"""Streams on the wire: where one begins, and the ticket that opens one."""

from __future__ import annotations

from pydantic import Field

from windlass.api.topics import TEXT_MAX
from windlass.api.wire.wire import Asked, Id, Sought, Text, Time, Told

_AFTER = "The id of the last event that is known. The header `Last-Event-ID` wins over it."
_TICKET = "In place of a key: a ticket from POST /stream-tickets."


class StreamQuery(Sought):
    """From where on a stream is told."""

    after: str | None = Field(default=None, max_length=255, description=_AFTER)
    ticket: str | None = Field(default=None, max_length=255, description=_TICKET)
    # Where a browser's EventSource is imitated, the header comes as this.
    last_event_id: str | None = Field(default=None, alias="lastEventId", max_length=255, description=_AFTER)


class JobsStreamQuery(StreamQuery):
    """From where on, and whose jobs."""

    caller: Text | None = Field(
        default=None, description="Whose jobs; only an admin may name another, or `*` for everybody."
    )


class ConsoleStreamQuery(Sought):
    """What a console follows."""

    topics: str = Field(
        max_length=TEXT_MAX,
        description="`jobs` and `job:<id>` in a list with commas, each with `@` and its place if it has one; up to 64. "
        "The header `Last-Event-ID` wins over it.",
        examples=["jobs,job:0199a1b2-0000-7000-8000-000000000000@57"],
    )
    ticket: str | None = Field(default=None, max_length=255, description=_TICKET)


class TicketRequest(Asked):
    """Which stream a ticket is for."""

    job_id: Id | None = Field(default=None, description="One job's; else the ticket opens any one stream.")


class Ticket(Told):
    """A right to open one stream, once: `?ticket=…`."""

    ticket: str
    expires_at: Time
