"""The audit on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from windlass.api.wire.wire import Id, Instant, Sought, Text, Time, Told
from windlass.core.caller import CallerType
from windlass.documents.key import record_values
from windlass.pure.audit import AuditEvent, Record

PAGE_MAX = 500
NO_MAX = 2**63 - 1
HEAD = r"^[0-9a-fA-F]{64}$"


class AuditQuery(Sought):
    """Which records to return, and where to start."""

    caller: Text | None = None
    event: Text | None = None
    job_id: Id | None = None
    since: Instant | None = None
    until: Instant | None = None
    order: Literal["asc", "desc"] = Field(default="asc", description="`desc`: the newest first.")
    after: int = Field(default=0, ge=0, le=NO_MAX, description="The number of the last known record.")
    before: int | None = Field(default=None, ge=1, le=NO_MAX, description="With `desc`: `next` of the last page.")
    limit: int = Field(default=100, ge=1, le=PAGE_MAX)

    @model_validator(mode="after")
    def _has_one_place(self) -> AuditQuery:
        if (self.before is not None and self.order == "asc") or (self.after and self.order == "desc"):
            raise ValueError("`after` goes with the order asc, `before` with desc")
        return self


class VerifyQuery(Sought):
    """Where to start, and a digest that was recorded elsewhere."""

    after: int = Field(default=0, ge=0, le=NO_MAX, description="`next` of the last response.")
    head: Annotated[str, Field(pattern=HEAD)] | None = Field(
        default=None, description="A hash of the newest record that was noted earlier: the chain must contain it."
    )


class RecordDocument(Told):
    """An action and its caller."""

    no: int
    at: Time
    event: AuditEvent
    caller: str | None
    caller_type: CallerType | None
    tier: str | None
    job_id: UUID | None
    request_id: str | None
    payload: Any
    hash: str


class AuditPage(Told):
    """Records in the requested order. Send `next` as `after`, or with `desc` as `before`, to continue."""

    items: list[RecordDocument]
    next: int | None


class Verdict(Told):
    """Whether the chain is intact, as far as it was read."""

    is_good: bool
    checked: int
    head: str | None = Field(description="The hash of the last record that was read. Store it outside of the database.")
    flaw_no: int | None
    flaw: str | None
    next: int | None = Field(description="Send it as `after` to continue; null at the end of the chain.")


def record_document(record: Record, digest: bytes) -> RecordDocument:
    """Return a record's document."""
    return RecordDocument.model_construct(**record_values(record, digest))
