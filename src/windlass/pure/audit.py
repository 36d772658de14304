"""The audit records, and the hash chain that reveals a changed, removed or inserted record.

A record's hash covers the record and the hash before it. A change of one record requires new hashes for all later
records. The newest hash then differs from the hash that was noted elsewhere.

The hashed bytes can be reproduced in any language: each field in order as `length:bytes,` (a netstring), or `-,` if
there is none; numbers in decimal; the time in UTC as `2030-01-31T23:59:59.123456Z`; an id in its usual spelling; the
payload exactly as the stored text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec

# The hash before the first record.
GENESIS = bytes(32)


class AuditEvent(StrEnum):
    """The kinds of audit records."""

    JOB_SUBMITTED = "job_submitted"
    JOB_COMPLETED = "job_completed"
    JOB_FAILED = "job_failed"
    JOB_CANCELLED = "job_cancelled"
    JOB_CONTROLLED = "job_controlled"
    JOB_DELETED = "job_deleted"
    BULK_APPLIED = "bulk_applied"
    RATE_LIMIT_HIT = "rate_limit_hit"
    AUTH_REJECTED = "auth_rejected"
    KEY_CREATED = "key_created"
    KEY_REVOKED = "key_revoked"
    CALLER_ADOPTED = "caller_adopted"
    WEBHOOK_REDELIVERED = "webhook_redelivered"
    WEBHOOK_DEAD = "webhook_dead"
    PROVIDER_EVENT_APPLIED = "provider_event_applied"
    BUDGET_SET = "budget_set"
    BUDGET_REMOVED = "budget_removed"
    CONSOLE_SIGNED_IN = "console_signed_in"
    CONSOLE_SIGNED_OUT = "console_signed_out"
    DEMO_WORKER_KILLED = "demo_worker_killed"
    TIMELINE_CHANGED = "timeline_changed"
    POLICY_PUBLISHED = "policy_published"
    POLICY_ROLLED_BACK = "policy_rolled_back"
    POLICY_BYPASSED = "policy_bypassed"
    KERNEL_SET = "kernel_set"
    APPROVAL_VOTED = "approval_voted"
    APPROVAL_USED = "approval_used"


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded action. `payload` is JSON text, stored unchanged."""

    no: int
    at: datetime
    event: str
    caller: str | None
    caller_type: str | None
    tier: str | None
    job_id: UUID | None
    request_id: str | None
    payload: str


@dataclass(frozen=True, slots=True)
class Flaw:
    """The first position at which the chain is broken."""

    no: int
    reason: str


def payload_text(payload: Mapping[str, Any]) -> str:
    """Return the stored text of a payload; equal payloads give equal texts."""
    return msgspec.json.encode(payload, order="sorted").decode()


def canonical(record: Record) -> bytes:
    """Return the bytes of a record that are hashed."""
    fields = (
        str(record.no),
        record.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        record.event,
        record.caller,
        record.caller_type,
        record.tier,
        None if record.job_id is None else str(record.job_id),
        record.request_id,
        record.payload,
    )
    return b"".join(b"-," if field is None else _netstring(field.encode()) for field in fields)


def chain_hash(before: bytes, record: Record) -> bytes:
    """Return the record's hash, given the hash of the record before it."""
    return sha256(before + canonical(record)).digest()


def verify(records: Iterable[tuple[Record, bytes]], before: bytes, first_no: int) -> Flaw | None:
    """Return the first record that does not fit the chain, or None."""
    for no, (record, stored) in enumerate(records, first_no):
        if record.no != no:
            return Flaw(no, f"record {no} is missing: record {record.no} is in its place")
        before = chain_hash(before, record)
        if before != stored:
            return Flaw(no, f"record {no} was changed, or a record before it was")
    return None


def _netstring(field: bytes) -> bytes:
    return b"%d:%b," % (len(field), field)
