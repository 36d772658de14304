"""The audit on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from pydantic import Field, model_validator

from windlass.api.wire.wire import Id, Instant, Sought, Text, Time, Told
from windlass.pure.audit import Record

PAGE_MAX = 500
NO_MAX = 2**63 - 1
HEAD = r"^[0-9a-fA-F]{64}$"


class AuditQuery(Sought):
    """Which records, and from where on."""

    caller: Text | None = None
    event: Text | None = None
    job_id: Id | None = None
    since: Instant | None = None
    until: Instant | None = None
    order: Literal["asc", "desc"] = Field(default="asc", description="`desc` for the newest first.")
    after: int = Field(default=0, ge=0, le=NO_MAX, description="The number of the last record that is known.")
    before: int | None = Field(default=None, ge=1, le=NO_MAX, description="With `desc`: `next` of the page before.")
    limit: int = Field(default=100, ge=1, le=PAGE_MAX)

    @model_validator(mode="after")
    def _has_one_place(self) -> AuditQuery:
        if (self.before is not None and self.order == "asc") or (self.after and self.order == "desc"):
            raise ValueError("`after` goes with the order asc, `before` with desc")
        return self


class VerifyQuery(Sought):
    """From where on, and what was noted elsewhere."""

    after: int = Field(default=0, ge=0, le=NO_MAX, description="`next` of the answer before.")
    head: Annotated[str, Field(pattern=HEAD)] | None = Field(
        default=None, description="The hash of the newest record as it was noted elsewhere: it must be in the chain."
    )


class RecordDocument(Told):
    """Something that was done, and by whom."""

    no: int
    at: Time
    event: str
    caller: str | None
    caller_type: str | None
    tier: str | None
    job_id: UUID | None
    request_id: str | None
    payload: Any
    hash: str


class AuditPage(Told):
    """Records in the order that was asked for; `next` is where to go on: as `after`, or with `desc` as `before`."""

    items: list[RecordDocument]
    next: int | None


class Verdict(Told):
    """Whether the chain holds, as far as it was read."""

    is_good: bool
    checked: int
    head: str | None = Field(description="The hash of the last record that was read; note it elsewhere.")
    flaw_no: int | None
    flaw: str | None
    next: int | None = Field(description="Give it as `after` to go on; none when the end was reached.")


def record_document(record: Record, digest: bytes) -> RecordDocument:
    """A record's document."""
    return RecordDocument.model_construct(
        no=record.no,
        at=record.at,
        event=record.event,
        caller=record.caller,
        caller_type=record.caller_type,
        tier=record.tier,
        job_id=record.job_id,
        request_id=record.request_id,
        payload=msgspec.json.decode(record.payload),
        hash=digest.hex(),
    )
